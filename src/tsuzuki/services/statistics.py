"""How runs ended over time: closed hours from the rollups, the open ones counted from the history.

What it costs depends on what ended in the last seconds, not on how many runs there are (`hour_counts`); the first
question of a process also on the hours asked for, and on what ended since the last closed hour.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from tsuzuki.model.errors import UsageError
from tsuzuki.services.hour_counts import HourCounts, hours_between
from tsuzuki.services.lookup import require_job
from tsuzuki.services.outcomes import Outcomes
from tsuzuki.store import jobs, rollups
from tsuzuki.store.rollups import HOUR, HourRow, hour_of
from tsuzuki.store.sql.database import Connection, Database

__all__ = ["DayOfRuns", "HourOfRuns", "Outcomes", "RunStatistics"]

HOURS_MAX = 24 * 400


@dataclass(frozen=True, kw_only=True)
class HourOfRuns:
    """What ended in one hour."""

    hour: datetime
    outcomes: Outcomes


@dataclass(frozen=True, kw_only=True)
class DayOfRuns:
    """What ended on one day of a zone: in the hours from `start` to `end`, itself not included."""

    day: date
    start: datetime
    end: datetime
    outcomes: Outcomes


class RunStatistics:
    def __init__(self, *, database: Database) -> None:
        self._database = database
        self._counts = 0, HourCounts()
        """What is kept in memory, and how many corrections of closed hours it has."""

    def by_hour(
        self, *, hours: int = 24, job_name: str | None = None, end: datetime | None = None
    ) -> list[HourOfRuns]:
        """The last `hours` hours up to now, or up to `end`: each is there, oldest first, empty ones too."""
        _check(hours)
        with self._database.read() as connection:
            now = self._database.now(connection)
            last = hour_of(end or now)
            first = last - HOUR * (hours - 1)
            job_id = None if job_name is None else require_job(connection, job_name).id
            found = self._hours(connection, first, last + HOUR, now, job_id)
        return [
            HourOfRuns(hour=hour, outcomes=found.get(hour) or Outcomes())
            for hour in hours_between(first, last + HOUR)
        ]

    def by_job(self, *, hours: int = 24) -> dict[str, Outcomes]:
        """The same hours together, for each job that had a run end in them."""
        _check(hours)
        with self._database.read() as connection:
            now = self._database.now(connection)
            first, end = hour_of(now) - HOUR * (hours - 1), hour_of(now) + HOUR
            counts, closed = self._counted(connection, first, end)
            found = _with_open(
                counts.closed_by_job(connection, first, closed),
                counts.open(connection, closed, end, now=now),
            )
            names = jobs.names_by_id(connection)
        return {names[job_id]: outcomes for job_id, outcomes in found.items() if job_id in names}

    def of_jobs(self, job_ids: Collection[int], *, hours: int) -> dict[int, Outcomes]:
        """The same hours for these jobs; each is there, with nothing in it if no run ended."""
        _check(hours)
        if not job_ids:
            return {}
        with self._database.read() as connection:
            now = self._database.now(connection)
            first, end = hour_of(now) - HOUR * (hours - 1), hour_of(now) + HOUR
            counts, closed = self._counted(connection, first, end)
            ids = tuple(sorted(job_ids))
            found = _with_open(
                counts.closed_of_jobs(connection, first, closed, ids),
                counts.open(connection, closed, end, now=now),
            )
        return {job_id: found.get(job_id) or Outcomes() for job_id in job_ids}

    def by_day(self, job_name: str, *, days: int, zone: tzinfo) -> list[DayOfRuns]:
        """The last days of a job in a zone, today included, oldest first; a day has the hours that start in it."""
        _check(days * 24)
        with self._database.read() as connection:
            now = self._database.now(connection)
            today = now.astimezone(zone).date()
            dates = [today - timedelta(days=days - 1 - number) for number in range(days)]
            found = {day: Outcomes() for day in dates}
            start, end = _first_hour(dates[0], zone), hour_of(now) + HOUR
            job_id = require_job(connection, job_name).id
            for hour, outcomes in self._hours(connection, start, end, now, job_id).items():
                if (day := hour.astimezone(zone).date()) in found:
                    found[day].merge(outcomes)
        return [
            DayOfRuns(
                day=day,
                start=_first_hour(day, zone),
                end=_first_hour(day + timedelta(days=1), zone),
                outcomes=outcomes,
            )
            for day, outcomes in found.items()
        ]

    def _hours(
        self,
        connection: Connection,
        start: datetime,
        end: datetime,
        now: datetime,
        job_id: int | None,
    ) -> dict[datetime, Outcomes]:
        """Of one job, or of all; hours in which nothing ended may be missing."""
        counts, closed = self._counted(connection, start, end)
        if job_id is None:
            found = dict(counts.closed(connection, start, closed))
        else:
            found = dict(counts.closed_of_job(connection, start, closed, job_id))
        for hour, count in counts.open(connection, closed, end, now=now):
            if job_id in (None, count.job_id):
                found.setdefault(hour, Outcomes()).add(count)
        return found

    def _counted(
        self, connection: Connection, start: datetime, end: datetime
    ) -> tuple[HourCounts, datetime]:
        """What is kept of these hours, and up to which of them the counts are stored."""
        progress = rollups.progress(connection) or rollups.RollupProgress(start, corrections=0)
        corrections, counts = self._counts
        if progress.corrections != corrections:
            # What another thread still reads as it was before the correction goes into the old one.
            self._counts = _, counts = progress.corrections, HourCounts()
        return counts, min(max(progress.until, start), end)


def _with_open(
    closed: Mapping[int, Outcomes], open_hours: Iterable[HourRow]
) -> dict[int, Outcomes]:
    """By job: what is kept of closed hours, and the open ones."""
    found: dict[int, Outcomes] = {}
    for _, count in open_hours:
        found.setdefault(count.job_id, Outcomes()).add(count)
    for job_id, outcomes in closed.items():
        if job_id in found:
            found[job_id].merge(outcomes)
        else:
            found[job_id] = outcomes
    return found


def _first_hour(day: date, zone: tzinfo) -> datetime:
    """The first hour in UTC that starts on a day of a zone."""
    midnight = datetime.combine(day, time(), zone).astimezone(UTC)
    whole = hour_of(midnight)
    return whole if whole == midnight else whole + HOUR


def _check(hours: int) -> None:
    if not 1 <= hours <= HOURS_MAX:
        raise UsageError(f"hours must be from 1 to {HOURS_MAX}, not {hours}", code="hours")
