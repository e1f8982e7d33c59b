"""The jobs of this process, in memory: each runs in a thread, and is removed five minutes after its end."""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from tsuzuki.collectors.codeindex.builds.builder import OnProgress
from tsuzuki.collectors.codeindex.builds.job import (
    ENDED_JOB_SECONDS,
    BuildJob,
    BuildProgress,
    BuildStatus,
    watcher_id,
)
from tsuzuki.collectors.codeindex.moments import iso
from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import TsuzukiError

TIMER_NAME = "forget-builds"

Work: TypeAlias = Callable[[OnProgress, Callable[[], bool]], BuildJob]
"""Does a build: told where to report progress and whether to stop, it returns the job as it ended."""


class _Entry:
    def __init__(self, job: BuildJob) -> None:
        self.job = job
        self.stopping = threading.Event()
        self.ended = threading.Event()
        self.ended_seconds: float | None = None


class BuildJobs:
    """By id. Every method may be called from any thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry] = {}
        self._watcher_ms = 0
        self._timer: threading.Timer | None = None

    def next_watcher_id(self, now_ms: int) -> str:
        """An id for a job of a watcher. One that would collide takes the next millisecond."""
        with self._lock:
            self._watcher_ms = max(now_ms, self._watcher_ms + 1)
            return watcher_id(self._watcher_ms)

    def create(self, job: BuildJob, work: Work) -> None:
        """Start the `work` of a running job in a thread of its own."""
        entry = _Entry(job)
        with self._lock:
            self._forget_old()
            if job.id in self._entries:
                raise ValueError(f"there is a job {job.id} already")
            self._entries[job.id] = entry
        thread = threading.Thread(target=self._run, args=(entry, work), name=job.id, daemon=True)
        thread.start()

    def get(self, job_id: str) -> BuildJob | None:
        with self._lock:
            self._forget_old()
            entry = self._entries.get(job_id)
            return entry.job if entry else None

    def cancel(self, job_id: str) -> bool:
        """Ask a running job to stop; whether there is one. It ends as failed, with the error `cancelled`."""
        entry = self._entries.get(job_id)
        if entry is None or entry.ended.is_set():
            return False
        entry.stopping.set()
        return True

    def wait(self, job_id: str, seconds: float) -> BuildJob | None:
        """The job as soon as it has ended, or as it is after some seconds."""
        entry = self._entries.get(job_id)
        if entry is not None:
            entry.ended.wait(seconds)
        return entry.job if entry else None

    def _run(self, entry: _Entry, work: Work) -> None:
        def report(progress: BuildProgress) -> None:
            entry.job = replace(entry.job, progress=progress)

        try:
            ended = work(report, entry.stopping.is_set)
        except Exception as problem:  # noqa: BLE001 -- any error of the build is the job's error
            ended = self._failed(entry.job, problem)
        with self._lock:
            entry.job = ended
            entry.ended_seconds = self._clock.monotonic()
            self._forget_later()
        entry.ended.set()

    def _failed(self, job: BuildJob, problem: Exception) -> BuildJob:
        return replace(
            job,
            status=BuildStatus.FAILED,
            error=error_words(problem),
            failed_at=iso(self._clock.now()),
        )

    def _forget_later(self) -> None:
        """Have the ended jobs removed when their time is over. One timer waits for the oldest of them."""
        ended = [
            one.ended_seconds for one in self._entries.values() if one.ended_seconds is not None
        ]
        if self._timer is not None or not ended:
            return
        seconds = min(ended) + ENDED_JOB_SECONDS - self._clock.monotonic()
        self._timer = threading.Timer(max(seconds, 0.0), self._on_timer)
        self._timer.name, self._timer.daemon = TIMER_NAME, True
        self._timer.start()

    def _on_timer(self) -> None:
        with self._lock:
            self._timer = None
            self._forget_old()
            self._forget_later()

    def _forget_old(self) -> None:
        now = self._clock.monotonic()
        for job_id, entry in list(self._entries.items()):
            if entry.ended_seconds is not None and now - entry.ended_seconds >= ENDED_JOB_SECONDS:
                del self._entries[job_id]


def error_words(problem: Exception) -> str:
    """What went wrong, in one line for the job."""
    if isinstance(problem, TsuzukiError):
        return f"{problem.message}. {problem.hint}" if problem.hint else problem.message
    return f"{type(problem).__name__}: {problem}"
