"""A worker's `RunIO` that can end a run at any of its transactions, as a crash does."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tsuzuki.engine.task import Task
from tsuzuki.engine.worker.run_io import WorkerRunIO
from tsuzuki.store.sql.database import Connection

Act = Callable[[int], None]


def do_nothing(_number: int) -> None:
    pass


class Killed(BaseException):
    """Stands for the end of the process."""


def kill_at(number: int) -> Act:
    """Kill the run at its transaction `number`."""

    def kill(transaction: int) -> None:
        if transaction == number:
            raise Killed

    return kill


class ObservedRunIO(WorkerRunIO):
    """A worker's `RunIO` that calls `before` and `after` around each commit, with its number."""

    before: Act = staticmethod(do_nothing)
    after: Act = staticmethod(do_nothing)
    commits = 0

    @contextmanager
    def transaction(self, task: Task) -> Iterator[Connection]:
        with super().transaction(task) as connection:
            yield connection
            self.before(self.commits + 1)
        self.commits += 1
        self.after(self.commits)
