"""The daily quota of the source: one row per day, shared by every job and process.

A call is counted before it is sent, in a transaction that is committed by then. So after any crash
no more calls leave than the limit allows; at worst two were counted that never left.
"""

from collections import Counter, deque
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, Integer, Text, bindparam, select, update
from sqlalchemy.engine import Dialect

from tsuzuki.collectors.books.tables import books_quota_days
from tsuzuki.store.sql.dialect import insert_into
from tsuzuki.store.sql.prepared import execute
from tsuzuki.store.sql.types import UtcTime

_DAY = bindparam("that_day", type_=Text())


@dataclass(frozen=True, kw_only=True)
class QuotaDay:
    """A day as the source counts it."""

    name: str
    ends_at: datetime


@dataclass(frozen=True, kw_only=True)
class Allowance:
    """The rule: so many calls on each day of a zone."""

    calls_per_day: int
    zone: ZoneInfo

    def day_of(self, now: datetime) -> QuotaDay:
        day = now.astimezone(self.zone).date()
        midnight = datetime.combine(day + timedelta(days=1), time.min, tzinfo=self.zone)
        return QuotaDay(name=day.isoformat(), ends_at=midnight.astimezone(UTC))


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


def reserve(connection: Connection, allowance: Allowance, now: datetime) -> bool:
    """Count one call, if there is one left."""
    limit = allowance.calls_per_day
    if limit < 1:
        return False
    today = {"that_day": allowance.day_of(now).name, "limit": limit}
    return execute(connection, _reserve(connection.dialect), today).rowcount == 1


@lru_cache
def _reserve(dialect: Dialect) -> Any:
    calls = books_quota_days.c.calls
    return (
        insert_into(dialect, books_quota_days)
        .values(day=_DAY, calls=1)
        .on_conflict_do_update(
            index_elements=[books_quota_days.c.day],
            set_={"calls": calls + 1},
            where=(calls < bindparam("limit", type_=Integer()))
            & books_quota_days.c.refused_at.is_(None),
        )
    )


_GIVE_BACK = (
    update(books_quota_days)
    .where(books_quota_days.c.day == _DAY)
    .values(calls=books_quota_days.c.calls - bindparam("unused", type_=Integer()))
)


class Calls:
    """What one run has taken out of the allowance and not asked yet. It keeps no more than it is
    about to need: what it holds, another job cannot have."""

    def __init__(self, allowance: Allowance) -> None:
        self._allowance = allowance
        self._days: deque[str] = deque()

    def __len__(self) -> int:
        return len(self._days)

    def take(self, connection: Connection, now: datetime, *, up_to: int) -> None:
        """Have so many calls in hand, or as many as there are, all of them today's. They may be made
        when this transaction is committed."""
        day = self._allowance.day_of(now).name
        if any(taken_on != day for taken_on in self._days):
            self.give_back(connection)
        while len(self._days) < up_to and reserve(connection, self._allowance, now):
            self._days.append(day)

    def spend(self) -> None:
        """One of them is made now."""
        self._days.popleft()

    def give_back(self, connection: Connection) -> None:
        """The rest will not be made: each goes back to the day it was taken from."""
        for day, calls in Counter(self._days).items():
            execute(connection, _GIVE_BACK, {"that_day": day, "unused": calls})
        self._days.clear()


def note_refusal(connection: Connection, allowance: Allowance, now: datetime) -> None:
    """The source says that the day is used up, so no job asks again today."""
    values = {"that_day": allowance.day_of(now).name, "refused_at": now}
    execute(connection, _refuse(connection.dialect), values)


@lru_cache
def _refuse(dialect: Dialect) -> Any:
    statement = insert_into(dialect, books_quota_days).values(
        day=_DAY, calls=0, refused_at=bindparam("refused_at", type_=UtcTime())
    )
    return statement.on_conflict_do_update(
        index_elements=[books_quota_days.c.day],
        set_={"refused_at": statement.excluded.refused_at},
    )


_USE = select(books_quota_days.c.calls, books_quota_days.c.refused_at).where(
    books_quota_days.c.day == _DAY
)


def use_of_today(connection: Connection, allowance: Allowance, now: datetime) -> QuotaUse:
    day = allowance.day_of(now)
    row = execute(connection, _USE, {"that_day": day.name}).one_or_none()
    calls, refused_at = row or (0, None)
    return QuotaUse(
        day=day.name,
        calls=calls,
        limit=allowance.calls_per_day,
        resets_at=day.ends_at,
        refused_at=refused_at,
    )
