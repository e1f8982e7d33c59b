"""From what a supervisor reports to the outcome of the run, in words for a person."""

import errno
import json
import os
import signal
from collections.abc import Mapping
from typing import Any

from tsuzuki.engine.executors.command.spec import CommandSpec
from tsuzuki.engine.outcome import Failed, Outcome, StopCause, Stopped, Succeeded
from tsuzuki.model.states import Reason

_FOLDER_REFUSED = {
    errno.ENOENT: "the folder {0!r}, in which it shall run, does not exist",
    errno.ENOTDIR: "{0!r}, in which it shall run, is not a folder",
}
_PROGRAM_REFUSED = {
    errno.ENOENT: "the program {0!r}, or the one that its #! line names, was not found",
    errno.EACCES: "{0!r} is not an executable file",
    errno.ENOEXEC: "{0!r} is not a program: its format is unknown and it has no #! line",
    errno.E2BIG: "the words and the environment for {0!r} are longer than the system allows",
}


def outcome_of(
    report: bytes, *, spec: CommandSpec, cause: StopCause | None, last_words: str
) -> Outcome:
    """How the command ended. `cause` is why we told it to, if we did: if it had ended by itself
    before it heard, that changes nothing. `last_words` is what it wrote last as its errors."""
    facts: Mapping[str, Any] = json.loads(report) if report else {"stopped": cause is not None}
    if "refused" in facts:
        return _failed(_refusal(facts, spec))
    if facts["stopped"] and cause is not None:
        return Stopped(cause=cause)
    if "code" not in facts:
        return _failed("the supervisor of the command was killed, and the command with it")
    if facts["code"] == 0:
        return Succeeded(result={"exit_code": 0})
    return _failed(_ending(facts["code"]) + (f": {last_words}" if last_words else ""))


def _failed(error: str) -> Failed:
    return Failed(reason=Reason.HANDLER_FAILED, error=error)


def _ending(code: int) -> str:
    if code > 0:
        return f"exit code {code}"
    try:
        return f"ended by signal {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"


def _refusal(facts: Mapping[str, Any], spec: CommandSpec) -> str:
    number = facts["refused"]
    if facts.get("at_folder"):
        sentence = _FOLDER_REFUSED.get(number, "the folder {0!r} cannot be entered: {1}")
        return sentence.format(spec.cwd, os.strerror(number))
    sentence = _PROGRAM_REFUSED.get(number, "the program {0!r} could not be started: {1}")
    return sentence.format(spec.argv[0], os.strerror(number))
