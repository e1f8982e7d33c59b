"""How often the source may still be asked today: one row per day, shared by every job and process.

A call is counted before it is sent, in a transaction that is committed by then. So whatever crashes,
no more calls leave than the limit allows; at worst two were counted that never left.
"""

from collections import Counter, deque
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, select, text
from sqlalchemy.dialects import postgresql, sqlite

from tsuzuki.collectors.books.tables import books_quota_days
from tsuzuki.store.sql.plain_sql import plain


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


_RESERVE = plain(
    "INSERT INTO books_quota_days (day, calls) VALUES (:day, 1)"
    " ON CONFLICT (day) DO UPDATE SET calls = books_quota_days.calls + 1"
    " WHERE books_quota_days.calls < :limit AND books_quota_days.refused_at IS NULL"
)


def reserve(connection: Connection, allowance: Allowance, now: datetime) -> bool:
    """Count one call, if there is one left."""
    limit = allowance.calls_per_day
    if limit < 1:
        return False
    today = {"day": allowance.day_of(now).name, "limit": limit}
    return connection.exec_driver_sql(_RESERVE[connection.dialect.name], today).rowcount == 1


_GIVE_BACK = text("UPDATE books_quota_days SET calls = calls - :calls WHERE day = :day")


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
            connection.execute(_GIVE_BACK, {"day": day, "calls": calls})
        self._days.clear()


def note_refusal(connection: Connection, allowance: Allowance, now: datetime) -> None:
    """The source says that the day is used up, whatever we counted: nobody asks again today."""
    flavour = sqlite if connection.dialect.name == "sqlite" else postgresql
    statement = flavour.insert(books_quota_days).values(
        day=allowance.day_of(now).name, calls=0, refused_at=now
    )
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=[books_quota_days.c.day],
            set_={"refused_at": statement.excluded.refused_at},
        )
    )


def use_of_today(connection: Connection, allowance: Allowance, now: datetime) -> QuotaUse:
    day = allowance.day_of(now)
    statement = select(books_quota_days).where(books_quota_days.c.day == day.name)
    row = connection.execute(statement).one_or_none()
    return QuotaUse(
        day=day.name,
        calls=row.calls if row else 0,
        limit=allowance.calls_per_day,
        resets_at=day.ends_at,
        refused_at=row.refused_at if row else None,
    )
