"""The execution of one Python function in a child: its output is logged, it is asked to stop and then killed, and its
outcome is what it reports, or how its process ended."""

import asyncio
import signal
from collections.abc import Callable
from functools import partial
from typing import Any

from tsuzuki.engine.executors.command.output import OutputStream
from tsuzuki.engine.executors.event_loop_thread import EventLoopThread
from tsuzuki.engine.executors.isolated.child_pool import ChildPool
from tsuzuki.engine.executors.isolated.child_process import ChildProcess
from tsuzuki.engine.executors.isolated.frames import LOG_LINE, RAW, STDERR, STDERR_LINE, Frame
from tsuzuki.engine.executors.isolated.messages import outcome_of, run_message
from tsuzuki.engine.executors.isolated.transactions import ChildTransactions
from tsuzuki.engine.outcome import Failed, Outcome, StopCause, Stopped
from tsuzuki.engine.task import RunIO, Task
from tsuzuki.model.errors import UsageError
from tsuzuki.model.states import Reason

PLACE_POLL_SECONDS = 0.05
"""How often to look whether there is a connection for a transaction."""

_LINES = {LOG_LINE: "log", STDERR_LINE: "stderr"}


class IsolatedExecution:
    """All but `stop` runs on the event loop, so there is no race to end it twice."""

    def __init__(
        self,
        task: Task,
        *,
        run_io: RunIO,
        children: ChildPool,
        transactions: ChildTransactions,
        mask: Callable[[bytes], bytes],
        kill_grace_seconds: Callable[[], float],
        loop: EventLoopThread,
        ended: Callable[["IsolatedExecution", Outcome], None],
    ) -> None:
        self.task = task
        self._run_io = run_io
        self._children = children
        self._transactions = transactions
        self._kill_grace_seconds = kill_grace_seconds
        self._loop = loop
        self._ended = ended
        self._stdout = OutputStream(deliver=partial(run_io.log, task, "stdout"), mask=mask)
        self._stderr = OutputStream(deliver=partial(run_io.log, task, "stderr"), mask=mask)
        self._raw = OutputStream(deliver=partial(run_io.log, task, "stdout"), mask=mask)
        self._child: ChildProcess | None = None
        self._cause: StopCause | None = None
        self._outcome: Outcome | None = None
        self._is_accepted = False
        self._was_started_again = False
        self._has_ended = False
        self._timer: asyncio.TimerHandle | None = None
        self._tell_stack: Callable[[str], None] = lambda _stack: None

    def stop(self, cause: StopCause, *, at_once: bool = False) -> None:
        self._loop.post(self._stop, cause, at_once)

    def dump_stack(self, tell: Callable[[str], None]) -> None:
        self._loop.post(self._dump_stack, tell)

    def begin(self) -> None:
        if self._cause is not None:
            self._finish(Stopped(cause=self._cause))
        else:
            self._start_in(self._children.take)

    def _start_in(self, take: Callable[[], ChildProcess]) -> None:
        try:
            child = take()
        except UsageError as problem:
            self._finish(Failed(reason=Reason.HANDLER_FAILED, error=problem.message))
            return
        except OSError as problem:
            error = f"cannot start a process for the function: {problem.strerror}"
            self._finish(Failed(reason=Reason.HANDLER_FAILED, error=error))
            return
        self._child = child
        memory_max = int(self.task.spec.options.get("memory") or 0)
        child.start(self, run_message(self.task), memory_max=memory_max)

    def _stop(self, cause: StopCause, at_once: bool) -> None:
        if self._has_ended:
            return
        is_first = self._cause is None
        self._cause = self._cause or cause
        if self._child is None:
            return  # `begin` will see it
        if at_once or self._outcome is not None:
            self._child.kill()
        elif is_first:
            self._child.send({"stop": self.task.run.id})
            self._timer = asyncio.get_running_loop().call_later(
                self._kill_grace_seconds(), self._child.kill
            )

    def _dump_stack(self, tell: Callable[[str], None]) -> None:
        if self._child is not None:
            self._tell_stack = tell
            self._child.send({"stack": self.task.run.id})

    # --- what the child says --------------------------------------------------------------------

    @property
    def is_stopped(self) -> bool:
        return self._cause is not None

    def may_read(self) -> bool:
        return self._transactions.is_open or self._run_io.has_space()

    def on_output(self, frame: Frame) -> None:
        if frame.kind in _LINES:
            text = frame.payload.decode("utf-8", "surrogatepass")
            self._run_io.log(self.task, _LINES[frame.kind], text)
        elif frame.kind == RAW:
            self._raw.feed(frame.payload)
        else:
            (self._stderr if frame.kind == STDERR else self._stdout).feed(frame.payload)

    def on_message(self, message: dict[str, Any]) -> None:
        match message:
            case {"accepted": _}:
                self._is_accepted = True
            case {"progress": [processed, total]}:
                self._run_io.progress(self.task, processed, total)
            case {"ask": "transaction"}:
                self._transactions.ask()
                self._grant()
            case {"ask": "progress"}:
                self._reply(self._transactions.progress())
            case {"progress_stored": number}:
                self._transactions.stored(number)
            case {"transaction_ended": _}:
                self._transactions.end_one()
            case {"stack": stack}:
                self._tell_stack(stack)
            case {"ended": ended, "is_clean": is_clean, "resident": resident}:
                self._on_outcome(outcome_of(ended), is_clean=is_clean, resident=resident)

    def _grant(self) -> None:
        if self._has_ended:
            return
        grant = self._transactions.grant()
        if grant is None:
            asyncio.get_running_loop().call_later(PLACE_POLL_SECONDS, self._grant)
        else:
            self._reply(grant)

    def _reply(self, reply: dict[str, Any]) -> None:
        if self._child is not None:
            self._child.send({"reply": reply})

    def _on_outcome(self, outcome: Outcome | None, *, is_clean: bool, resident: int) -> None:
        self._outcome = outcome or Stopped(cause=self._cause or StopCause.SHUTDOWN)
        child = self._child
        if child is None:
            return
        if not is_clean:
            child.kill()  # the outcome is delivered when nothing is left
            return
        child.run = None
        self._finish(self._outcome)
        self._children.put_back(child, resident_bytes=resident)

    # --- the end --------------------------------------------------------------------------------

    def on_end(self, facts: dict[str, Any]) -> None:
        if self._outcome is None and self._cause is None and self._may_start_again(facts):
            self._was_started_again = True
            self._start_in(self._children.new)
        else:
            self._finish(self._outcome or crash_of(facts, self._cause), was_killed=True)

    def _may_start_again(self, facts: dict[str, Any]) -> bool:
        """Whether an idle child ended at the moment when it was given the run: the function has not begun."""
        is_refused = "refused" in facts or facts.get("is_late")
        return not (self._is_accepted or self._was_started_again or is_refused)

    def _finish(self, outcome: Outcome, *, was_killed: bool = False) -> None:
        self._has_ended = True
        self._child = None
        if self._timer is not None:
            self._timer.cancel()
        for stream in (self._stdout, self._stderr, self._raw):
            stream.finish()
        self._transactions.end(was_killed=was_killed)
        # Once it was asked to stop, its own outcome does not count: it may have left work undone.
        self._ended(self, outcome if self._cause is None else Stopped(cause=self._cause))


def crash_of(facts: dict[str, Any], cause: StopCause | None) -> Outcome:
    """The outcome of a run whose process has ended without one. `facts` are its supervisor's."""
    if facts.get("memory"):
        error = f"the run used {_mebibytes(facts['memory'])} of memory, more than `memory` allows"
        return Failed(reason=Reason.MEMORY_LIMIT, error=error)
    if facts.get("is_late"):
        return Stopped(cause=cause or StopCause.NOT_CONFIRMED)
    if "refused" in facts:
        error = "cannot start a process for the function"
        return Failed(reason=Reason.HANDLER_FAILED, error=error)
    if "code" not in facts:
        error = "the supervisor of the function's process was killed, and the process with it"
        return Failed(reason=Reason.CRASHED, error=error)
    return Failed(reason=Reason.CRASHED, error=_end_of(facts["code"]))


def _end_of(code: int) -> str:
    if code >= 0:
        return f"the function's process exited with code {code}"
    if -code == signal.SIGKILL:
        return (
            "the function's process was killed (SIGKILL), possibly because the system ran out "
            "of memory"
        )
    try:
        return f"the function's process was ended by signal {signal.Signals(-code).name}"
    except ValueError:
        return f"the function's process was ended by signal {-code}"


def _mebibytes(size: int) -> str:
    return f"{size / (1024 * 1024):.0f} MiB"
