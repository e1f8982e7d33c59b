"""What a run may do to the database while it executes: log, report progress, and write behind the fence."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

from tsuzuki.engine.task import Task
from tsuzuki.model.errors import Fenced
from tsuzuki.store.runs import ownership, progress
from tsuzuki.store.runs.progress import ProgressReport
from tsuzuki.store.sql.database import Connection, ConnectionUse, Database
from tsuzuki.store.sql.write_hold import LockUser


class RunOutput(Protocol):
    """Where log and progress go: the worker's buffer, or from an isolated process the way to it."""

    def log(self, task: Task, stream: str, content: str | bytes) -> None: ...

    def has_space(self) -> bool: ...

    def wait_for_space(self, seconds: float) -> bool: ...

    def progress(self, task: Task, processed: int, total: int | None) -> None: ...

    def unstored_progress(self, run_id: int) -> ProgressReport | None: ...

    def progress_stored(self, reports: Iterable[ProgressReport]) -> None: ...


class WorkerRunIO:
    """Implements `RunIO` for the runs of one worker."""

    def __init__(
        self, *, database: Database, output: RunOutput, worker_id: Callable[[], str]
    ) -> None:
        self._database = database
        self._output = output
        self._worker_id = worker_id
        self.log = output.log
        self.has_space = output.has_space
        self.progress = output.progress

    def wait_for_space(self, seconds: float) -> bool:
        """Wait for space, at most that long; whether there is. In a transaction there is no wait: what is buffered
        could not be written before its end."""
        return self._database.is_writing or self._output.wait_for_space(seconds)

    @contextmanager
    def transaction(self, task: Task) -> Iterator[Connection]:
        """Rows and progress in one transaction, behind the fence: it first locks the run as ours, and
        raises `Fenced` if it is not. The run's last report is written here even if the worker has taken it: it may
        write it later, or never."""
        with (
            self._database.used_for(ConnectionUse.UNBOUNDED),
            self._database.write(user=LockUser(task.run.id, task.job_name)) as connection,
        ):
            self._require_ownership(connection, task)
            yield connection
            report = self._output.unstored_progress(task.started.id)
            reports = [] if report is None else [report]
            progress.report_progress(connection, worker_id=self._worker_id(), reports=reports)
        self._output.progress_stored(reports)

    def _require_ownership(self, connection: Connection, task: Task) -> None:
        if not ownership.lock_if_owned(connection, worker_id=self._worker_id(), run=task.started):
            raise Fenced(
                f"this worker lost run {task.started.id}; nothing was written",
                hint="Stop: another attempt continues from the last commit.",
            )
