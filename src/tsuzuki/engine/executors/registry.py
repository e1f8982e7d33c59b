"""The executors, by the name of the handlers they execute."""

import threading
from collections.abc import Mapping
from types import MappingProxyType

from tsuzuki.engine.outcome import Failed
from tsuzuki.engine.task import Execution, Executor, NotStarted, OnOutcome, RunIO, Task
from tsuzuki.model.states import Reason


class ExecutorRegistry:
    """Passes each task to the executor of its handler."""

    def __init__(self, executors: Mapping[str, Executor]) -> None:
        self._executors = MappingProxyType(dict(executors))
        self._is_closed = False

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._executors)

    def start(self, task: Task, run_io: RunIO, on_outcome: OnOutcome) -> Execution:
        """Start executing. `on_outcome` is called once, from another thread, when it has ended: at once
        for an unknown handler."""
        if self._is_closed:
            raise RuntimeError("started after the executors were closed")
        executor = self._executors.get(task.spec.handler)
        if executor is not None:
            return executor.start(task, run_io, on_outcome)
        known = ", ".join(sorted(self._executors)) or "none"
        failed = Failed(
            reason=Reason.HANDLER_UNKNOWN,
            error=f"unknown handler {task.spec.handler!r}; this worker has: {known}",
        )
        # In another thread, to avoid a deadlock: the caller may hold a lock that `on_outcome` needs.
        threading.Thread(target=on_outcome, args=(task, failed), daemon=True).start()
        return NotStarted()

    def close(self) -> None:
        """Stop everything that still runs. Nothing can be started after this."""
        self._is_closed = True
        for executor in self._executors.values():
            executor.close()
