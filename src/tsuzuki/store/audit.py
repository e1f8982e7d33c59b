"""The audit log: which actor changed what, from which value to which. Append-only."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, TypedDict, Unpack

from sqlalchemy import ColumnElement, Connection, Insert, func, insert, select
from sqlalchemy.engine import Dialect

from tsuzuki.store.schema.tables import audit_log, job_definitions, job_runs
from tsuzuki.store.sql.batch import Columns, unpack
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.prepared import AnyConnection, execute, execute_batch
from tsuzuki.store.sql.value_list import in_list

BATCH_MAX = 500
"""Changes per statement."""


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
    job: str | None = None
    """The job of a run that was changed; None of other objects, and once the run is deleted."""


class Recorded(NamedTuple):
    """A change to record: of which object, what was done, and its value before and after."""

    object_id: str
    action: str
    before: Any = None
    after: Any = None


_COLUMNS: Columns = {
    name: audit_log.c[name].type for name in (*Recorded._fields, "actor", "object_type")
}


def record(
    connection: AnyConnection,
    *,
    actor: str,
    action: str,
    object_type: str,
    object_id: str,
    before: Any = None,
    after: Any = None,
) -> None:
    """Record a change, in the transaction that makes it."""
    change = Recorded(object_id, action, before, after)
    record_many(connection, [change], actor=actor, object_type=object_type)


def record_many(
    connection: AnyConnection, changes: Sequence[Recorded], *, actor: str, object_type: str
) -> None:
    """Record changes of objects of one type, in the transaction that makes them."""
    for first in range(0, len(changes), BATCH_MAX):
        rows = [(*change, actor, object_type) for change in changes[first : first + BATCH_MAX]]
        execute_batch(connection, _record, _COLUMNS, rows)


@lru_cache
def _record(dialect: Dialect, varying: tuple[str, ...]) -> Insert:
    rows = unpack(dialect, _COLUMNS, varying)
    recorded = select(*(rows.c[name] for name in _COLUMNS), db_now())
    return insert(audit_log).from_select([*_COLUMNS, "at"], recorded)


class AuditFilter(TypedDict, total=False):
    """Which changes are asked for. What is missing or None does not matter."""

    object_type: str | None
    object_id: str | None
    actor: str | None
    since: datetime | None


def find(
    connection: Connection,
    *,
    before_id: int | None = None,
    limit: int = 50,
    **wanted: Unpack[AuditFilter],
) -> list[AuditEntry]:
    """Changes, newest first, each of a run with its job. `before_id` continues a page."""
    statement = select(audit_log).where(*_conditions(wanted))
    if before_id is not None:
        statement = statement.where(audit_log.c.id < before_id)
    rows = connection.execute(statement.order_by(audit_log.c.id.desc()).limit(limit))
    found = [AuditEntry(**row) for row in rows.mappings().all()]
    names = _job_names(connection, [entry.object_id for entry in found if _is_of_run(entry)])
    return [
        replace(entry, job=names.get(entry.object_id)) if _is_of_run(entry) else entry
        for entry in found
    ]


def _is_of_run(entry: AuditEntry) -> bool:
    return entry.object_type == "run" and entry.object_id.isdigit()


_JOB_NAMES = (
    select(job_runs.c.id, job_definitions.c.name)
    .join_from(job_runs, job_definitions, job_definitions.c.id == job_runs.c.job_definition_id)
    .where(in_list(job_runs.c.id, "ids"))
)


def _job_names(connection: Connection, run_ids: Sequence[str]) -> dict[str, str]:
    if not run_ids:
        return {}
    rows = execute(connection, _JOB_NAMES, {"ids": [int(run_id) for run_id in run_ids]}).all()
    return {str(run_id): name for run_id, name in rows}


def count(connection: Connection, *, at_most: int, **wanted: Unpack[AuditFilter]) -> int:
    """How many changes there are; the scan ends after `at_most`."""
    found = select(audit_log.c.id).where(*_conditions(wanted)).limit(at_most).subquery()
    return int(connection.execute(select(func.count()).select_from(found)).scalar_one())


def _conditions(wanted: AuditFilter) -> list[ColumnElement[bool]]:
    since = wanted.get("since")
    equal = {
        audit_log.c.object_type: wanted.get("object_type"),
        audit_log.c.object_id: wanted.get("object_id"),
        audit_log.c.actor: wanted.get("actor"),
    }
    found = [column == value for column, value in equal.items() if value is not None]
    return found if since is None else [*found, audit_log.c.at >= since]
