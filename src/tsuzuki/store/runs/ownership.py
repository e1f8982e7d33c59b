"""What a worker owns: runs assigned to it, runs it executes, and the fence in front of every write for them.

A worker owns a RUNNING run only under the version and epoch it started it with. A run that was moved
meanwhile is not owned any more, and nothing may be written for it.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    Select,
    Text,
    bindparam,
    func,
    not_,
    select,
)
from sqlalchemy.engine import Dialect

from tsuzuki.model.run import RunRef, StartedRun, WorkOrder
from tsuzuki.model.states import ContinuationState, RunState
from tsuzuki.store.runs.cancel_requests import ANY_REQUEST
from tsuzuki.store.runs.states import in_indexed_state
from tsuzuki.store.schema.tables import job_runs
from tsuzuki.store.sql.batch import Columns, unpack
from tsuzuki.store.sql.plan_hints import by_key, guard
from tsuzuki.store.sql.prepared import execute, execute_batch

STARTED_COLUMNS: Columns = {"id": BigInteger(), "version": Integer(), "epoch": BigInteger()}
ORDER_COLUMNS = [job_runs.c[name] for name in WorkOrder._fields]

_ME = bindparam("me", type_=Text())


def is_owned(believed: Any) -> Sequence[ColumnElement[bool]]:
    """The run is RUNNING on worker `me`, as `believed` has its version and epoch."""
    return (
        guard(job_runs.c.version == believed.version),
        guard(job_runs.c.leader_epoch == believed.epoch),
        guard(job_runs.c.state == RunState.RUNNING.value),
        guard(job_runs.c.assigned_worker_id == _ME),
    )


_LOCK = (
    select(job_runs.c.id)
    .where(
        job_runs.c.id == bindparam("run_id", type_=BigInteger()),
        job_runs.c.version == bindparam("run_version", type_=Integer()),
        guard(job_runs.c.state == RunState.RUNNING.value),
        guard(job_runs.c.assigned_worker_id == _ME),
        job_runs.c.leader_epoch == bindparam("epoch", type_=BigInteger()),
    )
    .with_for_update(key_share=True)
)


def lock_if_owned(connection: Connection, *, worker_id: str, run: StartedRun) -> bool:
    """The fence: whether a run is still this worker's, and stays so until this transaction ends. Its log lines can be
    stored meanwhile."""
    believed = {"run_id": run.id, "run_version": run.version, "me": worker_id, "epoch": run.epoch}
    return execute(connection, _LOCK, believed).scalar_one_or_none() is not None


_ASSIGNED = (
    select(job_runs.c.id, job_runs.c.version)
    .where(job_runs.c.assigned_worker_id == _ME, in_indexed_state(RunState.ASSIGNED))
    .order_by(job_runs.c.priority.desc(), job_runs.c.scheduled_for, job_runs.c.id)
    .limit(bindparam("limit", type_=Integer()))
)


def assigned_to_worker(connection: Connection, *, worker_id: str, limit: int) -> list[RunRef]:
    """Runs that are assigned to a worker and not started, most urgent first."""
    rows = execute(connection, _ASSIGNED, {"me": worker_id, "limit": limit})
    return [RunRef._make(row) for row in rows.all()]


_RUNNING = select(*ORDER_COLUMNS).where(
    job_runs.c.assigned_worker_id == _ME, in_indexed_state(RunState.RUNNING)
)


def running_on_worker(connection: Connection, *, worker_id: str) -> list[WorkOrder]:
    """Runs that a worker is executing, by the database."""
    rows = execute(connection, _RUNNING, {"me": worker_id})
    return [WorkOrder._make(row) for row in rows.all()]


def still_owned(
    connection: Connection, *, worker_id: str, runs: Sequence[StartedRun]
) -> frozenset[int]:
    """Which of these runs are still this worker's to execute."""
    return frozenset(
        execute_batch(connection, _select_owned, STARTED_COLUMNS, runs, {"me": worker_id}).scalars()
    )


@lru_cache
def _select_owned(dialect: Dialect, varying: tuple[str, ...]) -> Select[Any]:
    believed = unpack(dialect, STARTED_COLUMNS, varying)
    return select(job_runs.c.id).where(by_key(job_runs.c.id, believed.c.id), *is_owned(believed.c))


_TOTALS = select(
    func.count(),
    func.sum(job_runs.c.id),
    func.sum(job_runs.c.version),
    func.sum(job_runs.c.leader_epoch),
).where(job_runs.c.assigned_worker_id == _ME, in_indexed_state(RunState.RUNNING), not_(ANY_REQUEST))


def owns_exactly(connection: Connection, *, worker_id: str, runs: Sequence[StartedRun]) -> bool:
    """Whether these runs and no others run on this worker and no cancel is requested, by totals: much cheaper than
    `still_owned` for many.

    True only if each is still owned, provided that no other run is RUNNING in the worker's name; if one is, it will be
    among `runs` of the next check. False says nothing about any one of them.
    """
    ids, versions, epochs = zip(*runs, strict=True)
    believed = len(runs), sum(ids), sum(versions), sum(epochs)
    return tuple(execute(connection, _TOTALS, {"me": worker_id}).one()) == believed


# A row that its handler holds cannot be confirmed, and needs no confirmation: no process can fail that run.
_UNCONFIRMED = select(func.count()).select_from(
    select(job_runs.c.id)
    .where(
        job_runs.c.assigned_worker_id == _ME,
        in_indexed_state(RunState.RUNNING),
        job_runs.c.continuation_state == ContinuationState.CONFIRMING.value,
    )
    .with_for_update(key_share=True, skip_locked=True)
    .subquery()
)


def count_unconfirmed(connection: Connection, worker_id: str) -> int:
    """How many runs of a worker are CONFIRMING and not locked: the leader has not confirmed yet that they may go on."""
    return int(execute(connection, _UNCONFIRMED, {"me": worker_id}).scalar_one())
