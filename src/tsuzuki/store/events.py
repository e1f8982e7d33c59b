"""Events: something happened outside, and jobs may start because of it. A key makes it happen once."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select, update
from sqlalchemy.dialects import postgresql, sqlite

from tsuzuki.store.database import db_now
from tsuzuki.store.leadership import Term, held
from tsuzuki.store.tables import events


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
    flavour = sqlite if connection.dialect.name == "sqlite" else postgresql
    new_id = connection.execute(
        flavour.insert(events)
        .values(event_type=event_type, payload=payload, dedupe_key=dedupe_key, created_at=db_now())
        .on_conflict_do_nothing(index_elements=[events.c.dedupe_key])
        .returning(events.c.id)
    ).scalar_one_or_none()
    wanted = events.c.id == new_id if new_id else events.c.dedupe_key == dedupe_key
    row = connection.execute(select(events).where(wanted)).mappings().one()
    return Event(**row), new_id is not None


def unprocessed(connection: Connection, *, limit: int) -> list[Event]:
    """What waits to be looked at, in the order it came."""
    statement = (
        select(events)
        .where(events.c.processed_at.is_(None))
        .order_by(events.c.created_at, events.c.id)
        .limit(limit)
    )
    return [Event(**row) for row in connection.execute(statement).mappings().all()]


def payloads(connection: Connection, event_ids: Sequence[int]) -> dict[int, Any]:
    """What the events carried, by their id."""
    if not event_ids:
        return {}
    statement = select(events.c.id, events.c.payload).where(events.c.id.in_(event_ids))
    return {row.id: row.payload for row in connection.execute(statement)}


def mark_processed(
    connection: Connection, *, term: Term, event_ids: Sequence[int]
) -> frozenset[int]:
    """Belongs into the transaction that stores the runs these events start."""
    statement = (
        update(events)
        .where(events.c.id.in_(event_ids), events.c.processed_at.is_(None), held(term))
        .values(processed_at=db_now())
        .returning(events.c.id)
    )
    return frozenset(connection.execute(statement).scalars())


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
