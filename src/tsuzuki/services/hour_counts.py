"""Counts of ended runs by hour, kept in memory as far as they cannot change any more.

A closed hour changes only by a correction, after which counts are kept anew (`statistics`), so it is read and added up
once. Of the open hours what is settled,
because its transactions were committed long ago, is counted once from the history; only the last seconds are counted
each time.
"""

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from tsuzuki.model.states import Outcome
from tsuzuki.services.outcomes import Outcomes
from tsuzuki.store import rollups
from tsuzuki.store.rollups import HOUR, HourCount, HourRow, hour_of
from tsuzuki.store.sql.database import Connection

SETTLED_AFTER = timedelta(seconds=10)
"""A move is stored with the time of its statement, and committed a little later. What takes longer is counted when
its hour is closed."""

KEPT_OPEN = timedelta(days=2)
"""For how long what was counted of open hours is kept after they were closed."""

KEPT_MAX = 16
"""Answers about single jobs, and by job, that are kept."""

_Key = tuple[int, Outcome, int]
_Of = TypeVar("_Of")


class HourCounts:
    """Shared by all threads of a process. The outcomes of closed hours that it gives are to be read only."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._closed: dict[datetime, Outcomes] = {}
        self._kept: OrderedDict[tuple[object, ...], Mapping[Any, Outcomes]] = OrderedDict()
        self._open = _OpenHours()

    def closed(
        self, connection: Connection, start: datetime, end: datetime
    ) -> dict[datetime, Outcomes]:
        """Of all jobs together, by closed hour."""
        with self._lock:
            known = self._closed
            missing = [hour for hour in hours_between(start, end) if hour not in known]
            if missing:
                read = {hour: Outcomes() for hour in missing}
                for row in rollups.sums_by_hour(connection, missing[0], missing[-1] + HOUR):
                    if row.hour in read:  # what lies between may be known
                        read[row.hour].add(row.counted)
                known.update(read)
            return {hour: known[hour] for hour in hours_between(start, end)}

    def closed_by_job(
        self, connection: Connection, start: datetime, end: datetime
    ) -> Mapping[int, Outcomes]:
        """Of these closed hours together, by job."""
        return self._keep(
            (start, end), lambda: _by_job(rollups.sums_by_job(connection, start, end))
        )

    def closed_of_jobs(
        self, connection: Connection, start: datetime, end: datetime, job_ids: tuple[int, ...]
    ) -> Mapping[int, Outcomes]:
        """The same for some jobs, such as those of one page of a list."""
        return self._keep(
            (start, end, job_ids),
            lambda: _by_job(rollups.sums_of_jobs(connection, start, end, job_ids=list(job_ids))),
        )

    def closed_of_job(
        self, connection: Connection, start: datetime, end: datetime, job_id: int
    ) -> Mapping[datetime, Outcomes]:
        """Of one job, by closed hour; those in which nothing ended are missing."""
        hours = list(hours_between(start, end))
        return self._keep(
            (start, end, job_id), lambda: _by_hour(rollups.hours_of_job(connection, hours, job_id))
        )

    def _keep(
        self, key: tuple[object, ...], read: Callable[[], Mapping[_Of, Outcomes]]
    ) -> Mapping[_Of, Outcomes]:
        with self._lock:
            if key not in self._kept:
                self._kept[key] = read()
            self._kept.move_to_end(key)
            while len(self._kept) > KEPT_MAX:
                self._kept.popitem(last=False)
            return self._kept[key]

    def open(
        self, connection: Connection, start: datetime, end: datetime, *, now: datetime
    ) -> list[HourRow]:
        """By job and hour, from the hour `start` on, before which every hour is closed."""
        if start >= end:
            return []
        with self._lock:
            return list(self._open.count(connection, start, end, now=now))


class _OpenHours:
    def __init__(self) -> None:
        self._settled: dict[datetime, Counter[_Key]] = {}
        self._seconds: dict[datetime, dict[_Key, float]] = {}
        self._from = self._until = datetime.max.replace(tzinfo=UTC)
        """Between which times what is settled was counted."""
        self._asked_at = datetime.min.replace(tzinfo=UTC)

    def count(
        self, connection: Connection, start: datetime, end: datetime, *, now: datetime
    ) -> Iterator[HourRow]:
        is_put_back = now < self._asked_at
        self._asked_at = now
        if start < self._from or is_put_back or start - self._from > KEPT_OPEN:
            self._settled, self._seconds = {}, {}
            self._from = self._until = start
        settled = min(now - SETTLED_AFTER, end)
        for hour, counts in _ended(connection, self._until, settled):
            self._add(hour, counts)
            self._until = min(hour + HOUR, settled)  # at once: the next hour may not be read
        for hour in hours_between(start, end):
            for key, number in self._settled.get(hour, {}).items():
                yield HourRow(hour, HourCount(*key, number, self._seconds[hour][key]))
        for hour, counts in _ended(connection, max(self._until, start), end):
            yield from (HourRow(hour, count) for count in counts)

    def _add(self, hour: datetime, counts: Iterable[HourCount]) -> None:
        runs = self._settled.setdefault(hour, Counter())
        seconds = self._seconds.setdefault(hour, {})
        for count in counts:
            key = (count.job_id, count.outcome, count.bucket)
            runs[key] += count.runs
            seconds[key] = seconds.get(key, 0.0) + count.seconds


def _ended(
    connection: Connection, start: datetime, end: datetime
) -> Iterator[tuple[datetime, list[HourCount]]]:
    """What ended between two times, by hour."""
    while start < end:
        hour = hour_of(start)
        stop = min(hour + HOUR, end)
        yield hour, rollups.ended_between(connection, start, stop)
        start = stop


def _by_job(counts: Iterable[HourCount]) -> dict[int, Outcomes]:
    found: dict[int, Outcomes] = {}
    for count in counts:
        found.setdefault(count.job_id, Outcomes()).add(count)
    return found


def _by_hour(rows: Iterable[HourRow]) -> dict[datetime, Outcomes]:
    found: dict[datetime, Outcomes] = {}
    for hour, count in rows:
        found.setdefault(hour, Outcomes()).add(count)
    return found


def hours_between(start: datetime, end: datetime) -> Iterator[datetime]:
    while start < end:
        yield start
        start += HOUR
