"""What the leader looks at to give work out, and what a worker looks at to take it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    Connection,
    Integer,
    Select,
    Text,
    and_,
    bindparam,
    exists,
    func,
    or_,
    select,
    update,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.dml import ReturningUpdate

from tsuzuki.model.run import Run, RunRef, Started, WorkOrder
from tsuzuki.model.states import ContinuationState, RunState
from tsuzuki.model.worker import WorkerState
from tsuzuki.store.batch import (
    Columns,
    batch,
    by_key,
    guard,
    likely,
    pack,
    unpack,
)
from tsuzuki.store.chosen import chosen
from tsuzuki.store.database import db_now
from tsuzuki.store.moves import ORDER_COLUMNS
from tsuzuki.store.runs import run_from, select_runs
from tsuzuki.store.standing import HELD, WAITING, is_in
from tsuzuki.store.tables import events, job_definitions, job_runs, workers


class DueRun(NamedTuple):
    """A run whose time has come, as far as the assigner needs to know it."""

    ref: RunRef
    job_id: int
    concurrency_key: str | None
    job_version: int


# Asked for by each row, and answered from the index of its key: a join might turn the walk round.
_JOB_VERSION = (
    select(job_definitions.c.version)
    .where(job_definitions.c.id == job_runs.c.job_definition_id)
    .scalar_subquery()
)
DUE = (
    select(
        job_runs.c.id,
        job_runs.c.version,
        job_runs.c.job_definition_id,
        job_runs.c.concurrency_key,
        _JOB_VERSION,
    )
    # Along the index that has what waits in order, however much it is, and not by sorting all of it.
    .where(likely(WAITING), job_runs.c.scheduled_for <= db_now())
    .order_by(job_runs.c.priority.desc(), job_runs.c.scheduled_for, job_runs.c.id)
    .limit(bindparam("limit", type_=Integer()))
)


def due_runs(
    connection: Connection,
    *,
    limit: int,
    without_jobs: Collection[int] = (),
    without_keys: Collection[tuple[int, str]] = (),
) -> list[DueRun]:
    """What may be given out now, in order: priority, then time, then age. `without_…` leave out
    what is known to be blocked, so that it cannot hide what is not."""
    statement = DUE
    if without_jobs:
        statement = statement.where(job_runs.c.job_definition_id.not_in(sorted(without_jobs)))
    if without_keys:
        blocked = batch(
            connection.dialect, {"job": BigInteger(), "key": Text()}, sorted(without_keys)
        )
        same = and_(
            blocked.c.job == job_runs.c.job_definition_id,
            blocked.c.key == job_runs.c.concurrency_key,
        )
        statement = statement.where(~exists(select(blocked.c.job).where(same)))
    return [
        DueRun(RunRef(run_id, version), job_id, key, job_version)
        for run_id, version, job_id, key, job_version in connection.execute(
            statement, {"limit": limit}
        ).all()
    ]


def suspects(connection: Connection, *, silent_after_seconds: float) -> list[Run]:
    """Assigned and running runs whose worker is silent, cut off or unknown: the rescuer looks at
    them closer. Usually none, found by one look at the few live rows."""
    well = exists(
        select(workers.c.id).where(
            workers.c.id == job_runs.c.assigned_worker_id,
            workers.c.state.in_([WorkerState.ATTACHED, WorkerState.DRAINING]),
            workers.c.heartbeat_at > db_now(-silent_after_seconds),
        )
    )
    statement = select_runs().where(HELD, ~well)
    return [run_from(row) for row in connection.execute(statement).mappings().all()]


def orphans_at_limit(connection: Connection, *, max_orphans: int) -> list[Run]:
    statement = select_runs().where(
        is_in(RunState.ORPHANED), job_runs.c.orphan_count >= max_orphans
    )
    return [run_from(row) for row in connection.execute(statement).mappings().all()]


def waiting_of_removed_jobs(connection: Connection, *, limit: int) -> list[RunRef]:
    """Runs that wait for nothing: their job was removed before they began."""
    statement = (
        select(job_runs.c.id, job_runs.c.version)
        .join(job_definitions, job_definitions.c.id == job_runs.c.job_definition_id)
        .where(
            job_definitions.c.deleted_at.is_not(None),
            job_runs.c.finished_at.is_(None),
            WAITING,
        )
        .limit(limit)
    )
    return [RunRef(id=row.id, version=row.version) for row in connection.execute(statement)]


def live_runs_of(connection: Connection, job_id: int) -> list[Run]:
    """Every unfinished run of a job, oldest first."""
    statement = (
        select_runs()
        .where(job_runs.c.job_definition_id == job_id, job_runs.c.finished_at.is_(None))
        .order_by(job_runs.c.id)
    )
    return [run_from(row) for row in connection.execute(statement).mappings().all()]


_INBOX = (
    select(job_runs.c.id, job_runs.c.version)
    .where(
        job_runs.c.assigned_worker_id == bindparam("me", type_=Text()),
        is_in(RunState.ASSIGNED),
    )
    .order_by(job_runs.c.priority.desc(), job_runs.c.scheduled_for, job_runs.c.id)
    .limit(bindparam("limit", type_=Integer()))
)


def inbox(connection: Connection, *, worker_id: str, limit: int) -> list[RunRef]:
    """What was given to this worker and not begun, most urgent first."""
    found = connection.execute(_INBOX, {"me": worker_id, "limit": limit})
    return [RunRef._make(row) for row in found.all()]


_RUNNING_ON = select(*ORDER_COLUMNS).where(
    job_runs.c.assigned_worker_id == bindparam("me", type_=Text()),
    is_in(RunState.RUNNING),
)


def running_on(connection: Connection, *, worker_id: str) -> list[WorkOrder]:
    """What the database says this worker is running."""
    found = connection.execute(_RUNNING_ON, {"me": worker_id})
    return [WorkOrder._make(row) for row in found.all()]


def still_ours(
    connection: Connection, *, worker_id: str, runs: Sequence[Started]
) -> frozenset[int]:
    """Which of the runs we execute are still ours to execute."""
    if not runs:
        return frozenset()
    packed = pack(connection.dialect, _STARTED_COLUMNS, runs)
    statement = _still_ours(connection.dialect, packed.varying)
    found = connection.execute(statement, {**packed.parameters, "me": worker_id})
    return frozenset(found.scalars().all())


_STARTED_COLUMNS: Columns = {"id": BigInteger(), "version": Integer(), "epoch": BigInteger()}


@lru_cache
def _still_ours(dialect: Dialect, varying: tuple[str, ...]) -> Select[Any]:
    mine = unpack(dialect, _STARTED_COLUMNS, varying)
    return select(job_runs.c.id).where(
        by_key(job_runs.c.id, mine.c.id),
        guard(job_runs.c.version == mine.c.version),
        guard(job_runs.c.leader_epoch == mine.c.epoch),
        guard(job_runs.c.state == RunState.RUNNING.value),
        guard(job_runs.c.assigned_worker_id == bindparam("me", type_=Text())),
    )


@dataclass(frozen=True, kw_only=True)
class ProgressReport:
    run: Started
    processed: int
    total: int | None


def report_progress(
    connection: Connection, *, worker_id: str, reports: Sequence[ProgressReport]
) -> frozenset[int]:
    """Show how far runs are. A run that is missing from the answer is no longer ours."""
    if not reports:
        return frozenset()
    rows = sorted((*report.run, report.processed, report.total) for report in reports)
    packed = pack(connection.dialect, _PROGRESS_COLUMNS, rows)
    statement = _progressing(connection.dialect, packed.varying)
    found = connection.execute(statement, {**packed.parameters, "me": worker_id})
    return frozenset(found.scalars().all())


_PROGRESS_COLUMNS: Columns = {
    **_STARTED_COLUMNS,
    "processed": BigInteger(),
    "total": BigInteger(),
}


@lru_cache
def _progressing(dialect: Dialect, varying: tuple[str, ...]) -> ReturningUpdate[Any]:
    said = chosen(dialect, job_runs, _PROGRESS_COLUMNS, varying)
    return (
        update(job_runs)
        .where(
            said.meant,
            guard(job_runs.c.version == said.c.version),
            guard(job_runs.c.leader_epoch == said.c.epoch),
            guard(job_runs.c.state == RunState.RUNNING.value),
            guard(job_runs.c.assigned_worker_id == bindparam("me", type_=Text())),
        )
        .values(
            progress_processed=said.c.processed,
            progress_total=said.c.total,
            progress_at=db_now(),
        )
        .returning(job_runs.c.id)
    )


def unconfirmed(connection: Connection, worker_id: str) -> int:
    """How many of a worker's runs still wait for the leader's word that they may go on."""
    return connection.execute(
        select(func.count()).where(
            job_runs.c.assigned_worker_id == worker_id,
            is_in(RunState.RUNNING),
            job_runs.c.continuation_state == ContinuationState.CONFIRMING.value,
        )
    ).scalar_one()


def is_quiet(connection: Connection) -> bool:
    """Nothing is assigned or running, and no event waits."""
    held = select(job_runs.c.id).where(HELD)
    waiting = select(events.c.id).where(events.c.processed_at.is_(None))
    return not connection.execute(select(or_(exists(held), exists(waiting)))).scalar_one()
