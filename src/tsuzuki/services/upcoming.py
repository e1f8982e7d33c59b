"""Upcoming runs: waiting runs, and the next tick of each scheduled job, with overdue ones first.

Only the next tick of a job is computed, and only after the job or its planning changed, because with many jobs that
costs more than reading the rows.
"""

import heapq
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from tsuzuki.model.job import Job, JobEdition
from tsuzuki.services.explain import HELD_BY_ITS_JOB, Cause, waiting_reasons
from tsuzuki.services.liveness import Liveness
from tsuzuki.store import jobs
from tsuzuki.store.runs import queue, runs
from tsuzuki.store.sql.database import Database

PAUSED_MAX = 100
"""Runs of disabled jobs that are passed over."""

_PAUSED = frozenset({Cause.PAUSED, Cause.JOB_REMOVED})


@dataclass(frozen=True, kw_only=True)
class UpcomingItem:
    """A waiting run, or a tick that becomes one (`run_id` is None). A run that is due and waits because of its own job
    (`cause`), such as for its limit, is not late."""

    job: str
    due_at: datetime
    run_id: int | None
    is_late: bool
    cause: Cause | None = None


class _NextTick(NamedTuple):
    edition: JobEdition
    planned_until: datetime
    due_at: datetime


class Upcoming:
    def __init__(self, *, database: Database) -> None:
        self._database = database
        self._liveness = Liveness(database=database)
        self._lock = threading.Lock()
        self._jobs: dict[int, Job] = {}
        self._next: dict[int, _NextTick] = {}

    def find(self, *, limit: int, with_paused: bool = False) -> list[UpcomingItem]:
        """The first by time, at most `limit`. A job whose schedule this machine cannot read is left out; so are due
        runs of disabled jobs, unless they are asked for."""
        with self._lock:
            known = self._jobs
        with self._database.read() as connection:
            now = self._database.now(connection)
            waiting = runs.get_many(
                connection, queue.first_waiting(connection, limit=limit + PAUSED_MAX)
            )
            scheduled = jobs.find_scheduled(connection, known=known)
            due = [run for run in waiting if run.scheduled_for <= now]
            reasons = waiting_reasons(connection, due, now=now, liveness=self._liveness)
        causes = {run_id: reason.cause for run_id, reason in reasons.items()}
        left_out = frozenset() if with_paused else _PAUSED
        found = [
            (run.scheduled_for, run.job_name, run.id)
            for run in waiting
            if causes.get(run.id) not in left_out
        ]
        found += self._ticks(scheduled, limit)
        first = heapq.nsmallest(limit, found, key=lambda item: item[:2])
        return [
            UpcomingItem(
                job=job,
                due_at=due_at,
                run_id=run_id or None,
                is_late=due_at <= now and causes.get(run_id) not in HELD_BY_ITS_JOB,
                cause=causes.get(run_id),
            )
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
