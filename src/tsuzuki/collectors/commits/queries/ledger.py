"""The ledger of bulk collections: started, settled target by target, completed or cancelled.

Every change of a result goes together with the counter that counts it, and names what it expects to
find; at most one collection is `running`, which the schema guarantees.
"""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from tsuzuki.collectors.commits.queries.targets import Target
from tsuzuki.collectors.commits.tables import (
    BulkStatus,
    NoteKind,
    ResultStatus,
    bulk_collection_notes,
    bulk_collection_owners,
    bulk_collection_results,
    bulk_collection_runs,
)
from tsuzuki.store.sql.dialect import insert_into
from tsuzuki.store.sql.prepared import execute
from tsuzuki.store.sql.types import to_text

_runs, _results, _notes = bulk_collection_runs, bulk_collection_results, bulk_collection_notes
_owners = bulk_collection_owners


@dataclass(frozen=True, kw_only=True)
class Note:
    """Something a person should know about a target that was collected."""

    kind: NoteKind
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Owner:
    """The run of the engine that works on a bulk collection."""

    job_run_id: int
    retry_of: str | None


@dataclass(frozen=True, kw_only=True)
class Settled:
    """How a target ended: with its number of new commits, or with an error."""

    new_commits: int | None = None
    error: str | None = None
    notes: tuple[Note, ...] = ()


# --- start and end --------------------------------------------------------------------------------


def new_id() -> str:
    return str(uuid.uuid4())


def open_run(
    connection: Connection,
    run_id: str,
    targets: Sequence[Target],
    *,
    job_run_id: int,
    now: datetime,
    retry_of: str | None = None,
) -> str | None:
    """Start a bulk collection with all its targets pending; None if one is running."""
    statement = insert_into(connection.dialect, _runs).values(
        run_id=run_id,
        started_at_utc=to_text(now),
        status=BulkStatus.RUNNING,
        total_targets=len(targets),
        completed_count=0,
        failed_count=0,
        success_count=0,
    )
    stored = connection.execute(statement.on_conflict_do_nothing().returning(_runs.c.run_id))
    if stored.scalar_one_or_none() is None:
        return None
    connection.execute(
        insert(_owners).values(run_id=run_id, job_run_id=job_run_id, retry_of=retry_of)
    )
    if targets:
        connection.execute(
            insert(_results),
            [
                {
                    "run_id": run_id,
                    "project_id": target.project_id,
                    "branch_name": target.branch,
                    "status": ResultStatus.PENDING,
                }
                for target in targets
            ],
        )
    return run_id


def complete(connection: Connection, run_id: str, *, now: datetime) -> bool:
    """Every target is settled: the collection is completed."""
    return _end(connection, run_id, BulkStatus.COMPLETED, now)


def cancel(connection: Connection, run_id: str, *, now: datetime) -> bool:
    """Stop a running collection; what is pending stays so."""
    return _end(connection, run_id, BulkStatus.CANCELLED, now)


def _end(connection: Connection, run_id: str, status: BulkStatus, now: datetime) -> bool:
    statement = (
        update(_runs)
        .where(_runs.c.run_id == run_id, _runs.c.status == BulkStatus.RUNNING.value)
        .values(status=status.value, completed_at_utc=to_text(now))
    )
    return connection.execute(statement).rowcount == 1


def set_owner(connection: Connection, run_id: str, *, job_run_id: int) -> None:
    """Make this run of the engine the one that works on the collection."""
    connection.execute(
        update(_owners).where(_owners.c.run_id == run_id).values(job_run_id=job_run_id)
    )


def owner(connection: Connection, run_id: str) -> Owner | None:
    row = connection.execute(
        select(_owners.c.job_run_id, _owners.c.retry_of).where(_owners.c.run_id == run_id)
    ).one_or_none()
    return None if row is None else Owner(job_run_id=row.job_run_id, retry_of=row.retry_of)


_SELECT_HELD = (
    select(_runs.c.run_id)
    .join(_owners, _owners.c.run_id == _runs.c.run_id)
    .where(
        _runs.c.run_id == bindparam("run"),
        _runs.c.status == BulkStatus.RUNNING.value,
        _owners.c.job_run_id == bindparam("job_run"),
    )
    .with_for_update(of=_runs)
)


def is_held_by(connection: Connection, run_id: str, *, job_run_id: int) -> bool:
    """Whether a collection is running and held by this run; it stays so until the transaction ends."""
    held = execute(connection, _SELECT_HELD, {"run": run_id, "job_run": job_run_id})
    return held.one_or_none() is not None


def settle(
    connection: Connection, run_id: str, target: Target, settled: Settled, *, now: datetime
) -> bool:
    """Write down how a target ended, and count it. False if it had ended before."""
    status = ResultStatus.FAILED if settled.error is not None else ResultStatus.SUCCESS
    statement = (
        update(_results)
        .where(*_is(run_id, target), _results.c.status == ResultStatus.PENDING.value)
        .values(
            status=status.value,
            new_commits_count=settled.new_commits if settled.error is None else None,
            error_message=settled.error,
            processed_at_utc=to_text(now),
        )
    )
    if connection.execute(statement).rowcount != 1:
        return False
    counters = (
        {"failed_count": _runs.c.failed_count + 1}
        if status is ResultStatus.FAILED
        else {
            "success_count": _runs.c.success_count + 1,
            "completed_count": _runs.c.completed_count + 1,
        }
    )
    connection.execute(update(_runs).where(_runs.c.run_id == run_id).values(**counters))
    for note in settled.notes:
        connection.execute(
            insert(_notes).values(
                run_id=run_id,
                project_id=target.project_id,
                branch_name=target.branch,
                kind=note.kind.value,
                sentence=note.sentence,
            )
        )
    return True


# --- looking --------------------------------------------------------------------------------------


def running(connection: Connection) -> str | None:
    """The collection that is running."""
    found: str | None = connection.execute(
        select(_runs.c.run_id).where(_runs.c.status == BulkStatus.RUNNING.value)
    ).scalar_one_or_none()
    return found


def targets_of(
    connection: Connection, run_id: str, statuses: Iterable[ResultStatus]
) -> list[Target]:
    """The targets of a collection that are in one of these states."""
    statement = (
        select(_results.c.project_id, _results.c.branch_name)
        .where(_results.c.run_id == run_id, _results.c.status.in_([s.value for s in statuses]))
        .order_by(_results.c.project_id, _results.c.branch_name)
    )
    return [Target(row.project_id, row.branch_name) for row in connection.execute(statement)]


def _is(run_id: str, target: Target) -> tuple[Any, ...]:
    return (
        _results.c.run_id == run_id,
        _results.c.project_id == target.project_id,
        _results.c.branch_name == target.branch,
    )
