"""The source's daily quota: a number of calls per day of a time zone, shared by all jobs and processes.

A call is counted in a transaction that is committed before the call is made. So even after a crash, no more calls
are made than the limit allows; at worst, two counted calls were never made.
"""

from collections import Counter, deque
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from tsuzuki.collectors.books.queries import quota
from tsuzuki.collectors.kit.zone_day import ZoneDay, day_of
from tsuzuki.store.sql.database import Connection

CLOCKS_DIFFER = timedelta(minutes=5)
"""By how much the clock of the source may be behind ours."""


@dataclass(frozen=True, kw_only=True)
class Allowance:
    """The rule: so many calls on each day of a zone."""

    calls_per_day: int
    zone: ZoneInfo

    def day_of(self, now: datetime) -> ZoneDay:
        """The day as the source counts it."""
        return day_of(now, self.zone)

    def refused_day(self, reserved_at: datetime) -> ZoneDay:
        """The day that a refusal is about, by when its call was reserved. In the first minutes of a day that is the
        day before: the source may still be in it, and a day that is marked as refused is lost for every job."""
        return self.day_of(reserved_at - CLOCKS_DIFFER)


@dataclass(frozen=True, kw_only=True)
class QuotaUse:
    """What is left of a day, as `tsuzuki books quota` shows it."""

    day: str
    calls: int
    limit: int
    resets_at: datetime
    refused_at: datetime | None
    """When the source itself said that the day's allowance is used up."""

    @property
    def left(self) -> int:
        return 0 if self.refused_at else max(self.limit - self.calls, 0)


class Calls:
    """The calls that one run has reserved and not made yet. It reserves no more than it is about to
    need: another job cannot use them."""

    def __init__(self, allowance: Allowance) -> None:
        self._allowance = allowance
        self._reserved_at: deque[datetime] = deque()

    def __len__(self) -> int:
        return len(self._reserved_at)

    def take(self, connection: Connection, now: datetime, *, up_to: int) -> None:
        """Reserve calls of today until there are `up_to`, or as many as the allowance has left. They may be
        made once this transaction is committed."""
        day = self._day_name(now)
        if any(self._day_name(moment) != day for moment in self._reserved_at):
            self.give_back(connection)
        while len(self._reserved_at) < up_to and quota.reserve(
            connection, day, limit=self._allowance.calls_per_day
        ):
            self._reserved_at.append(now)

    def spend(self) -> datetime:
        """One reserved call is made now; when it was reserved."""
        return self._reserved_at.popleft()

    def give_back(self, connection: Connection) -> None:
        """Release the calls that will not be made, each on the day that it was reserved for."""
        for day, calls in Counter(map(self._day_name, self._reserved_at)).items():
            quota.release(connection, day, calls)
        self._reserved_at.clear()

    def _day_name(self, moment: datetime) -> str:
        return self._allowance.day_of(moment).name


def use_of_today(connection: Connection, allowance: Allowance, now: datetime) -> QuotaUse:
    day = allowance.day_of(now)
    calls, refused_at = quota.get_use(connection, day.name)
    return QuotaUse(
        day=day.name,
        calls=calls,
        limit=allowance.calls_per_day,
        resets_at=day.ends_at,
        refused_at=refused_at,
    )
