"""For tests of executors: tasks without a database, and a recording `RunIO`."""

import dataclasses
import os
import select
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tsuzuki.engine.outcome import Outcome
from tsuzuki.engine.output_lines import split_lines, text_of
from tsuzuki.engine.task import Execution, Executor, Task
from tsuzuki.model.job import JobSpec
from tsuzuki.model.run import Run, StartedRun
from tsuzuki.model.states import ContinuationState, RunState, Trigger

TIMEOUT_SECONDS = 20.0
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

RUN = Run(
    id=1,
    job_definition_id=1,
    job_name="hello",
    state=RunState.RUNNING,
    version=3,
    trigger=Trigger.MANUAL,
    scheduled_for=NOON,
    created_at=NOON,
    priority=0,
    arguments={},
    attempt=1,
    retries_used=0,
    orphan_count=0,
    orphans_free=0,
    losses=0,
    losses_free=0,
    retry_of=None,
    origin_id=None,
    idempotency_key=None,
    work_key=None,
    concurrency_key=None,
    event_id=None,
    covers_ticks=1,
    covers_until=None,
    assigned_worker_id="host-1-aaaa",
    assigned_at=NOON,
    leader_epoch=1,
    started_at=NOON,
    finished_at=None,
    continuation_state=ContinuationState.NONE,
    continuation_check_deadline_at=None,
    reason=None,
    error=None,
    result=None,
    progress_processed=0,
    progress_total=None,
    progress_at=None,
    log_ref=None,
    blocked_by=None,
)


def a_task(
    handler: str, options: dict[str, Any], *, run_id: int = 1, event: Any = None, **changes: Any
) -> Task:
    return Task(
        run=dataclasses.replace(RUN, id=run_id, **changes),
        started=StartedRun(id=run_id, version=3, epoch=1),
        spec=JobSpec(name="hello", handler=handler, options=options),
        event=event,
    )


class RecordingRunIO:
    """A `RunIO` that records log lines and progress; a test can wait for lines."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []
        self.reports: list[tuple[int, int | None]] = []
        self.transactions = 0
        self._line_added = threading.Condition()
        self.is_full = False
        """Set by tests to simulate a full buffer."""
        self.refusals = 0
        """Number of times a writer was refused because the buffer was full."""

    def log(self, task: Task, stream: str, content: str | bytes) -> None:
        lines = [content] if isinstance(content, str) else map(text_of, split_lines(content))
        with self._line_added:
            self.lines.extend((stream, line) for line in lines)
            self._line_added.notify_all()

    def has_space(self) -> bool:
        self.refusals += self.is_full
        return not self.is_full

    def wait_for_space(self, seconds: float) -> bool:
        with self._line_added:
            return self._line_added.wait_for(self.has_space, seconds)

    def make_space(self) -> None:
        with self._line_added:
            self.is_full = False
            self._line_added.notify_all()

    def progress(self, task: Task, processed: int, total: int | None) -> None:
        self.reports.append((processed, total))

    @contextmanager
    def transaction(self, task: Task) -> Iterator[str]:
        self.transactions += 1
        yield "connection"

    def of(self, stream: str) -> list[str]:
        with self._line_added:
            return [text for name, text in self.lines if name == stream]

    def wait_for(self, count: int, stream: str = "stdout") -> list[str]:
        """Wait for `count` lines of a stream, and answer them."""

        def enough() -> bool:
            return sum(name == stream for name, _ in self.lines) >= count

        with self._line_added:
            assert self._line_added.wait_for(enough, TIMEOUT_SECONDS), f"only got {self.lines}"
        return self.of(stream)[:count]


class Executions:
    """Starts executions and collects their outcomes."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.run_io = RecordingRunIO()
        self.outcomes: list[tuple[int, Outcome]] = []
        self.started: list[Execution] = []
        self._ended = threading.Condition()

    def start(self, *tasks: Task) -> Execution:
        """Start all tasks. Answers the execution of the last."""
        for task in tasks:
            self.started.append(self.executor.start(task, self.run_io, self._done))
        return self.started[-1]

    def outcome(self) -> Outcome:
        """Wait for the outcome of the only execution."""
        ((_, outcome),) = self.wait_for_all()
        return outcome

    def wait_for_all(self) -> list[tuple[int, Outcome]]:
        with self._ended:
            enough = self._ended.wait_for(
                lambda: len(self.outcomes) >= len(self.started), TIMEOUT_SECONDS
            )
        assert enough, f"only {len(self.outcomes)} of {len(self.started)} have ended"
        assert max(Counter(run_id for run_id, _ in self.outcomes).values()) == 1
        return self.outcomes

    def _done(self, task: Task, outcome: Outcome) -> None:
        with self._ended:
            self.outcomes.append((task.run.id, outcome))
            self._ended.notify_all()


def eventually(holds: Callable[[], bool]) -> None:
    """Poll until it holds, for changes without a signal."""
    for _ in range(int(TIMEOUT_SECONDS * 100)):
        if holds():
            return
        threading.Event().wait(0.01)
    raise AssertionError("the condition never held")


def open_descriptors() -> int:
    """Number of open file descriptors in this process."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@contextmanager
def watching(pid: int) -> Iterator["Watched"]:
    """A pidfd of a running process, to wait for its end."""
    handle = os.pidfd_open(pid)
    try:
        yield Watched(handle)
    finally:
        os.close(handle)


class Watched:
    def __init__(self, handle: int) -> None:
        self.handle = handle

    def has_ended(self, *, within_seconds: float = TIMEOUT_SECONDS) -> bool:
        return bool(select.select([self.handle], [], [], within_seconds)[0])
