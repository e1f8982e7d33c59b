"""Stored settings: only those that were set have a row, all others have their default. Every change is audited."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, select, text

from tsuzuki.model.settings import SETTINGS, EngineSettings, find_setting
from tsuzuki.store import audit
from tsuzuki.store.schema.tables import settings
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.dialect import insert_into, is_sqlite
from tsuzuki.store.sql.prepared import execute


@dataclass(frozen=True, kw_only=True)
class StoredSetting:
    """A value that was set."""

    key: str
    value: int | float
    updated_at: datetime
    updated_by: str


def load(connection: Connection) -> EngineSettings:
    """The settings in use: defaults, and stored values over them. A row of an unknown name (from another
    version) is ignored."""
    stored = {row.key: row.value for row in find(connection) if row.key in SETTINGS}
    return EngineSettings().with_values(stored)


_ALL = select(settings).order_by(settings.c.key)


def find(connection: Connection) -> list[StoredSetting]:
    rows = execute(connection, _ALL).all()
    return [StoredSetting(**dict(zip(settings.c.keys(), row, strict=True))) for row in rows]


def put(connection: Connection, *, key: str, value: object, actor: str) -> int | float:
    """Set one value (an upsert), if the whole set stays valid with it. Answers the value as it was parsed."""
    parsed = find_setting(key).parse(value)
    _lock_against_changes(connection)
    before = load(connection)
    before.with_values({key: parsed})
    statement = insert_into(connection.dialect, settings).values(
        key=key, value=parsed, updated_at=db_now(), updated_by=actor
    )
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=[settings.c.key],
            set_={
                "value": statement.excluded.value,
                "updated_at": statement.excluded.updated_at,
                "updated_by": statement.excluded.updated_by,
            },
        )
    )
    _audit(connection, actor=actor, key=key, before=getattr(before, key), after=parsed)
    return parsed


def reset(connection: Connection, *, key: str, actor: str) -> int | float:
    """Go back to the default, if the whole set stays valid with it. Answers the default."""
    default = find_setting(key).default
    _lock_against_changes(connection)
    before = load(connection)
    before.with_values({key: default})
    if connection.execute(delete(settings).where(settings.c.key == key)).rowcount:
        _audit(connection, actor=actor, key=key, before=getattr(before, key), after=default)
    return default


def _lock_against_changes(connection: Connection) -> None:
    """One change at a time: two changes that are each valid with the old set may not be so together (write
    skew). SQLite has one writer anyway; readers are blocked on neither."""
    if not is_sqlite(connection.dialect):
        connection.execute(text("LOCK TABLE settings IN SHARE ROW EXCLUSIVE MODE"))


def _audit(connection: Connection, *, actor: str, key: str, before: object, after: object) -> None:
    audit.record(
        connection,
        actor=actor,
        action="setting.set",
        object_type="setting",
        object_id=key,
        before=before,
        after=after,
    )
