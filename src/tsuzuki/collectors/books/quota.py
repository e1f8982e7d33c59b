"""The daily quota of the source: so many calls on each day of a zone, shared by every job and process.

A call is counted before it is sent, in a transaction that is committed by then. So after any crash
no more calls leave than the limit allows; at worst two were counted that never left.
"""

from collections import Counter, deque
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from tsuzuki.collectors.books.queries import quota
from tsuzuki.collectors.kit.zone_day import ZoneDay, day_of
from tsuzuki.store.sql.database import Connection


@dataclass(frozen=True, kw_only=True)
class Allowance:
    """The rule: so many calls on each day of a zone."""

    calls_per_day: int
    zone: ZoneInfo

    def day_of(self, now: datetime) -> ZoneDay:
        """The day as the source counts it."""
        return day_of(now, self.zone)


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
        self._days: deque[str] = deque()

    def __len__(self) -> int:
        return len(self._days)

    def take(self, connection: Connection, now: datetime, *, up_to: int) -> None:
        """Reserve calls of today until there are `up_to`, or as many as the allowance has left. They may be
        made once this transaction is committed."""
        day = self._allowance.day_of(now).name
        if any(taken_on != day for taken_on in self._days):
            self.give_back(connection)
        while len(self._days) < up_to and quota.reserve(
            connection, day, limit=self._allowance.calls_per_day
        ):
            self._days.append(day)

    def spend(self) -> None:
        """One reserved call is made now."""
        self._days.popleft()

    def give_back(self, connection: Connection) -> None:
        """Release the calls that will not be made, each on the day that it was reserved for."""
        for day, calls in Counter(self._days).items():
            quota.release(connection, day, calls)
        self._days.clear()


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
