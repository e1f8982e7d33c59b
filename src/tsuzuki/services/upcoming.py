"""What is due next: waiting runs, and the next tick of each job with a schedule; what is late comes first.

Of a job only its next tick is computed, and only when the job or what is planned of it has changed: with many jobs that
costs more than reading the rows.
"""

import heapq
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from tsuzuki.model.job import Job, JobEdition
from tsuzuki.store import jobs
from tsuzuki.store.runs import queue, runs
from tsuzuki.store.sql.database import Database


@dataclass(frozen=True, kw_only=True)
class UpcomingItem:
    """A waiting run, or a tick that becomes one (`run_id` is None)."""

    job: str
    due_at: datetime
    run_id: int | None
    is_late: bool


class _NextTick(NamedTuple):
    edition: JobEdition
    planned_until: datetime
    due_at: datetime


class Upcoming:
    def __init__(self, *, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._jobs: dict[int, Job] = {}
        self._next: dict[int, _NextTick] = {}

    def find(self, *, limit: int) -> list[UpcomingItem]:
        """The first by time, at most `limit`. A job whose schedule this machine cannot read is left out."""
        with self._lock:
            known = self._jobs
        with self._database.read() as connection:
            now = self._database.now(connection)
            waiting = runs.get_many(connection, queue.first_waiting(connection, limit=limit))
            scheduled = jobs.find_scheduled(connection, known=known)
        found = [(run.scheduled_for, run.job_name, run.id) for run in waiting]
        found += self._ticks(scheduled, limit)
        first = heapq.nsmallest(limit, found, key=lambda item: item[:2])
        return [
            UpcomingItem(job=job, due_at=due_at, run_id=run_id or None, is_late=due_at <= now)
            for due_at, job, run_id in first
        ]

    def _ticks(self, scheduled: Sequence[Job], limit: int) -> list[tuple[datetime, str, int]]:
        with self._lock:
            known = self._next
        computed = {job.id: _next_tick(job, known.get(job.id)) for job in scheduled}
        with self._lock:
            self._jobs = {job.id: job for job in scheduled}
            self._next = computed
        ticks = ((computed[job.id].due_at, job.spec.name, 0) for job in scheduled)
        return heapq.nsmallest(limit, ticks)


def _next_tick(job: Job, known: _NextTick | None) -> _NextTick:
    if known is not None and known[:2] == (job.edition, job.planned_until):
        return known
    if job.spec.schedule is None:
        raise ValueError(f"job {job.spec.name} has no schedule")
    due_at = job.spec.schedule.next_after(job.planned_until) + job.spec.spread_offset
    return _NextTick(job.edition, job.planned_until, due_at)
