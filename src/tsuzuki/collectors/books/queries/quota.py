"""The statements over the days of the quota: one row per day, by its name."""

from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Integer, Text, bindparam, select, update
from sqlalchemy.engine import Dialect

from tsuzuki.collectors.books.tables import books_quota_days
from tsuzuki.store.sql.dialect import insert_into
from tsuzuki.store.sql.prepared import execute
from tsuzuki.store.sql.types import UtcTime

_DAY = bindparam("that_day", type_=Text())
_RELEASE = (
    update(books_quota_days)
    .where(books_quota_days.c.day == _DAY)
    .values(calls=books_quota_days.c.calls - bindparam("unused", type_=Integer()))
)
_SELECT_USE = select(books_quota_days.c.calls, books_quota_days.c.refused_at).where(
    books_quota_days.c.day == _DAY
)


def reserve(connection: Connection, day: str, *, limit: int) -> bool:
    """Count one call, if there is one left."""
    if limit < 1:
        return False
    values = {"that_day": day, "limit": limit}
    return execute(connection, _reserve(connection.dialect), values).rowcount == 1


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


def release(connection: Connection, day: str, calls: int) -> None:
    """Count some reserved calls no longer."""
    execute(connection, _RELEASE, {"that_day": day, "unused": calls})


def mark_refused(connection: Connection, day: str, *, now: datetime) -> None:
    """The source says that the day is used up, so no job asks again today."""
    execute(connection, _mark_refused(connection.dialect), {"that_day": day, "refused_at": now})


@lru_cache
def _mark_refused(dialect: Dialect) -> Any:
    statement = insert_into(dialect, books_quota_days).values(
        day=_DAY, calls=0, refused_at=bindparam("refused_at", type_=UtcTime())
    )
    return statement.on_conflict_do_update(
        index_elements=[books_quota_days.c.day],
        set_={"refused_at": statement.excluded.refused_at},
    )


def get_use(connection: Connection, day: str) -> tuple[int, datetime | None]:
    """The calls of a day, and when the source said that it is used up."""
    row = execute(connection, _SELECT_USE, {"that_day": day}).one_or_none()
    return (0, None) if row is None else (row[0], row[1])
