"""The ledger of collections: started, settled target by target, completed or cancelled.

Every change of a result goes together with the counter that counts it, and names what it expects to
find; at most one collection is `running`, which the schema guarantees.
"""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import BigInteger, Connection, Text, bindparam, insert, literal, select, update
from sqlalchemy.engine import Dialect

from tsuzuki.collectors.commits.queries.targets import Target
from tsuzuki.collectors.commits.tables import (
    CollectionStatus,
    ResultStatus,
    bulk_collection_owners,
    bulk_collection_results,
    bulk_collection_runs,
)
from tsuzuki.collectors.kit.upsert import insert_from
from tsuzuki.store.sql.batch import Columns, unpack
from tsuzuki.store.sql.dialect import insert_into
from tsuzuki.store.sql.prepared import execute, execute_batch, parameters_for
from tsuzuki.store.sql.stored_values import to_text
from tsuzuki.store.sql.value_list import in_list

_runs, _results = bulk_collection_runs, bulk_collection_results
_owners = bulk_collection_owners

_COLLECTION = bindparam("collection", type_=Text())
_PROJECT = bindparam("project", type_=BigInteger())
_BRANCH = bindparam("branch", type_=Text())
_TARGET_COLUMNS: Columns = {"project_id": BigInteger(), "branch_name": Text()}


@dataclass(frozen=True, kw_only=True)
class CollectionOwner:
    """The run of the engine that works on a collection."""

    job_run_id: int
    retry_of: str | None


@dataclass(frozen=True, kw_only=True)
class SettledTarget:
    """How a target ended: with its number of new commits, or with an error."""

    new_commits: int | None = None
    error: str | None = None


# --- start and end --------------------------------------------------------------------------------


def new_id() -> str:
    return str(uuid.uuid4())


def open_collection(
    connection: Connection,
    collection_id: str,
    targets: Sequence[Target],
    *,
    job_run_id: int,
    now: datetime,
    retry_of: str | None = None,
) -> str | None:
    """Start a collection with all its targets pending; None if one is running."""
    of_collection = {"collection": collection_id}
    opened = {**of_collection, "started_at_utc": to_text(now), "total_targets": len(targets)}
    if execute(connection, _open(connection.dialect), opened).scalar_one_or_none() is None:
        return None
    owned = {**of_collection, "job_run_id": job_run_id, "retry_of": retry_of}
    execute(connection, _ADD_OWNER, owned)
    rows = [(target.project_id, target.branch) for target in targets]
    execute_batch(connection, _add_pending, _TARGET_COLUMNS, rows, of_collection)
    return collection_id


@lru_cache
def _open(dialect: Dialect) -> Any:
    return (
        insert_into(dialect, _runs)
        .values(
            run_id=_COLLECTION,
            **parameters_for(_runs, "started_at_utc", "total_targets"),
            status=CollectionStatus.RUNNING,
            completed_count=0,
            failed_count=0,
            success_count=0,
        )
        .on_conflict_do_nothing()
        .returning(_runs.c.run_id)
    )


@lru_cache
def _add_pending(dialect: Dialect, varying: tuple[str, ...]) -> Any:
    targets = unpack(dialect, _TARGET_COLUMNS, varying)
    pending = literal(ResultStatus.PENDING.value, Text())
    return insert_from(
        dialect,
        _results,
        {"run_id": _COLLECTION, "status": pending, **dict(targets.c.items())},
    )


_ADD_OWNER = insert(_owners).values(
    run_id=_COLLECTION, **parameters_for(_owners, "job_run_id", "retry_of")
)
_SET_OWNER = (
    update(_owners)
    .where(_owners.c.run_id == _COLLECTION)
    .values(**parameters_for(_owners, "job_run_id"))
)
_SELECT_OWNER = select(_owners.c.job_run_id, _owners.c.retry_of).where(
    _owners.c.run_id == _COLLECTION
)
_END = (
    update(_runs)
    .where(_runs.c.run_id == _COLLECTION, _runs.c.status == CollectionStatus.RUNNING)
    .values(status=bindparam("ended"), **parameters_for(_runs, "completed_at_utc"))
)


def complete(connection: Connection, collection_id: str, *, now: datetime) -> bool:
    """Every target is settled: the collection is completed."""
    return _end(connection, collection_id, CollectionStatus.COMPLETED, now)


def cancel(connection: Connection, collection_id: str, *, now: datetime) -> bool:
    """Stop a running collection; what is pending stays so."""
    return _end(connection, collection_id, CollectionStatus.CANCELLED, now)


def _end(
    connection: Connection, collection_id: str, status: CollectionStatus, now: datetime
) -> bool:
    values = {"collection": collection_id, "ended": status.value, "completed_at_utc": to_text(now)}
    return execute(connection, _END, values).rowcount == 1


def set_owner(connection: Connection, collection_id: str, *, job_run_id: int) -> None:
    """Make this run of the engine the one that works on the collection."""
    execute(connection, _SET_OWNER, {"collection": collection_id, "job_run_id": job_run_id})


def owner(connection: Connection, collection_id: str) -> CollectionOwner | None:
    row = execute(connection, _SELECT_OWNER, {"collection": collection_id}).mapping_or_none()
    return None if row is None else CollectionOwner(**row)


_SELECT_HELD = (
    select(_runs.c.run_id)
    .join(_owners, _owners.c.run_id == _runs.c.run_id)
    .where(
        _runs.c.run_id == _COLLECTION,
        _runs.c.status == CollectionStatus.RUNNING,
        _owners.c.job_run_id == bindparam("job_run"),
    )
    .with_for_update(of=_runs)
)


def is_held_by(connection: Connection, collection_id: str, *, job_run_id: int) -> bool:
    """Whether a collection is running and held by this run; it stays so until the transaction ends."""
    held = execute(connection, _SELECT_HELD, {"collection": collection_id, "job_run": job_run_id})
    return held.one_or_none() is not None


_SETTLE = (
    update(_results)
    .where(
        _results.c.run_id == _COLLECTION,
        _results.c.project_id == _PROJECT,
        _results.c.branch_name == _BRANCH,
        _results.c.status == ResultStatus.PENDING,
    )
    .values(
        status=bindparam("settled"),
        **parameters_for(_results, "new_commits_count", "error_message", "processed_at_utc"),
    )
)
_COUNT = update(_runs).where(_runs.c.run_id == _COLLECTION)
_COUNT_FAILED = _COUNT.values(failed_count=_runs.c.failed_count + 1)
_COUNT_SUCCESS = _COUNT.values(
    success_count=_runs.c.success_count + 1, completed_count=_runs.c.completed_count + 1
)


def settle(
    connection: Connection,
    collection_id: str,
    target: Target,
    settled: SettledTarget,
    *,
    now: datetime,
) -> bool:
    """Write down how a target ended, and count it. False if it had ended before."""
    has_failed = settled.error is not None
    key = {"collection": collection_id, "project": target.project_id, "branch": target.branch}
    values = {
        "settled": ResultStatus.FAILED.value if has_failed else ResultStatus.SUCCESS.value,
        "new_commits_count": None if has_failed else settled.new_commits,
        "error_message": settled.error,
        "processed_at_utc": to_text(now),
    }
    if execute(connection, _SETTLE, {**key, **values}).rowcount != 1:
        return False
    execute(
        connection, _COUNT_FAILED if has_failed else _COUNT_SUCCESS, {"collection": collection_id}
    )
    return True


# --- looking --------------------------------------------------------------------------------------


_RUNNING = select(_runs.c.run_id).where(_runs.c.status == CollectionStatus.RUNNING)
_TARGETS = (
    select(_results.c.project_id, _results.c.branch_name)
    .where(_results.c.run_id == _COLLECTION, in_list(_results.c.status, "statuses"))
    .order_by(_results.c.project_id, _results.c.branch_name)
)


def running(connection: Connection) -> str | None:
    """The collection that is running."""
    found: str | None = execute(connection, _RUNNING).scalar_one_or_none()
    return found


def targets_of(
    connection: Connection, collection_id: str, statuses: Iterable[ResultStatus]
) -> list[Target]:
    """The targets of a collection that are in one of these states."""
    values = {"collection": collection_id, "statuses": [status.value for status in statuses]}
    return [Target(*row) for row in execute(connection, _TARGETS, values).all()]
