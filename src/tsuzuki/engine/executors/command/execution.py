"""The execution of one command: its output is read, its supervisor is asked to stop it, its report is its outcome."""

import asyncio
import errno
import json
import os
import signal
from collections.abc import Callable, Mapping
from typing import Any

from tsuzuki.engine.executors.command.output import CommandOutput
from tsuzuki.engine.executors.command.spec import CommandSpec
from tsuzuki.engine.executors.command.supervisor import KILL, TERM
from tsuzuki.engine.executors.command.supervisor_client import SupervisorConnection
from tsuzuki.engine.executors.command.supervisor_pool import SupervisorPool
from tsuzuki.engine.executors.event_loop_thread import EventLoopThread
from tsuzuki.engine.outcome import Failed, Outcome, StopCause, Stopped, Succeeded
from tsuzuki.model.error_line import error_line
from tsuzuki.model.secrets import mask_secrets
from tsuzuki.model.states import Reason

ERROR_CHARACTERS_MAX = 500

OUTPUT_SECONDS_MAX = 1.0
"""How long an output may stay open after the end, if an unkillable process holds it."""


Facts = Mapping[str, Any]

_FOLDER_ERRORS = {
    errno.ENOENT: "working directory {0!r} does not exist",
    errno.ENOTDIR: "working directory {0!r} is not a directory",
}
_PROGRAM_ERRORS = {
    errno.ENOENT: "program {0!r}, or the interpreter in its #! line, was not found",
    errno.EACCES: "{0!r} is not executable (use chmod +x)",
    errno.ENOEXEC: "{0!r} is not a program: unknown format and no #! line",
    errno.E2BIG: "arguments and environment of {0!r} exceed the system's limit",
}
_NO_PROGRAM = (errno.ENOENT, errno.EACCES, errno.ENOEXEC)


class CommandExecution:
    """One command under way. All but `stop` runs on the event loop, so there is no race to end it twice."""

    def __init__(
        self,
        *,
        spec: CommandSpec,
        supervisor: SupervisorConnection,
        output: CommandOutput,
        kill_grace_seconds: Callable[[], float],
        loop: EventLoopThread,
        supervisors: SupervisorPool,
        ended: Callable[["CommandExecution", Outcome], None],
    ) -> None:
        self._spec = spec
        self._supervisor = supervisor
        self._output = output
        self._kill_grace_seconds = kill_grace_seconds
        self._loop = loop
        self._supervisors = supervisors
        self._ended = ended
        self._report: Facts | None = None
        self._cause: StopCause | None = None
        self._timer: asyncio.TimerHandle | None = None

    def stop(self, cause: StopCause, *, at_once: bool = False) -> None:
        self._loop.post(self._stop, cause, at_once)

    def dump_stack(self, tell: Callable[[str], None]) -> None:
        pass

    def attach(self) -> None:
        self._supervisor.on_readable = self._receive
        self._supervisor.watch()
        self._output.start(self._finish_if_complete)

    def _stop(self, cause: StopCause, at_once: bool) -> None:
        if self._report is not None:
            # It has ended, and its last lines wait for space that may not come.
            if self._output.is_waiting:
                self._finish()
            return
        if at_once:
            self._supervisor.send(KILL)
        elif self._cause is None:
            self._supervisor.send(TERM)
            self._after(self._kill_grace_seconds(), self._supervisor.send, KILL)
        self._cause = self._cause or cause

    def _receive(self) -> None:
        received = self._supervisor.receive()
        if received is None:
            return
        self._report = facts_of(received)
        if self._report.get("is_clean"):
            self._supervisors.release(self._supervisor)
        else:
            self._supervisors.discard(self._supervisor)
        self._output.read_now()
        if self._output.is_open:
            self._after(OUTPUT_SECONDS_MAX, self._give_up_output)
        self._finish_if_complete()

    def _give_up_output(self) -> None:
        """A process that is not ours holds an output open. Lines that wait for space are waited for, unless the
        command was stopped."""
        self._output.read_now()
        if self._output.is_waiting and self._cause is None:
            self._after(OUTPUT_SECONDS_MAX, self._give_up_output)
        else:
            self._finish()

    def _finish_if_complete(self) -> None:
        if self._report is not None and not self._output.is_open:
            self._finish()

    def _finish(self) -> None:
        if self._timer:
            self._timer.cancel()
        self._output.close()
        self._spec.discard()  # its supervisor has done so too, unless it was killed
        outcome = outcome_of(
            self._report or {},
            spec=self._spec,
            cause=self._cause,
            stderr_tail=self._output.stderr_tail(),
        )
        self._ended(self, outcome)

    def _after(self, seconds: float, call: Callable[..., object], *args: object) -> None:
        """One timer at a time: before the report it is the kill grace, after it the wait for open outputs."""
        if self._timer:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, call, *args)


def facts_of(report: bytes) -> Facts:
    """What a supervisor reported; nothing if it was killed."""
    facts: Facts = json.loads(report) if report else {}
    return facts


def outcome_of(
    report: Facts, *, spec: CommandSpec, cause: StopCause | None, stderr_tail: str
) -> Outcome:
    """The outcome of the command. `cause` is why we stopped it, if we did; it does not count if the command
    had ended by itself before the signal came. A command that its supervisor ended because we did not renew its
    deadline could not be confirmed. `stderr_tail` is what it wrote last to standard error; its line that names the
    cause is the error."""
    facts = report or {"stopped": cause is not None}
    if "refused" in facts:
        return Failed(reason=_start_reason(facts), error=_start_error(facts, spec))
    if facts.get("is_late"):
        return Stopped(cause=cause or StopCause.NOT_CONFIRMED)
    if facts["stopped"] and cause is not None:
        return Stopped(cause=cause)
    if "code" not in facts:
        return _failed("the command's supervisor was killed, and the command with it")
    if facts["code"] == 0:
        return Succeeded(result={"exit_code": 0})
    cause_line = mask_secrets(error_line(stderr_tail))[:ERROR_CHARACTERS_MAX]
    said = f": {cause_line}" if cause_line else ""
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
        sentence = _FOLDER_ERRORS.get(number, "cannot enter the working directory {0!r}: {1}")
        return sentence.format(spec.cwd, os.strerror(number))
    sentence = _PROGRAM_ERRORS.get(number, "cannot start the program {0!r}: {1}")
    return sentence.format(spec.argv[0], os.strerror(number))
