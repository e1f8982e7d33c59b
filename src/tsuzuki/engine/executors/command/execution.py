"""The execution of one command: its output is read, its supervisor is asked to stop it, its report is its outcome."""

import asyncio
from collections.abc import Callable

from tsuzuki.engine.executors.command.exit_report import Facts, facts_of, outcome_of
from tsuzuki.engine.executors.command.output import CommandOutput
from tsuzuki.engine.executors.command.spec import CommandSpec
from tsuzuki.engine.executors.command.supervisor import KILL, TERM
from tsuzuki.engine.executors.command.supervisor_client import SupervisorConnection
from tsuzuki.engine.executors.command.supervisor_pool import SupervisorPool
from tsuzuki.engine.executors.event_loop_thread import EventLoopThread
from tsuzuki.engine.outcome import Outcome, StopCause

ERROR_CHARACTERS_MAX = 500

OUTPUT_SECONDS_MAX = 1.0
"""How long an output may stay open after the end, if an unkillable process holds it."""


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
            stderr_tail=self._output.stderr_tail(ERROR_CHARACTERS_MAX),
        )
        self._ended(self, outcome)

    def _after(self, seconds: float, call: Callable[..., object], *args: object) -> None:
        """One timer at a time: before the report it is the kill grace, after it the wait for open outputs."""
        if self._timer:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, call, *args)
