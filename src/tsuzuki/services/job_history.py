"""Recent results of jobs, and whether they keep the intervals of their schedules."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tsuzuki.model.durations import DURATIONS_MIN
from tsuzuki.model.job import Job
from tsuzuki.model.schedule import UnreadableSchedule, upcoming
from tsuzuki.model.states import RunState, Trigger
from tsuzuki.store.runs import recent_runs
from tsuzuki.store.runs.recent_runs import RecentRun
from tsuzuki.store.sql.database import Database

__all__ = ["Cadence", "JobHistory", "JobPast", "RecentRun"]

TICKS_MAX = 200
STARTS_MIN = 3
"""Fewer starts say nothing about a cadence."""
IS_KEPT_SHARE = 1.5


@dataclass(frozen=True, kw_only=True)
class Cadence:
    """Over the same stretch of time: how long the schedule leaves between two ticks, and how long it was between
    two runs that were started for one."""

    declared_seconds: float
    kept_seconds: float
    starts: int

    @property
    def is_kept(self) -> bool:
        return self.kept_seconds <= self.declared_seconds * IS_KEPT_SHARE


DURATIONS_OF = 20
"""Durations are told of the newest runs, up to this many, wherever they are told."""


@dataclass(frozen=True, kw_only=True)
class Durations:
    """How long the newest runs took that were started: exact."""

    runs: int
    p50_seconds: float
    p95_seconds: float


def durations_of(ended: Sequence[RecentRun]) -> Durations | None:
    """Of the newest of these runs, which are given oldest first; None if too few were started."""
    newest = ended[-DURATIONS_OF:]
    seconds = sorted(run.seconds for run in newest if run.seconds is not None)
    if len(seconds) < DURATIONS_MIN:
        return None

    def at(share: float) -> float:
        return seconds[math.ceil(share * len(seconds)) - 1]

    return Durations(runs=len(seconds), p50_seconds=at(0.5), p95_seconds=at(0.95))


@dataclass(frozen=True, kw_only=True)
class JobPast:
    """`ended` are the newest runs that have ended, oldest first; `live` counts those that have not."""

    ended: Sequence[RecentRun]
    live: Mapping[RunState, int]
    cadence: Cadence | None

    @property
    def durations(self) -> Durations | None:
        return durations_of(self.ended)


class JobHistory:
    def __init__(self, *, database: Database) -> None:
        self._database = database

    def of_jobs(self, jobs: Collection[Job], *, limit: int) -> dict[int, JobPast]:
        """The newest `limit` runs of each of these jobs, by the id of the job."""
        ids = sorted(job.id for job in jobs)
        if not ids:
            return {}
        with self._database.read() as connection:
            ended = recent_runs.newest_ended(connection, ids, limit=limit)
            live = recent_runs.live_counts(connection, ids)
        return {
            job.id: JobPast(
                ended=ended[job.id], live=live[job.id], cadence=cadence_of(job, ended[job.id])
            )
            for job in jobs
        }


def cadence_of(job: Job, ended: Sequence[RecentRun]) -> Cadence | None:
    """None without a schedule, or if too few runs were started since the job was changed."""
    schedule = job.spec.schedule
    if schedule is None or isinstance(schedule, UnreadableSchedule):
        return None
    starts = sorted(
        run.scheduled_for
        for run in ended
        if run.trigger is Trigger.TIME
        and run.started_at is not None
        and run.scheduled_for >= job.updated_at
    )
    if len(starts) < STARTS_MIN:
        return None
    ticks = _ticks(job, starts[0], starts[-1])
    if len(ticks) < 2:
        return None
    return Cadence(
        declared_seconds=_gap(ticks[0], ticks[-1], len(ticks)),
        kept_seconds=_gap(starts[0], starts[-1], len(starts)),
        starts=len(starts),
    )


def _ticks(job: Job, first: datetime, last: datetime) -> list[datetime]:
    """Those of the schedule from one start to another; the first ones if there are very many."""
    schedule = job.spec.schedule
    if schedule is None:
        return []
    found: list[datetime] = []
    after = first - timedelta(microseconds=1)
    while len(found) < TICKS_MAX:
        more = [tick for tick in upcoming(schedule, after, 20) if tick <= last]
        found += more
        if len(more) < 20:
            break
        after = more[-1]
    return found


def _gap(first: datetime, last: datetime, count: int) -> float:
    return (last - first).total_seconds() / (count - 1)
