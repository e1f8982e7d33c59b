"""A broken stream of changes on SQLite: ordered by time, as if no clock were ever set back.

Rows with the same time are still ordered by their number, because several transactions may commit at the same simulated
moment. So only clock steps make this order wrong.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from unittest.mock import patch

from sqlalchemy import BigInteger, Connection, bindparam, select, tuple_

from tsuzuki.store.runs import changes
from tsuzuki.store.runs.changes import FIRST, ChangesPage, Key, Position
from tsuzuki.store.schema.tables import job_run_transitions
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.prepared import execute
from tsuzuki.store.sql.types import UtcTime

TOLERANCE = timedelta(seconds=1)
"""A row that is further ahead of the clock shows that the clock was set back."""

_MOVES = job_run_transitions.c
_ORDER = (_MOVES.at, _MOVES.seq)
_CLOCK = select(db_now())
_LAST = select(*_ORDER).order_by(_MOVES.at.desc(), _MOVES.seq.desc()).limit(1)


def _place(name: str) -> tuple_:
    return tuple_(
        bindparam(f"{name}_at", type_=UtcTime()), bindparam(f"{name}_seq", type_=BigInteger())
    )


_BETWEEN = (
    changes._SELECT.add_columns(_MOVES.seq)
    .where(tuple_(*_ORDER) > _place("after"), tuple_(*_ORDER) <= _place("last"))
    .order_by(*_ORDER)
)


@contextmanager
def changes_by_time() -> Iterator[None]:
    """Positions have the number 0, which `is_lost` accepts, and the row's number as the run id of their key."""
    with (
        patch.object(changes, "now", _now),
        patch.object(changes, "_between_numbers", _between),
        patch.object(changes, "is_elsewhere", lambda known, current: known.key > current.key),
    ):
        yield


def _now(connection: Connection) -> Position:
    row = execute(connection, _LAST).one_or_none()
    clock = execute(connection, _CLOCK).scalar_one()
    return _after(min(FIRST if row is None else Key(*row, 0), Key(clock + TOLERANCE, 0, 0)))


def _after(key: Key) -> Position:
    return Position(oldest=key.at, key=key)


def _between(connection: Connection, known: Position, until: Position, limit: int) -> ChangesPage:
    values = {
        "after_at": known.key.at,
        "after_seq": known.key.run_id,
        "last_at": until.key.at,
        "last_seq": until.key.run_id,
        "limit": limit,
    }
    rows = execute(connection, _BETWEEN, values).mappings()
    numbers = [row.pop("seq") for row in rows]
    found = [changes._change(row) for row in rows]
    if len(found) < limit:
        return ChangesPage(found, until, more=False)
    return ChangesPage(found, _after(Key(found[-1].transition.at, numbers[-1], 0)), more=True)
