"""Output of running handlers, buffered until the worker's next transaction: log lines and progress.

Never blocks a handler on the database. Each run's log has a size cap; lines beyond it are dropped, and one
line says so. What is buffered is written together with the run's end, or before it.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tsuzuki.engine.task import Task
from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import UsageError
from tsuzuki.model.run import Started
from tsuzuki.model.settings import EngineSettings
from tsuzuki.store import logs
from tsuzuki.store.logs import LogLine
from tsuzuki.store.runs import progress
from tsuzuki.store.runs.progress import ProgressReport
from tsuzuki.store.sql.database import Connection

BUFFERED_BYTES_MAX = 8 * 1024 * 1024
"""For all runs of a worker together: beyond it log lines are dropped, so that memory stays bounded."""

COUNT_MAX = 2**63 - 1
"""The largest number the database can hold."""

LINE_OVERHEAD_BYTES = 100
"""What a buffered line costs beside its text."""


@dataclass
class _LogSize:
    """How much one run has logged."""

    seq: int = 0
    bytes_written: int = 0
    is_full: bool = False


@dataclass(kw_only=True)
class BufferedOutput:
    """What was taken out of the buffer to be written."""

    lines: list[tuple[Started, LogLine]] = field(default_factory=list)
    reports: dict[int, ProgressReport] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.lines or self.reports)


class OutputBuffer:
    """Filled by handlers from any thread, emptied by the worker."""

    def __init__(self, *, clock: Clock, settings: Callable[[], EngineSettings]) -> None:
        self._clock = clock
        self._settings = settings
        self._lock = threading.Lock()
        self._output = BufferedOutput()
        self._buffered_bytes = 0
        self._sizes: dict[int, _LogSize] = {}

    def __bool__(self) -> bool:
        with self._lock:
            return bool(self._output)

    def log(self, task: Task, stream: str, text: str) -> None:
        cap = self._settings().log_bytes_max_per_run
        size = len(text.encode("utf-8", "replace")) + 1
        with self._lock:
            written = self._sizes.setdefault(task.started.id, _LogSize())
            if written.is_full:
                return
            if written.bytes_written + size > cap or self._buffered_bytes > BUFFERED_BYTES_MAX:
                written.is_full = True
                stream, text = "log", f"the log was cut here, after {written.bytes_written} bytes"
            written.seq += 1
            written.bytes_written += size
            self._buffered_bytes += size + LINE_OVERHEAD_BYTES
            line = LogLine(seq=written.seq, at=self._clock.now(), stream=stream, body=text)
            self._output.lines.append((task.started, line))

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
            self._output.reports[task.started.id] = report

    def take(self) -> BufferedOutput:
        """Everything that waits to be written."""
        with self._lock:
            output, self._output = self._output, BufferedOutput()
            self._buffered_bytes = 0
            return output

    def take_progress(self, run_id: int) -> ProgressReport | None:
        """One run's progress, to be written in a transaction of its own."""
        with self._lock:
            return self._output.reports.pop(run_id, None)

    def put_back(self, output: BufferedOutput) -> None:
        """The transaction failed: keep what it should have written, in order."""
        with self._lock:
            newer = self._output
            self._output = BufferedOutput(
                lines=[*output.lines, *newer.lines], reports={**output.reports, **newer.reports}
            )
            self._buffered_bytes += sum(
                len(line.body) + LINE_OVERHEAD_BYTES for _, line in output.lines
            )

    def forget(self, run_ids: Sequence[int]) -> None:
        """These runs have ended."""
        with self._lock:
            for run_id in run_ids:
                self._sizes.pop(run_id, None)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and 0 <= value <= COUNT_MAX


def write_output(connection: Connection, output: BufferedOutput, *, worker_id: str) -> None:
    """Into the worker's transaction, before the ends of the same runs."""
    logs.append(connection, worker_id=worker_id, lines=output.lines)
    progress.report_progress(connection, worker_id=worker_id, reports=list(output.reports.values()))
