"""Executes commands: programs of any kind, each in a session of its own; their output is the run's log.

A command that has ended leaves no process behind, and no command outlives its worker: see `supervisor`. One
thread of the worker serves them all.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from tsuzuki.engine.executors.command.environment import Expand
from tsuzuki.engine.executors.command.exit_report import outcome_of
from tsuzuki.engine.executors.command.output import OutputStream
from tsuzuki.engine.executors.command.spec import CommandSpec, command_spec_for
from tsuzuki.engine.executors.command.supervisor import KILL, TERM
from tsuzuki.engine.executors.command.supervisor_client import Command, SupervisorClient
from tsuzuki.engine.executors.event_loop_thread import EventLoopThread
from tsuzuki.engine.executors.failures import failure_of
from tsuzuki.engine.outcome import Failed, Outcome, StopCause
from tsuzuki.engine.task import Execution, NotStarted, OnOutcome, RunIO, Task
from tsuzuki.model.errors import TsuzukiError, UsageError
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import Reason

READ_BYTES_MAX = 64 * 1024
ERROR_CHARACTERS_MAX = 500
CLOSE_SECONDS_MAX = 5.0

OUTPUT_SECONDS_MAX = 1.0
"""How long an output may stay open after the end, if an unkillable process holds it."""


def _default_output_bytes() -> int:
    return EngineSettings.log_bytes_max_per_run


class CommandExecutor:
    """Runs `options["argv"]` in `options["cwd"]` (a path from `base_folder`) with the worker's
    environment, without the variables of `secret_names`, and `options["environment"]`, whose values `expand`
    expands.

    `output_bytes_max` is a second limit, besides the size cap of the log itself: beyond it an output is
    dropped unparsed, so that a flood does not delay the other commands.
    """

    def __init__(
        self,
        *,
        expand: Expand,
        base_folder: Path,
        kill_grace_seconds: Callable[[], float],
        output_bytes_max: Callable[[], int] = _default_output_bytes,
        environ: Mapping[str, str] = os.environ,
        secret_names: Collection[str] = (),
    ) -> None:
        self._expand = expand
        self._base_folder = base_folder.absolute()
        self._kill_grace_seconds = kill_grace_seconds
        self._output_bytes_max = output_bytes_max
        self._environ = environ
        self._secret_names = frozenset(secret_names)
        self._supervisors = SupervisorClient(self._secret_names)
        self._loop = EventLoopThread(name="tsuzuki-commands")
        self._live: set[CommandExecution] = set()
        self._changed = threading.Condition()

    def start(self, task: Task, run_io: RunIO, on_outcome: OnOutcome) -> Execution:
        """Start the command. `on_outcome` is never called from within."""
        try:
            spec = command_spec_for(
                task,
                expand=self._expand,
                environ=self._environ,
                secret_names=self._secret_names,
                base_folder=self._base_folder,
            )
            command = self._start_command(spec)
        except UsageError as problem:
            failed = Failed(reason=Reason.ARGUMENTS_INVALID, error=problem.message)
            return self._refuse(task, on_outcome, failed)
        except TsuzukiError as problem:
            return self._refuse(task, on_outcome, failure_of(problem))
        except OSError as problem:
            sentence = f"the command could not be started: {problem.strerror}"
            failed = Failed(reason=Reason.HANDLER_FAILED, error=sentence)
            return self._refuse(task, on_outcome, failed)
        execution = CommandExecution(
            spec=spec,
            command=command,
            log=partial(run_io.log, task),
            output_bytes_max=self._output_bytes_max(),
            kill_grace_seconds=self._kill_grace_seconds,
            loop=self._loop,
            ended=lambda execution, outcome: self._ended(
                execution, partial(on_outcome, task, outcome)
            ),
        )
        with self._changed:
            self._live.add(execution)
        self._loop.post(execution.attach)
        return execution

    def close(self) -> None:
        """Kill what still runs, and start nothing more."""
        with self._changed:
            for execution in self._live:
                execution.stop(StopCause.SHUTDOWN, at_once=True)
            self._changed.wait_for(lambda: not self._live, CLOSE_SECONDS_MAX)
        self._supervisors.close()
        self._loop.close()

    def _start_command(self, spec: CommandSpec) -> Command:
        try:
            return self._supervisors.start(spec)
        except OSError:
            spec.discard()
            raise

    def _refuse(self, task: Task, on_outcome: OnOutcome, failed: Failed) -> Execution:
        self._loop.post(on_outcome, task, failed)
        return NotStarted()

    def _ended(self, execution: "CommandExecution", deliver: Callable[[], None]) -> None:
        try:
            deliver()
        finally:
            with self._changed:
                self._live.discard(execution)
                self._changed.notify_all()


class CommandExecution:
    """One command under way. All but `stop` runs on the event loop, so there is no race to end it twice."""

    def __init__(
        self,
        *,
        spec: CommandSpec,
        command: Command,
        log: Callable[[str, str], None],
        output_bytes_max: int,
        kill_grace_seconds: Callable[[], float],
        loop: EventLoopThread,
        ended: Callable[["CommandExecution", Outcome], None],
    ) -> None:
        self._spec = spec
        self._command = command
        self._kill_grace_seconds = kill_grace_seconds
        self._loop = loop
        self._ended = ended
        self._stderr = OutputStream(deliver=partial(log, "stderr"), bytes_max=output_bytes_max)
        self._open_outputs = {
            command.stdout: OutputStream(
                deliver=partial(log, "stdout"), bytes_max=output_bytes_max
            ),
            command.stderr: self._stderr,
        }
        self._report = b""
        self._has_reported = False
        self._cause: StopCause | None = None
        self._timer: asyncio.TimerHandle | None = None

    def stop(self, cause: StopCause, *, at_once: bool = False) -> None:
        self._loop.post(self._stop, cause, at_once)

    def attach(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_reader(self._command.control, self._receive)
        for descriptor in self._open_outputs:
            loop.add_reader(descriptor, self._read, descriptor)

    def _stop(self, cause: StopCause, at_once: bool) -> None:
        if self._has_reported:
            return
        if at_once:
            self._send(KILL)
        elif self._cause is None:
            self._send(TERM)
            self._after(self._kill_grace_seconds(), self._send, KILL)
        self._cause = self._cause or cause

    def _send(self, request: bytes) -> None:
        # The supervisor may have closed the socket already; then its report decides.
        with suppress(OSError):
            self._command.control.send(request)

    def _receive(self) -> None:
        try:
            received = self._command.control.recv(READ_BYTES_MAX)
        except BlockingIOError:
            return
        except OSError:
            received = b""
        self._report += received
        if not received:
            self._on_report_end()

    def _on_report_end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._command.control)
        self._command.control.close()
        self._has_reported = True
        self._after(OUTPUT_SECONDS_MAX, self._finish)
        self._finish_if_complete()

    def _read(self, descriptor: int) -> None:
        try:
            chunk = os.read(descriptor, READ_BYTES_MAX)
        except BlockingIOError:
            return
        if chunk:
            self._open_outputs[descriptor].feed(chunk)
        else:
            self._close_output(descriptor)
            self._finish_if_complete()

    def _close_output(self, descriptor: int) -> None:
        asyncio.get_running_loop().remove_reader(descriptor)
        os.close(descriptor)
        self._open_outputs.pop(descriptor).finish()

    def _finish_if_complete(self) -> None:
        if self._has_reported and not self._open_outputs:
            self._finish()

    def _finish(self) -> None:
        if self._timer:
            self._timer.cancel()
        for descriptor in list(self._open_outputs):
            self._close_output(descriptor)
        self._spec.discard()  # its supervisor has done so too, unless it was killed
        outcome = outcome_of(
            self._report,
            spec=self._spec,
            cause=self._cause,
            stderr_tail=self._stderr.tail(ERROR_CHARACTERS_MAX),
        )
        self._ended(self, outcome)

    def _after(self, seconds: float, call: Callable[..., object], *args: object) -> None:
        """One timer at a time: before the report it is the kill grace, after it the wait for open outputs."""
        if self._timer:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, call, *args)
