"""The audit log: which actor changed what, from which value to which. Append-only."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert, select

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
    statement = select(audit_log).order_by(audit_log.c.id.desc()).limit(limit)
    for column, wanted in (
        (audit_log.c.object_type, object_type),
        (audit_log.c.object_id, object_id),
        (audit_log.c.actor, actor),
    ):
        if wanted is not None:
            statement = statement.where(column == wanted)
    if before_id is not None:
        statement = statement.where(audit_log.c.id < before_id)
    return [AuditEntry(**row) for row in connection.execute(statement).mappings().all()]
