"""The context of a run, as its Python handler sees it: arguments, log, progress, cancellation, transactions.

Everything here is thread-safe. Cancellation is cooperative: a handler can only be asked to stop. So the
context also fences a handler whose execution was abandoned: what it still logs or reports is dropped, and it
gets no more transactions.
"""

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from datetime import datetime
from typing import Any

from tsuzuki.engine.task import RunIO, Task
from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import Fenced, UsageError

SPACE_POLL_SECONDS = 0.1
"""How often a handler that waits for space looks whether its run was fenced."""


class RunStopped(BaseException):
    """This run was asked to stop. A handler cleans up, and does not swallow it.

    Not an `Exception`, so that a handler which goes on after any `Exception` still stops when asked.
    """


class StopSignal:
    """The executor's side of a `RunContext`: asks the handler to stop, and fences it."""

    __slots__ = ("__weakref__", "_lock", "_stopping", "is_fenced", "is_set")

    def __init__(self) -> None:
        self.is_set = False
        self.is_fenced = False
        self.forget_parent()

    def forget_parent(self) -> None:
        """Start with a lock of its own, also in a forked process."""
        self._lock = threading.Lock()
        self._stopping: threading.Event | None = None

    @property
    def stopping(self) -> threading.Event:
        """Set when the handler is to stop. Created on first use: most handlers never wait."""
        with self._lock:
            if self._stopping is None:
                self._stopping = threading.Event()
                if self.is_set:
                    self._stopping.set()
            return self._stopping

    def set(self) -> None:
        """Ask the handler to stop, and wake it if it waits."""
        with self._lock:
            self._set()

    def fence(self) -> None:
        """From now on, nothing the handler does through its context has any effect."""
        with self._lock:
            self.is_fenced = True
            self._set()

    def _set(self) -> None:
        self.is_set = True
        if self._stopping is not None:
            self._stopping.set()

    def unless_fenced(self, write: Callable[..., None], *arguments: Any) -> None:
        """Call `write`, unless fenced. The lock is held during the call: after `fence` nothing is written."""
        with self._lock:
            if not self.is_fenced:
                write(*arguments)


def log_line(run_io: RunIO, task: Task, stop_signal: StopSignal, stream: str, text: str) -> None:
    """Append a line to a run's log, when there is space for it. Not while a lock is held: it may take long, and
    fencing the run ends the wait."""
    while not (stop_signal.is_fenced or run_io.wait_for_space(SPACE_POLL_SECONDS)):
        pass
    stop_signal.unless_fenced(run_io.log, task, stream, text)


class RunContext:
    """One run; each handler that asks for it gets one."""

    def __init__(self, *, task: Task, run_io: RunIO, clock: Clock, stop_signal: StopSignal) -> None:
        self._task = task
        self._run_io = run_io
        self._clock = clock
        self._stop_signal = stop_signal

    @property
    def id(self) -> int:
        return self._task.run.id

    @property
    def job_name(self) -> str:
        return self._task.job_name

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The run's arguments, by name."""
        return self._task.run.arguments

    @property
    def options(self) -> Mapping[str, Any]:
        """The options that its kind of handler defines, as they were when the run started."""
        return self._task.spec.options

    @property
    def attempt(self) -> int:
        """1 at first, and one more with each retry."""
        return self._task.run.attempt

    @property
    def idempotency_key(self) -> str:
        """The key that the run was started with, or a random one; the same for all attempts, also for those that an
        operator asked for. Pass it to outside services, so that they can drop a duplicate request."""
        return self._task.idempotency_key

    @property
    def event(self) -> Any:
        """The payload of the event that started this run; None if no event did."""
        return self._task.event

    @property
    def scheduled_for(self) -> datetime:
        """When it was due, in UTC: the tick it was planned for, however late it runs."""
        return self._task.run.scheduled_for

    def log(self, message: str) -> None:
        """Write to the run's log. Cheap: the line is buffered, and stored with the next batch. Waits while the
        buffer is full."""
        log_line(self._run_io, self._task, self._stop_signal, "log", str(message))

    def progress(self, processed: int, total: int | None = None) -> None:
        """Report how far the run is. Cheap enough to call for every item."""
        self._stop_signal.unless_fenced(self._run_io.progress, self._task, processed, total)

    @property
    def cancelled(self) -> bool:
        """Whether the run was asked to stop, for any cause. Return soon when it is true: the result
        is ignored from then on."""
        return self._stop_signal.is_set

    def raise_if_cancelled(self) -> None:
        """Raise `RunStopped` if the run was asked to stop."""
        if self.cancelled:
            raise RunStopped

    def wait(self, seconds: float) -> bool:
        """Sleep; a request to stop ends it early. True if that is what ended it.

        Blocks its thread: an async handler awaits `asyncio.sleep` instead.
        """
        return self._clock.wait(self._stop_signal.stopping, seconds)

    def transaction(self) -> AbstractContextManager[Any]:
        """A database transaction behind the fence: it commits only while this worker owns the run.

        Raises `Fenced` if it does not any more.
        """
        if self._stop_signal.is_fenced:
            raise Fenced(
                f"run {self.id} has ended, so it can write nothing more",
                hint="Return when `cancelled` is true, and finish all work before returning.",
            )
        return self._run_io.transaction(self._task)


_CURRENT: ContextVar[RunContext] = ContextVar("tsuzuki_current_run")


def current_run() -> RunContext:
    """The run that this function executes. In threads that it starts, copy its context (`contextvars.copy_context`).
    Raises `UsageError` outside a run."""
    found = run_of_this_context()
    if found is None:
        raise UsageError(
            "current_run() was called outside a run",
            hint="In a test, run the function with tsuzuki.testing.run_inline().",
            code="no_current_run",
        )
    return found


def run_of_this_context() -> RunContext | None:
    """As `current_run`; None outside a run."""
    return _CURRENT.get(None)


def set_current_run(run: RunContext) -> None:
    """What `current_run` answers from now on, in this context."""
    _CURRENT.set(run)
