"""How runs ended over time: closed hours from the rollups, the open ones counted from the history.

What it costs depends on what ended in the last seconds, not on how many runs there are (`hour_counts`); the first
question of a process also on the hours asked for, and on what ended since the last closed hour.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from tsuzuki.model.durations import percentile
from tsuzuki.model.errors import UsageError
from tsuzuki.model.states import RunState
from tsuzuki.services.hour_counts import HourCounts
from tsuzuki.services.lookup import require_job
from tsuzuki.store import jobs, rollups
from tsuzuki.store.rollups import HOUR, HourCount, HourRow, hour_of
from tsuzuki.store.sql.database import Connection, Database

HOURS_MAX = 24 * 400


@dataclass(kw_only=True)
class Outcomes:
    """How many runs ended how, and how long they took."""

    runs: Counter[RunState] = field(default_factory=Counter)
    buckets: Counter[int] = field(default_factory=Counter)
    seconds: float = 0.0

    def add(self, count: HourCount) -> None:
        self.runs[count.outcome] += count.runs
        self.buckets[count.bucket] += count.runs
        self.seconds += count.seconds

    def duration(self, share: float) -> float | None:
        """The seconds that `share` of the started runs did not exceed, to within a factor of two."""
        return percentile(self.buckets, share)


@dataclass(frozen=True, kw_only=True)
class HourOfRuns:
    """What ended in one hour."""

    hour: datetime
    outcomes: Outcomes


class RunStatistics:
    def __init__(self, *, database: Database) -> None:
        self._database = database
        self._counts = HourCounts()

    def by_hour(
        self, *, hours: int = 24, job_name: str | None = None, end: datetime | None = None
    ) -> list[HourOfRuns]:
        """The last `hours` hours up to now, or up to `end`: each is there, oldest first, empty ones too."""
        _check(hours)
        with self._database.read() as connection:
            now = self._database.now(connection)
            last = hour_of(end or now)
            first = last - HOUR * (hours - 1)
            found = {first + HOUR * number: Outcomes() for number in range(hours)}
            job_id = None if job_name is None else require_job(connection, job_name).id
            closed = _closed_until(connection, first, last + HOUR)
            for hour, count in self._closed(connection, first, closed, job_id):
                found[hour].add(count)
            for hour, count in self._open(connection, closed, last + HOUR, now):
                if job_id in (None, count.job_id):
                    found[hour].add(count)
        return [HourOfRuns(hour=hour, outcomes=outcomes) for hour, outcomes in found.items()]

    def by_job(self, *, hours: int = 24) -> dict[str, Outcomes]:
        """The same hours together, for each job that had a run end in them."""
        _check(hours)
        with self._database.read() as connection:
            now = self._database.now(connection)
            first, end = hour_of(now) - HOUR * (hours - 1), hour_of(now) + HOUR
            closed = _closed_until(connection, first, end)
            found: dict[int, Outcomes] = {}
            for count in self._counts.closed_by_job(connection, first, closed):
                found.setdefault(count.job_id, Outcomes()).add(count)
            for _, count in self._open(connection, closed, end, now):
                found.setdefault(count.job_id, Outcomes()).add(count)
            names = {job.id: job.spec.name for job in jobs.find(connection)}
        return {names[job_id]: outcomes for job_id, outcomes in found.items() if job_id in names}

    def _closed(
        self, connection: Connection, start: datetime, end: datetime, job_id: int | None
    ) -> Iterable[HourRow]:
        if job_id is None:
            return self._counts.closed(connection, start, end)
        return self._counts.closed_of_job(connection, start, end, job_id)

    def _open(
        self, connection: Connection, start: datetime, end: datetime, now: datetime
    ) -> Iterable[HourRow]:
        return self._counts.open(connection, start, end, now=now) if start < end else ()


def _closed_until(connection: Connection, start: datetime, end: datetime) -> datetime:
    """Up to which hour of these the counts are stored."""
    closed = rollups.counted_until(connection)
    return start if closed is None else min(max(closed, start), end)


def _check(hours: int) -> None:
    if not 1 <= hours <= HOURS_MAX:
        raise UsageError(f"hours are from 1 to {HOURS_MAX}, not {hours}", code="hours")
