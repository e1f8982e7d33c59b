"""Output of running handlers, buffered until the worker's next transaction: log lines and progress.

The buffer has a limit: beyond it a handler waits (`has_space`), so that memory stays bounded and no line is lost.
Each run's log has a limit too: see `run_log`. What is buffered is written together with the run's end, or before it.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count

from tsuzuki.engine.run_counts import require_counts
from tsuzuki.engine.task import Task
from tsuzuki.engine.worker.run_log import RunLog
from tsuzuki.model.clock import Clock
from tsuzuki.model.run import StartedRun
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

LINE_OVERHEAD_BYTES = 100
"""What a buffered line costs beside its text."""


@dataclass(kw_only=True)
class BufferedOutput:
    """What was taken out of the buffer to be written."""

    lines: list[tuple[StartedRun, LogLine]] = field(default_factory=list)
    reports: dict[int, ProgressReport] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.lines or self.reports)

    @property
    def run_ids(self) -> set[int]:
        return {*self.reports, *(run.id for run, _ in self.lines)}

    def add(self, other: "BufferedOutput") -> None:
        self.lines += other.lines
        self.reports.update(other.reports)

    def by_run(self) -> "dict[int, BufferedOutput]":
        """Each run's own."""
        parts = {run_id: BufferedOutput() for run_id in self.run_ids}
        for run, line in self.lines:
            parts[run.id].lines.append((run, line))
        for run_id, report in self.reports.items():
            parts[run_id].reports[run_id] = report
        return parts


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
        self._report_numbers = count(1)
        self._last_reports: dict[int, ProgressReport] = {}
        """Of each run, wherever it is by now."""
        self._stored_reports: dict[int, ProgressReport] = {}
        """Of each run the last one that a handler's transaction has committed."""

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

    def _add(self, run: StartedRun, lines: Iterable[LogLine]) -> None:
        for line in lines:
            self._output.lines.append((run, line))
            self._buffered_bytes += len(line.body) + LINE_OVERHEAD_BYTES

    def progress(self, task: Task, processed: int, total: int | None) -> None:
        # Refused here, in the handler: in the worker's transaction it would stop all that runs.
        require_counts(processed, total)
        with self._taken:
            report = ProgressReport(
                run=task.started,
                processed=processed,
                total=total,
                number=next(self._report_numbers),
            )
            self._output.reports[task.started.id] = report
            self._last_reports[task.started.id] = report

    def take(self) -> BufferedOutput:
        """Everything that waits to be written."""
        with self._taken:
            output, self._output = self._output, BufferedOutput()
            self._buffered_bytes = 0
            self._taken.notify_all()
            return output

    def unstored_progress(self, run_id: int) -> ProgressReport | None:
        """One run's last report, to be written in a transaction of its handler; None if one has stored it. The worker
        may be writing it at the same time."""
        with self._taken:
            report = self._last_reports.get(run_id)
            return None if self._stored_reports.get(run_id) is report else report

    def progress_stored(self, reports: Iterable[ProgressReport]) -> None:
        """These reports are committed, and need not be written again."""
        with self._taken:
            for report in reports:
                run_id = report.run.id
                if self._last_reports.get(run_id) is report:
                    self._stored_reports[run_id] = report
                    self._output.reports.pop(run_id, None)

    def number_stored(self, run_id: int, number: int) -> None:
        """The report of this number was committed by an isolated process, unless there is a later one."""
        with self._taken:
            report = self._last_reports.get(run_id)
        if report is not None and report.number == number:
            self.progress_stored([report])

    def put_back(self, output: BufferedOutput) -> None:
        """It was not written, because the transaction failed or rows were locked: keep it, in order. Of progress only
        what is still a run's last report, and not stored: the handler may have written it, or a newer one, in its own
        transaction since."""
        with self._taken:
            self._output.lines[:0] = output.lines
            for report in output.reports.values():
                is_last = self._last_reports.get(report.run.id) is report
                if is_last and self._stored_reports.get(report.run.id) is not report:
                    self._output.reports[report.run.id] = report
            self._buffered_bytes += sum(
                len(line.body) + LINE_OVERHEAD_BYTES for _, line in output.lines
            )

    def forget(self, run_ids: Sequence[int]) -> None:
        """These runs have ended."""
        with self._taken:
            for run_id in run_ids:
                self._logs.pop(run_id, None)
                self._last_reports.pop(run_id, None)
                self._stored_reports.pop(run_id, None)


def write_output(
    connection: Connection, output: BufferedOutput, *, worker_id: str
) -> BufferedOutput:
    """Into the worker's transaction, before the ends of the same runs. Returns what was not stored because another
    transaction holds the row of its run, and is to be tried again."""
    reports = output.reports
    not_added = logs.append(connection, worker_id=worker_id, lines=output.lines)
    stored = progress.report_progress(
        connection, worker_id=worker_id, reports=list(reports.values())
    )
    lines = [(run, line) for run, line in output.lines if run.id in not_added] if not_added else []
    left = [report for run_id, report in reports.items() if run_id not in stored]
    runs = {*(run for run, _ in lines), *(report.run for report in left)}
    owned = ownership.still_owned(connection, worker_id=worker_id, runs=sorted(runs))
    return BufferedOutput(
        lines=[(run, line) for run, line in lines if run.id in owned],
        reports={report.run.id: report for report in left if report.run.id in owned},
    )
