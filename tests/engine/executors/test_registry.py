"""The executor of a task is the one that its job names."""

import threading
from typing import Any

import pytest

from support.executions import Executions, a_task
from tsuzuki.engine.executors.registry import ExecutorRegistry
from tsuzuki.engine.outcome import Failed, StopCause, Succeeded
from tsuzuki.engine.task import Execution, NotStarted, OnOutcome, RunIO, Task
from tsuzuki.model.states import Reason


class Immediate:
    """Ends every task at once."""

    def __init__(self) -> None:
        self.closed = 0

    def start(self, task: Task, run_io: RunIO, done: OnOutcome) -> Execution:
        done(task, Succeeded(result=task.spec.handler))
        return NotStarted()

    def close(self) -> None:
        self.closed += 1


def test_a_task_goes_to_the_executor_of_its_handler() -> None:
    executions = Executions(ExecutorRegistry({"a": Immediate(), "b": Immediate()}))
    executions.start(a_task("b", {}))
    assert executions.outcome() == Succeeded(result="b")


def test_an_unknown_handler_is_a_failure_that_names_the_known_ones() -> None:
    executions = Executions(ExecutorRegistry({"python": Immediate(), "command": Immediate()}))
    executions.start(a_task("ruby", {})).stop(StopCause.FENCED)
    assert executions.outcome() == Failed(
        reason=Reason.HANDLER_UNKNOWN,
        error="unknown handler 'ruby'; this worker has: command, python",
    )


def test_that_failure_is_not_reported_from_within_start() -> None:
    reported = threading.Event()
    lock = threading.Lock()

    def done(*_: Any) -> None:
        with lock:
            reported.set()

    with lock:
        ExecutorRegistry({}).start(a_task("ruby", {}), None, done)  # type: ignore[arg-type]
        assert not reported.is_set()
    assert reported.wait(10)


def test_closing_closes_them_all_and_nothing_starts_after_it() -> None:
    parts = [Immediate(), Immediate()]
    executors = ExecutorRegistry({"a": parts[0], "b": parts[1]})
    executors.close()
    assert [part.closed for part in parts] == [1, 1]
    with pytest.raises(RuntimeError, match="closed"):
        Executions(executors).start(a_task("a", {}))
