"""A worker's places: what runs in them, since when, for how long it may, and how it is told to stop."""

import threading
from collections.abc import Collection, Sequence

from tsuzuki.engine.outcome import Failed, StopCause
from tsuzuki.engine.task import Done, Execution, Executor, Surroundings, Task
from tsuzuki.model.clock import Clock
from tsuzuki.model.states import Reason


class _Slot:
    """A place taken by a task. `deadline` is by the monotonic clock."""

    __slots__ = ("deadline", "execution", "task")

    def __init__(self, task: Task, now: float) -> None:
        timeout = task.spec.timeout_seconds
        self.task = task
        self.execution: Execution | None = None
        self.deadline = None if timeout is None else now + timeout


class Slots:
    """`launch` and `stop_all` may be called by any thread; the rest is the worker's."""

    def __init__(
        self, *, executor: Executor, surroundings: Surroundings, done: Done, clock: Clock
    ) -> None:
        self._executor = executor
        self._surroundings = surroundings
        self._done = done
        self._clock = clock
        self._taken: dict[int, _Slot] = {}
        self._lock = threading.Lock()
        self._stop_order: tuple[StopCause, bool] | None = None

    def __len__(self) -> int:
        return len(self._taken)

    def __contains__(self, run_id: int) -> bool:
        return run_id in self._taken

    def tasks(self) -> list[Task]:
        return [slot.task for slot in self._all()]

    def launch(self, tasks: Sequence[Task]) -> None:
        now = self._clock.monotonic()
        slots = [_Slot(task, now) for task in tasks]
        with self._lock:
            self._taken.update({slot.task.started.id: slot for slot in slots})
        for slot in slots:
            task = slot.task
            try:
                slot.execution = self._executor.begin(task, self._surroundings, self._done)
            except Exception as problem:  # noqa: BLE001 -- the others of this batch must begin
                error = f"it could not be begun: {problem!r}"
                self._done(task, Failed(reason=Reason.HANDLER_FAILED, error=error))
                continue
            # Looked at after the execution can be seen by `stop_all`, which gives its order before it
            # looks at executions: one of the two always sees the other.
            order = self._stop_order
            if order is not None:
                slot.execution.stop(order[0], at_once=order[1])

    def release(self, run_ids: Collection[int]) -> None:
        with self._lock:
            for run_id in run_ids:
                self._taken.pop(run_id, None)

    def stop(self, run_id: int, cause: StopCause) -> None:
        slot = self._taken.get(run_id)
        if slot is not None and slot.execution is not None:
            slot.execution.stop(cause)

    def stop_all(self, cause: StopCause, *, at_once: bool = False) -> None:
        """End every execution, also what is just being begun."""
        self._stop_order = (cause, at_once)
        for slot in self._all():
            if slot.execution is not None:
                slot.execution.stop(cause, at_once=at_once)

    def open_again(self) -> None:
        """Whatever begins from now on is not told to stop any more."""
        self._stop_order = None

    def stop_overdue(self) -> None:
        now = self._clock.monotonic()
        for slot in self._all():
            # One that is just being begun, in another thread, is stopped the next time.
            is_overdue = slot.deadline is not None and slot.deadline <= now
            if is_overdue and slot.execution is not None:
                slot.deadline = None
                slot.execution.stop(StopCause.TIMEOUT)

    def seconds_to_next_deadline(self) -> float | None:
        deadlines = [slot.deadline for slot in self._all() if slot.deadline is not None]
        return max(min(deadlines) - self._clock.monotonic(), 0.0) if deadlines else None

    def _all(self) -> list[_Slot]:
        with self._lock:
            return list(self._taken.values())
