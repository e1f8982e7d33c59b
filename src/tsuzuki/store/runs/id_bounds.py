"""Between which ids runs were created, found by bisection within one statement: ids grow with time, as far as processes
store at the same time."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Connection, Select, bindparam, case, func, select

from tsuzuki.store.schema.tables import job_runs
from tsuzuki.store.sql.prepared import execute
from tsuzuki.store.sql.types import UtcTime

# Two subqueries: SQLite would read the whole index for both ends in one.
_ENDS = select(
    select(func.min(job_runs.c.id)).scalar_subquery(),
    select(func.max(job_runs.c.id)).scalar_subquery(),
)


def oldest_and_newest(connection: Connection) -> tuple[int, int] | None:
    """The first and the last id; None without a run."""
    oldest, newest = execute(connection, _ENDS).one()
    return None if oldest is None else (oldest, newest)


def first_since(connection: Connection, moment: datetime, low: int, high: int) -> int:
    """The first id from `low` on whose run was created at or after a moment; `high` if none was."""
    values = {"low": low, "high": high, "moment": moment}
    found: int = execute(connection, _FIRST_SINCE, values).scalar_one()
    return found


def _bisection() -> Select[Any]:
    """Halves the ids from `low` to `high` until none is between them."""
    bounds = select(
        bindparam("low", type_=BigInteger()).label("low"),
        bindparam("high", type_=BigInteger()).label("high"),
    ).cte("bounds", recursive=True)
    middle = (bounds.c.low + bounds.c.high) // 2
    created_at = (
        select(job_runs.c.created_at)
        .where(job_runs.c.id >= middle)
        .order_by(job_runs.c.id)
        .limit(1)
        .scalar_subquery()
    )
    # Without a run from the middle on neither is true, and the lower half is kept.
    is_before = created_at < bindparam("moment", type_=UtcTime())
    halves = select(
        case((is_before, middle + 1), else_=bounds.c.low),
        case((is_before, bounds.c.high), else_=middle),
    ).where(bounds.c.low < bounds.c.high)
    reached = bounds.union_all(halves)
    return select(reached.c.high).where(reached.c.low >= reached.c.high)


_FIRST_SINCE = _bisection()
