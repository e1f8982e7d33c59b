"""Python functions in processes of their own, called through a real executor."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.executions import Executions, RecordingRunIO, a_task
from tsuzuki.engine.executors.isolated.executor import IsolatedExecutor
from tsuzuki.engine.executors.isolated.transactions import ChildDatabase
from tsuzuki.engine.outcome import Outcome
from tsuzuki.engine.task import Execution, Task

GRACE_SECONDS = 0.2

IsolatedCall = Callable[..., tuple[Outcome, RecordingRunIO]]


class NoReports:
    def unstored_progress(self, run_id: int) -> None:
        raise AssertionError(run_id)

    def number_stored(self, run_id: int, number: int) -> None:
        raise AssertionError(run_id, number)


def no_database() -> ChildDatabase:
    return ChildDatabase(
        url="sqlite:///nowhere/nothing.db",
        worker_id=lambda: "nobody",
        seconds_max=lambda: 60.0,
        reserve_connection=lambda: True,
        release_connection=lambda: None,
        end_sessions=lambda _name: None,
        reports=NoReports,
    )


@contextmanager
def isolated_executor(base_folder: Path) -> Iterator[IsolatedExecutor]:
    executor = IsolatedExecutor(
        base_folder=base_folder,
        kill_grace_seconds=lambda: GRACE_SECONDS,
        database=no_database(),
    )
    yield executor
    executor.close()


def isolated_task(function: str, *, memory: int | None = None, **changes: Any) -> Task:
    options = {"function": function, "isolation": "process", "memory": memory}
    return a_task("python", options, **changes)


class IsolatedExecutions(Executions):
    """Starts functions of modules that a test writes."""

    def begin(self, function: str, **changes: Any) -> Execution:
        return self.start(isolated_task(function, **changes))
