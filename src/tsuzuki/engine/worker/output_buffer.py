"""Output of running handlers, buffered until the worker's next transaction: log lines and progress.

The buffer has a limit: beyond it a handler waits (`has_space`), so that memory stays bounded and no line is lost.
Each run's log has a limit too: see `run_log`. What is buffered is written together with the run's end, or before it.
"""

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from tsuzuki.engine.task import Task
from tsuzuki.engine.worker.run_log import RunLog
from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import UsageError
from tsuzuki.model.run import Started
from tsuzuki.model.settings import EngineSettings
from tsuzuki.store import logs
from tsuzuki.store.logs import LogLine
from tsuzuki.store.runs import ownership, progress
from tsuzuki.store.runs.progress import ProgressReport
from tsuzuki.store.sql.database import Connection

BUFFERED_BYTES_MAX = 2 * 1024 * 1024
"""For all runs of a worker together. It also bounds the transaction that writes them."""

FLUSH_BYTES = BUFFERED_BYTES_MAX // 2
"""From here on the worker is woken to write, so that handlers need not wait."""

COUNT_MAX = 2**63 - 1
"""The largest number the database can hold."""

LINE_OVERHEAD_BYTES = 100
"""What a buffered line costs beside its text."""


@dataclass(kw_only=True)
class BufferedOutput:
    """What was taken out of the buffer to be written."""

    lines: list[tuple[Started, LogLine]] = field(default_factory=list)
    reports: dict[int, ProgressReport] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.lines or self.reports)


class OutputBuffer:
    """Filled by handlers from any thread, emptied by the worker."""

    def __init__(
        self,
        *,
        clock: Clock,
        settings: Callable[[], EngineSettings],
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        """`wake` is called when there is much to write."""
        self._clock = clock
        self._settings = settings
        self._wake = wake
        self._taken = threading.Condition()
        self._output = BufferedOutput()
        self._buffered_bytes = 0
        self._logs: dict[int, RunLog] = {}
        self._last_reports: dict[int, ProgressReport] = {}
        """Of each run, wherever it is by now."""

    def __bool__(self) -> bool:
        with self._taken:
            return bool(self._output)

    def log(self, task: Task, stream: str, content: str | bytes) -> None:
        """Add a line, or output of a process: bytes that end with a whole line, without its newline."""
        cap = self._settings().log_bytes_max_per_run
        now = self._clock.now()
        with self._taken:
            run_log = self._logs.setdefault(task.started.id, RunLog())
            was_low = self._buffered_bytes < FLUSH_BYTES
            self._add(task.started, run_log.add(now, stream, content, cap=cap))
            is_filling = was_low and self._buffered_bytes >= FLUSH_BYTES
        if is_filling:
            self._wake()

    def has_space(self) -> bool:
        """Whether a handler may log more now."""
        return self._buffered_bytes < BUFFERED_BYTES_MAX

    def wait_for_space(self, seconds: float) -> bool:
        """Wait until a handler may log more, at most that long; whether it may."""
        if self.has_space():
            return True
        with self._taken:
            return self._taken.wait_for(self.has_space, seconds)

    def end_log(self, task: Task) -> None:
        """The run has ended: what was kept for the end of its log is to be written with its end."""
        with self._taken:
            run_log = self._logs.get(task.started.id)
            if run_log is not None:
                cap = self._settings().log_bytes_max_per_run
                self._add(task.started, run_log.end(self._clock.now(), cap=cap))

    def _add(self, run: Started, lines: Iterable[LogLine]) -> None:
        for line in lines:
            self._output.lines.append((run, line))
            self._buffered_bytes += len(line.body) + LINE_OVERHEAD_BYTES

    def progress(self, task: Task, processed: int, total: int | None) -> None:
        # Refused here, in the handler: in the worker's transaction it would stop all that runs.
        if not _is_count(processed) or not (total is None or _is_count(total)):
            raise UsageError(
                f"progress cannot be {processed!r} of {total!r}",
                hint="Count in whole numbers from 0 on; leave the total out if it is unknown.",
                code="progress",
            )
        report = ProgressReport(run=task.started, processed=processed, total=total)
        with self._taken:
            self._output.reports[task.started.id] = report
            self._last_reports[task.started.id] = report

    def take(self) -> BufferedOutput:
        """Everything that waits to be written."""
        with self._taken:
            output, self._output = self._output, BufferedOutput()
            self._buffered_bytes = 0
            self._taken.notify_all()
            return output

    def take_progress(self, run_id: int) -> ProgressReport | None:
        """One run's progress, to be written in a transaction of its own."""
        with self._taken:
            return self._output.reports.pop(run_id, None)

    def put_back(self, output: BufferedOutput) -> None:
        """The transaction failed: keep what it should have written, in order."""
        with self._taken:
            self._output.lines[:0] = output.lines
            self._put_back_progress(output.reports.values())
            self._buffered_bytes += sum(
                len(line.body) + LINE_OVERHEAD_BYTES for _, line in output.lines
            )

    def put_back_progress(self, output: BufferedOutput, run_ids: Collection[int]) -> None:
        """The rows of these runs were locked: keep their progress."""
        with self._taken:
            reports = output.reports
            self._put_back_progress(reports[run_id] for run_id in run_ids if run_id in reports)

    def _put_back_progress(self, reports: Iterable[ProgressReport]) -> None:
        """Only what is still a run's last report: a newer one may have been written since, by the handler itself in
        its transaction."""
        for report in reports:
            if self._last_reports.get(report.run.id) is report:
                self._output.reports[report.run.id] = report

    def forget(self, run_ids: Sequence[int]) -> None:
        """These runs have ended."""
        with self._taken:
            for run_id in run_ids:
                self._logs.pop(run_id, None)
                self._last_reports.pop(run_id, None)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and 0 <= value <= COUNT_MAX


def write_output(
    connection: Connection, output: BufferedOutput, *, worker_id: str
) -> frozenset[int]:
    """Into the worker's transaction, before the ends of the same runs. Returns the runs whose progress was not
    stored because another transaction holds their row."""
    logs.append(connection, worker_id=worker_id, lines=output.lines)
    reports = output.reports
    stored = progress.report_progress(
        connection, worker_id=worker_id, reports=list(reports.values())
    )
    left = [report.run for run_id, report in reports.items() if run_id not in stored]
    return ownership.still_owned(connection, worker_id=worker_id, runs=left)
