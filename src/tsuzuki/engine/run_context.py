"""What a Python handler is given: the run it works for, and the few things it may do to it.

Everything here may be called from any thread. A handler cannot be made to stop, only asked, so the
context is also where an execution that was given up is cut off: what the handler still says then is
not heard, and it gets no more transactions.
"""

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

from tsuzuki.engine.task import RunIO, Task
from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import Fenced


class RunStopped(BaseException):
    """This run was asked to stop. A handler lets it through, cleaning up on the way.

    Not an `Exception`, so that a handler which goes on after any error still stops when asked.
    """


class StopSignal:
    """The executor's end of a `RunContext`: it asks the handler to stop, and can cut it off."""

    __slots__ = ("_lock", "_stopping", "is_fenced", "is_set")

    def __init__(self) -> None:
        self.is_set = False
        self.is_fenced = False
        self._lock = threading.Lock()
        self._stopping: threading.Event | None = None

    @property
    def stopping(self) -> threading.Event:
        """Set when the handler is to stop. Made when first asked for: most handlers never wait."""
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
        """Nothing the handler does through its context has any effect from here on."""
        with self._lock:
            self.is_fenced = True
            self._set()

    def _set(self) -> None:
        self.is_set = True
        if self._stopping is not None:
            self._stopping.set()

    def unless_fenced(self, say: Callable[..., None], *words: Any) -> None:
        """Say it, unless cut. The lock is held meanwhile: after `cut` nothing more is said."""
        with self._lock:
            if not self.is_fenced:
                say(*words)


class RunContext:
    """The run, as its handler sees it."""

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
        """What this run was asked to do."""
        return self._task.run.arguments

    @property
    def options(self) -> Mapping[str, Any]:
        """The keys of its kind of job, as they were when it started."""
        return self._task.spec.options

    @property
    def attempt(self) -> int:
        """1 at first, and one more each time the same piece of work is tried again."""
        return self._task.run.attempt

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt at this piece of work: what an outward act is keyed by."""
        return self._task.idempotency_key

    @property
    def event(self) -> Any:
        """The payload of the event that caused this run; None if none did."""
        return self._task.event

    @property
    def scheduled_for(self) -> datetime:
        """When it was due, in UTC: the tick it stands for, however late it runs."""
        return self._task.run.scheduled_for

    def log(self, message: str) -> None:
        """Write to the run's log. Cheap: it is stored with the next batch."""
        self._stop_signal.unless_fenced(self._run_io.log, self._task, "log", str(message))

    def progress(self, processed: int, total: int | None = None) -> None:
        """Show how far the run is. Cheap enough for every item."""
        self._stop_signal.unless_fenced(self._run_io.progress, self._task, processed, total)

    @property
    def cancelled(self) -> bool:
        """Whether the run was asked to stop, for whatever cause. Whoever sees this should return
        soon: what is returned no longer counts."""
        return self._stop_signal.is_set

    def raise_if_cancelled(self) -> None:
        """Raise `RunStopped` if the run was asked to stop."""
        if self.cancelled:
            raise RunStopped

    def wait(self, seconds: float) -> bool:
        """Sleep, but not through being asked to stop; true if that is what ended it.

        It blocks its thread: an async handler awaits `asyncio.sleep` instead.
        """
        return self._clock.wait(self._stop_signal.stopping, seconds)

    def transaction(self) -> AbstractContextManager[Any]:
        """A database transaction that takes effect only while this run is ours.

        Raises `Fenced` if it no longer is.
        """
        if self._stop_signal.is_fenced:
            raise Fenced(
                f"run {self.id} has ended, so nothing more can be written for it",
                hint="Return when `cancelled` is true, and finish all work before returning.",
            )
        return self._run_io.transaction(self._task)
