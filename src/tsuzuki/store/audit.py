"""The audit log: which actor changed what, from which value to which. Append-only."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, insert, select

from tsuzuki.store.schema.tables import audit_log
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.prepared import execute, parameters_for


@dataclass(frozen=True, kw_only=True)
class AuditEntry:
    """One recorded change."""

    id: int
    at: datetime
    actor: str
    action: str
    object_type: str
    object_id: str
    before: Any
    after: Any


_RECORD = insert(audit_log).values(
    **parameters_for(audit_log, "actor", "action", "object_type", "object_id", "before", "after"),
    at=db_now(),
)


def record(
    connection: Connection,
    *,
    actor: str,
    action: str,
    object_type: str,
    object_id: str,
    before: Any = None,
    after: Any = None,
) -> None:
    """Record a change, in the transaction that makes it."""
    values = {
        "actor": actor,
        "action": action,
        "object_type": object_type,
        "object_id": object_id,
        "before": before,
        "after": after,
    }
    execute(connection, _RECORD, values)


def find(
    connection: Connection,
    *,
    object_type: str | None = None,
    object_id: str | None = None,
    actor: str | None = None,
    before_id: int | None = None,
    limit: int = 50,
) -> list[AuditEntry]:
    """Changes, newest first. `before_id` continues a page."""
    statement = select(audit_log).where(*_conditions(object_type, object_id, actor))
    if before_id is not None:
        statement = statement.where(audit_log.c.id < before_id)
    rows = connection.execute(statement.order_by(audit_log.c.id.desc()).limit(limit))
    return [AuditEntry(**row) for row in rows.mappings().all()]


def count(
    connection: Connection,
    *,
    object_type: str | None = None,
    object_id: str | None = None,
    actor: str | None = None,
    at_most: int,
) -> int:
    """How many changes there are; the scan ends after `at_most`."""
    wanted = _conditions(object_type, object_id, actor)
    found = select(audit_log.c.id).where(*wanted).limit(at_most).subquery()
    return int(connection.execute(select(func.count()).select_from(found)).scalar_one())


def _conditions(
    object_type: str | None, object_id: str | None, actor: str | None
) -> list[ColumnElement[bool]]:
    wanted = {
        audit_log.c.object_type: object_type,
        audit_log.c.object_id: object_id,
        audit_log.c.actor: actor,
    }
    return [column == value for column, value in wanted.items() if value is not None]
