"""What running handlers say, kept until the worker's next transaction: log lines and progress.

The desk never blocks a handler on the database. Each run's log has a cap; what exceeds it is dropped,
and one line says so. Whatever is here is written together with the run's end, or before it.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tsuzuki.engine.task import Task
from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import Fenced, UsageError
from tsuzuki.model.run import Started
from tsuzuki.model.settings import EngineSettings
from tsuzuki.store import dispatch, logs, runs
from tsuzuki.store.database import Connection, Database
from tsuzuki.store.dispatch import ProgressReport
from tsuzuki.store.logs import LogLine

BUFFERED_BYTES_MAX = 8 * 1024 * 1024
"""Together, for all runs of a worker: beyond it a chatty handler loses lines, not we our memory."""

COUNT_MAX = 2**63 - 1
"""What the database can count up to."""


LINE_BYTES = 100
"""What a line costs beside its text: a million empty lines are not free."""


@dataclass
class _Pad:
    """One run's paper: how much it has written."""

    seq: int = 0
    bytes_written: int = 0
    is_full: bool = False


@dataclass(kw_only=True)
class Papers:
    """What was taken from the desk to be written down."""

    lines: list[tuple[Started, LogLine]] = field(default_factory=list)
    reports: dict[int, ProgressReport] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.lines or self.reports)


class Desk:
    """Implements what an execution may do to the engine's world."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        settings: Callable[[], EngineSettings],
        worker_id: Callable[[], str],
    ) -> None:
        self._database = database
        self._clock = clock
        self._settings = settings
        self._worker_id = worker_id
        self._lock = threading.Lock()
        self._papers = Papers()
        self._buffered_bytes = 0
        self._pads: dict[int, _Pad] = {}

    def log(self, task: Task, stream: str, text: str) -> None:
        cap = self._settings().log_bytes_max_per_run
        size = len(text.encode("utf-8", "replace")) + 1
        with self._lock:
            pad = self._pads.setdefault(task.started.id, _Pad())
            if pad.is_full:
                return
            if pad.bytes_written + size > cap or self._buffered_bytes > BUFFERED_BYTES_MAX:
                pad.is_full = True
                stream, text = "log", f"the log was cut here, after {pad.bytes_written} bytes"
            pad.seq += 1
            pad.bytes_written += size
            self._buffered_bytes += size + LINE_BYTES
            line = LogLine(seq=pad.seq, at=self._clock.now(), stream=stream, body=text)
            self._papers.lines.append((task.started, line))

    def progress(self, task: Task, processed: int, total: int | None) -> None:
        # Refused here, in the handler: in the worker's transaction it would stop all that runs.
        if not _is_count(processed) or not (total is None or _is_count(total)):
            raise UsageError(
                f"progress cannot be {processed!r} of {total!r}",
                hint="Count in whole numbers from 0 on; leave the total out if it is unknown.",
                code="progress",
            )
        report = ProgressReport(run=task.started, processed=processed, total=total)
        with self._lock:
            self._papers.reports[task.started.id] = report

    @contextmanager
    def transaction(self, task: Task) -> Iterator[Connection]:
        """Rows and progress in one transaction, in which the run is locked as ours."""
        with self._database.write() as connection:
            self._require_ours(connection, task)
            yield connection
            report = self._take_report(task.started.id)
            if report is not None:
                dispatch.report_progress(connection, worker_id=self._worker_id(), reports=[report])

    def take(self) -> Papers:
        """Everything that waits to be written."""
        with self._lock:
            papers, self._papers = self._papers, Papers()
            self._buffered_bytes = 0
            return papers

    def put_back(self, papers: Papers) -> None:
        """The transaction failed: keep what it should have written, in order."""
        with self._lock:
            newer = self._papers
            self._papers = Papers(
                lines=[*papers.lines, *newer.lines], reports={**papers.reports, **newer.reports}
            )
            self._buffered_bytes += sum(len(line.body) + LINE_BYTES for _, line in papers.lines)

    def has_papers(self) -> bool:
        with self._lock:
            return bool(self._papers)

    def forget(self, run_ids: Sequence[int]) -> None:
        """These runs have ended; their pads are not needed any more."""
        with self._lock:
            for run_id in run_ids:
                self._pads.pop(run_id, None)

    def _take_report(self, run_id: int) -> ProgressReport | None:
        with self._lock:
            return self._papers.reports.pop(run_id, None)

    def _require_ours(self, connection: Connection, task: Task) -> None:
        if not runs.lock_if_ours(connection, worker_id=self._worker_id(), run=task.started):
            raise Fenced(
                f"run {task.started.id} was taken from this worker; nothing was written",
                hint="Stop: another attempt continues from what was committed last.",
            )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and 0 <= value <= COUNT_MAX


def write_papers(connection: Connection, papers: Papers, *, worker_id: str) -> None:
    """Into the worker's transaction, before the ends of the same runs."""
    logs.append(connection, worker_id=worker_id, lines=papers.lines)
    dispatch.report_progress(connection, worker_id=worker_id, reports=list(papers.reports.values()))
