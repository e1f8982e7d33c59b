"""Events: something happened outside, and jobs may start because of it. A key makes it happen once."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import BigInteger, Connection, Integer, Select, bindparam, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.dml import ReturningInsert

from tsuzuki.store.batch import Columns, by_key, pack, unpack
from tsuzuki.store.database import db_now
from tsuzuki.store.leadership import HELD, Term
from tsuzuki.store.line import Sender
from tsuzuki.store.tables import events
from tsuzuki.store.types import KeyText


@dataclass(frozen=True, kw_only=True)
class Event:
    """A stored event; `processed_at` is set with the runs it started."""

    id: int
    event_type: str
    payload: Any
    dedupe_key: str | None
    created_at: datetime
    processed_at: datetime | None


def emit(
    connection: Connection, *, event_type: str, payload: Any, dedupe_key: str | None = None
) -> tuple[Event, bool]:
    """Store an event. With a key that was used before: the event it made then, and False."""
    said = {"event_type": event_type, "payload": payload, "dedupe_key": dedupe_key}
    new_id = connection.execute(_emitting(connection.dialect), said).scalar_one_or_none()
    statement, wanted = (_BY_ID, new_id) if new_id else (_BY_KEY, dedupe_key)
    row = connection.execute(statement, {"wanted": wanted}).mappings().one()
    return Event(**row), new_id is not None


_BY_ID = select(events).where(events.c.id == bindparam("wanted", type_=BigInteger()))
_BY_KEY = select(events).where(events.c.dedupe_key == bindparam("wanted", type_=KeyText()))


@lru_cache
def _emitting(dialect: Dialect) -> ReturningInsert[Any]:
    flavour = sqlite if dialect.name == "sqlite" else postgresql
    statement: ReturningInsert[Any] = (
        flavour.insert(events)
        .values(created_at=db_now())
        .on_conflict_do_nothing(index_elements=[events.c.dedupe_key])
        .returning(events.c.id)
    )
    return statement


_UNPROCESSED = (
    select(events)
    .where(events.c.processed_at.is_(None))
    .order_by(events.c.created_at, events.c.id)
    .limit(bindparam("limit", type_=Integer()))
)


def unprocessed(connection: Connection, *, limit: int) -> list[Event]:
    """What waits to be looked at, in the order it came."""
    rows = connection.execute(_UNPROCESSED, {"limit": limit}).mappings()
    return [Event(**row) for row in rows.all()]


_THESE = events.c.id.in_(bindparam("ids", expanding=True))
_ID_COLUMN: Columns = {"id": BigInteger()}


def payloads(connection: Sender, event_ids: Sequence[int]) -> dict[int, Any]:
    """What the events carried, by their id."""
    if not event_ids:
        return {}
    packed = pack(connection.dialect, _ID_COLUMN, [(event_id,) for event_id in event_ids])
    statement = _carrying(connection.dialect, packed.varying)
    return dict([tuple(row) for row in connection.execute(statement, packed.parameters).all()])


@lru_cache
def _carrying(dialect: Dialect, varying: tuple[str, ...]) -> Select[Any]:
    asked = unpack(dialect, _ID_COLUMN, varying)
    return select(events.c.id, events.c.payload).join(asked, by_key(events.c.id, asked.c.id))


_MARK_PROCESSED = (
    update(events)
    .where(_THESE, events.c.processed_at.is_(None), HELD)
    .values(processed_at=db_now())
    .returning(events.c.id)
)


def mark_processed(
    connection: Connection, *, term: Term, event_ids: Sequence[int]
) -> frozenset[int]:
    """Belongs into the transaction that stores the runs these events start."""
    seen = {"ids": event_ids, "epoch": term.epoch}
    return frozenset(connection.execute(_MARK_PROCESSED, seen).scalars())


def find(
    connection: Connection,
    *,
    event_type: str | None = None,
    before_id: int | None = None,
    limit: int = 50,
) -> list[Event]:
    """Events, newest first. `before_id` continues a page."""
    statement = select(events).order_by(events.c.id.desc()).limit(limit)
    if event_type is not None:
        statement = statement.where(events.c.event_type == event_type)
    if before_id is not None:
        statement = statement.where(events.c.id < before_id)
    return [Event(**row) for row in connection.execute(statement).mappings().all()]
