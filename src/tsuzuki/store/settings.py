"""Stored settings: only those that were set have a row, all others have their default. Every change is audited."""

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Text, bindparam, delete, select
from sqlalchemy.engine import Dialect

from tsuzuki.model.settings import SETTINGS, EngineSettings, find_setting
from tsuzuki.store import audit
from tsuzuki.store.schema.tables import settings
from tsuzuki.store.sql.advisory_lock import lock_until_commit
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.dialect import insert_into
from tsuzuki.store.sql.prepared import execute, parameters_for

CHANGES_LOCK_KEY = "tsuzuki settings"
"""One change at a time: two changes that are each valid with the old set may not be so together (write skew)."""


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
    return [StoredSetting(**row) for row in execute(connection, _ALL).mappings()]


def put(connection: Connection, *, key: str, value: object, actor: str) -> int | float:
    """Set one value (an upsert), if the whole set stays valid with it. Answers the value as it was parsed."""
    parsed = find_setting(key).parse(value)
    lock_until_commit(connection, CHANGES_LOCK_KEY)
    before = load(connection)
    before.with_values({key: parsed})
    values = {"key": key, "value": parsed, "updated_by": actor}
    execute(connection, _upsert(connection.dialect), values)
    _audit(connection, actor=actor, key=key, before=getattr(before, key), after=parsed)
    return parsed


@lru_cache
def _upsert(dialect: Dialect) -> Any:
    given = parameters_for(settings, "key", "value", "updated_by")
    statement = insert_into(dialect, settings).values(**given, updated_at=db_now())
    written = {name: statement.excluded[name] for name in ("value", "updated_at", "updated_by")}
    return statement.on_conflict_do_update(index_elements=[settings.c.key], set_=written)


_DELETE = delete(settings).where(settings.c.key == bindparam("wanted", type_=Text()))


def reset(connection: Connection, *, key: str, actor: str) -> int | float:
    """Go back to the default, if the whole set stays valid with it. Answers the default."""
    default = find_setting(key).default
    lock_until_commit(connection, CHANGES_LOCK_KEY)
    before = load(connection)
    before.with_values({key: default})
    if execute(connection, _DELETE, {"wanted": key}).rowcount:
        _audit(connection, actor=actor, key=key, before=getattr(before, key), after=default)
    return default


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
