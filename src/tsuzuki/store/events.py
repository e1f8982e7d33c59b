"""Events from outside that start runs of jobs which subscribe to them. A dedupe key makes one idempotent, among
those of its type."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    bindparam,
    func,
    select,
    update,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.dml import ReturningInsert

from tsuzuki.store.leadership import TERM_IS_CURRENT, Term
from tsuzuki.store.schema.tables import events
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.dialect import insert_into
from tsuzuki.store.sql.prepared import AnyConnection, execute, parameters_for
from tsuzuki.store.sql.types import KeyText
from tsuzuki.store.sql.value_list import in_list


@dataclass(frozen=True, kw_only=True)
class Event:
    """A stored event; `processed_at` is set in the transaction that creates its runs."""

    id: int
    event_type: str
    payload: Any
    dedupe_key: str | None
    created_at: datetime
    processed_at: datetime | None


def emit(
    connection: Connection, *, event_type: str, payload: Any, dedupe_key: str | None = None
) -> tuple[Event, bool]:
    """Store an event. Answers it and True; with a dedupe key that an event of this type used before, that event
    and False."""
    values = {"event_type": event_type, "payload": payload, "dedupe_key": dedupe_key}
    new_id = execute(connection, _insert(connection.dialect), values).scalar_one_or_none()
    if new_id is not None:
        (row,) = execute(connection, _BY_ID, {"wanted": new_id}).mappings()
    else:
        (row,) = execute(connection, _BY_KEY, {"key": dedupe_key, "type": event_type}).mappings()
    return Event(**row), new_id is not None


_BY_ID = select(events).where(events.c.id == bindparam("wanted", type_=BigInteger()))
_BY_KEY = select(events).where(
    events.c.dedupe_key == bindparam("key", type_=KeyText()),
    events.c.event_type == bindparam("type", type_=KeyText()),
)


def get(connection: Connection, event_id: int) -> Event | None:
    row = execute(connection, _BY_ID, {"wanted": event_id}).mapping_or_none()
    return None if row is None else Event(**row)


@lru_cache
def _insert(dialect: Dialect) -> ReturningInsert[Any]:
    statement: ReturningInsert[Any] = (
        insert_into(dialect, events)
        .values(
            **parameters_for(events, "event_type", "payload", "dedupe_key"), created_at=db_now()
        )
        .on_conflict_do_nothing(index_elements=[events.c.dedupe_key, events.c.event_type])
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
    """Events that no leader has turned into runs yet, oldest first."""
    return [Event(**row) for row in execute(connection, _UNPROCESSED, {"limit": limit}).mappings()]


_THESE = in_list(events.c.id, "ids")
_PAYLOADS = select(events.c.id, events.c.payload).where(_THESE)


def payloads(connection: AnyConnection, event_ids: Sequence[int]) -> dict[int, Any]:
    """The payloads of events, by event id."""
    if not event_ids:
        return {}
    return dict(execute(connection, _PAYLOADS, {"ids": event_ids}).all())


_MARK_PROCESSED = (
    update(events)
    .where(_THESE, events.c.processed_at.is_(None), TERM_IS_CURRENT)
    .values(processed_at=db_now())
    .returning(events.c.id)
)


def mark_processed(
    connection: Connection, *, term: Term, event_ids: Sequence[int]
) -> frozenset[int]:
    """Mark events as processed, in the transaction that creates their runs. Answers those that were not
    processed before."""
    parameters = {"ids": event_ids, **term.parameters}
    return frozenset(execute(connection, _MARK_PROCESSED, parameters).scalars())


def find(
    connection: Connection,
    *,
    event_type: str | None = None,
    since: datetime | None = None,
    before_id: int | None = None,
    limit: int = 50,
) -> list[Event]:
    """Events, newest first. `before_id` continues a page."""
    statement = select(events).where(*_conditions(event_type, since)).order_by(events.c.id.desc())
    if before_id is not None:
        statement = statement.where(events.c.id < before_id)
    return [Event(**row) for row in connection.execute(statement.limit(limit)).mappings().all()]


def count(
    connection: Connection,
    *,
    event_type: str | None = None,
    since: datetime | None = None,
    at_most: int,
) -> int:
    """How many events there are; the scan ends after `at_most`."""
    found = select(events.c.id).where(*_conditions(event_type, since)).limit(at_most).subquery()
    return int(connection.execute(select(func.count()).select_from(found)).scalar_one())


def _conditions(event_type: str | None, since: datetime | None) -> list[ColumnElement[bool]]:
    found = [] if event_type is None else [events.c.event_type == event_type]
    return found if since is None else [*found, events.c.created_at >= since]
