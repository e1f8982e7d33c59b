"""From a supervisor's exit report to the outcome of the run, with a readable error."""

import errno
import json
import os
import signal
from collections.abc import Mapping
from typing import Any

from tsuzuki.engine.executors.command.spec import CommandSpec
from tsuzuki.engine.outcome import Failed, Outcome, StopCause, Stopped, Succeeded
from tsuzuki.model.secrets import mask_secrets
from tsuzuki.model.states import Reason

Facts = Mapping[str, Any]

_FOLDER_ERRORS = {
    errno.ENOENT: "its working directory {0!r} does not exist",
    errno.ENOTDIR: "its working directory {0!r} is not a directory",
}
_PROGRAM_ERRORS = {
    errno.ENOENT: "the program {0!r}, or the one that its #! line names, was not found",
    errno.EACCES: "{0!r} is not an executable file (chmod +x makes it one)",
    errno.ENOEXEC: "{0!r} is not a program: its format is unknown and it has no #! line",
    errno.E2BIG: "the arguments and the environment for {0!r} are longer than the system allows",
}
_NO_PROGRAM = (errno.ENOENT, errno.EACCES, errno.ENOEXEC)


def facts_of(report: bytes) -> Facts:
    """What a supervisor reported; nothing if it was killed."""
    facts: Facts = json.loads(report) if report else {}
    return facts


def outcome_of(
    report: Facts, *, spec: CommandSpec, cause: StopCause | None, stderr_tail: str
) -> Outcome:
    """The outcome of the command. `cause` is why we stopped it, if we did; it does not count if the command
    had ended by itself before the signal came. A command that its supervisor ended because we did not renew its
    deadline could not be confirmed. `stderr_tail` is what it wrote last to standard error."""
    facts = report or {"stopped": cause is not None}
    if "refused" in facts:
        return Failed(reason=_start_reason(facts), error=_start_error(facts, spec))
    if facts.get("is_late"):
        return Stopped(cause=cause or StopCause.NOT_CONFIRMED)
    if facts["stopped"] and cause is not None:
        return Stopped(cause=cause)
    if "code" not in facts:
        return _failed("the supervisor of the command was killed, and the command with it")
    if facts["code"] == 0:
        return Succeeded(result={"exit_code": 0})
    said = f": {mask_secrets(stderr_tail)}" if stderr_tail else ""
    return _failed(_exit_error(facts["code"]) + said)


def _failed(error: str) -> Failed:
    return Failed(reason=Reason.HANDLER_FAILED, error=error)


def _exit_error(code: int) -> str:
    if code > 0:
        return f"exit code {code}"
    try:
        return f"ended by signal {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"


def _start_reason(facts: Facts) -> Reason:
    """A file that is no program will not be one in the next attempt: such a run is not retried."""
    is_no_program = facts["refused"] in _NO_PROGRAM and not facts.get("at_folder")
    return Reason.HANDLER_UNKNOWN if is_no_program else Reason.HANDLER_FAILED


def _start_error(facts: Facts, spec: CommandSpec) -> str:
    number = facts["refused"]
    if facts.get("at_folder"):
        sentence = _FOLDER_ERRORS.get(number, "its working directory {0!r} cannot be entered: {1}")
        return sentence.format(spec.cwd, os.strerror(number))
    sentence = _PROGRAM_ERRORS.get(number, "the program {0!r} could not be started: {1}")
    return sentence.format(spec.argv[0], os.strerror(number))
