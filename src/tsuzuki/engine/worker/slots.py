"""A worker's slots: which runs execute in them, their deadlines, and how they are stopped."""

import threading
from collections.abc import Callable, Collection, Sequence

from tsuzuki.engine.outcome import Failed, StopCause
from tsuzuki.engine.task import Execution, Executor, OnOutcome, RunIO, Task
from tsuzuki.model.clock import Clock
from tsuzuki.model.states import Reason


class _Slot:
    """A slot taken by a task. `deadline` is by the monotonic clock."""

    __slots__ = ("deadline", "execution", "task")

    def __init__(self, task: Task, now: float) -> None:
        timeout = task.spec.timeout_seconds
        self.task = task
        self.execution: Execution | None = None
        self.deadline = None if timeout is None else now + timeout


class Slots:
    """`stop_all` may be called from any thread; the rest by the worker's."""

    def __init__(
        self, *, executor: Executor, run_io: RunIO, on_outcome: OnOutcome, clock: Clock
    ) -> None:
        self._executor = executor
        self._run_io = run_io
        self._on_outcome = on_outcome
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

    def start(self, tasks: Sequence[Task]) -> None:
        now = self._clock.monotonic()
        slots = [_Slot(task, now) for task in tasks]
        with self._lock:
            self._taken.update({slot.task.started.id: slot for slot in slots})
        for slot in slots:
            task = slot.task
            try:
                slot.execution = self._executor.start(task, self._run_io, self._on_outcome)
            except Exception as problem:  # noqa: BLE001 -- the others of this batch must start
                error = f"cannot start the run: {problem!r}"
                self._on_outcome(task, Failed(reason=Reason.HANDLER_FAILED, error=error))
                continue
            # Read after `execution` is set; `stop_all` writes its order before it reads executions. So in a
            # race between the two, one always sees the other.
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

    def dump_stack(self, run_id: int, tell: Callable[[str], None]) -> None:
        slot = self._taken.get(run_id)
        if slot is not None and slot.execution is not None:
            slot.execution.dump_stack(tell)

    def stop_all(self, cause: StopCause, *, at_once: bool = False) -> None:
        """Stop every execution, and each that starts from now on."""
        self._stop_order = (cause, at_once)
        for slot in self._all():
            if slot.execution is not None:
                slot.execution.stop(cause, at_once=at_once)

    def accept_again(self) -> None:
        """What starts from now on is not stopped any more."""
        self._stop_order = None

    def stop_overdue(self) -> None:
        now = self._clock.monotonic()
        for slot in self._all():
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
