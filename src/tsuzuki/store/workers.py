"""Workers: who is there, who is silent, who was cut off.

A heartbeat is one write per worker whatever it runs, and its answer tells the worker what the others
think of it.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    Text,
    and_,
    bindparam,
    insert,
    or_,
    select,
    update,
)

from tsuzuki.model.states import ContinuationState, RunState
from tsuzuki.model.worker import DetachReason, Worker, WorkerState
from tsuzuki.store.database import db_now
from tsuzuki.store.leadership import Term, held
from tsuzuki.store.tables import job_runs, workers


def register(
    connection: Connection,
    *,
    worker_id: str,
    host: str,
    pid: int,
    capacity: int,
    tags: frozenset[str],
    software_version: str,
) -> None:
    """A worker introduces itself, once: its id is new at every start."""
    connection.execute(
        insert(workers).values(
            id=worker_id,
            host=host,
            pid=pid,
            state=WorkerState.ATTACHED,
            capacity=capacity,
            tags=sorted(tags),
            software_version=software_version,
            started_at=db_now(),
            heartbeat_at=db_now(),
        )
    )


_BEAT = (
    update(workers)
    .where(
        workers.c.id == bindparam("me", type_=Text()),
        workers.c.state != WorkerState.GONE,
    )
    .values(heartbeat_at=db_now())
    .returning(workers.c.state)
)


def beat(connection: Connection, worker_id: str) -> WorkerState | None:
    """A worker says that it lives, and hears in which state it is held."""
    state = connection.execute(_BEAT, {"me": worker_id}).scalar_one_or_none()
    return None if state is None else WorkerState(state)


def late(connection: Connection, *, silent_after_seconds: float) -> list[str]:
    """Who would be cut off now: attached, and silent for that long."""
    statement = select(workers.c.id).where(
        workers.c.state.in_([WorkerState.ATTACHED, WorkerState.DRAINING]),
        workers.c.heartbeat_at <= db_now(-silent_after_seconds),
    )
    return list(connection.execute(statement).scalars())


def vouch(
    connection: Connection, *, term: Term, worker_ids: Collection[str], heard_at: datetime
) -> frozenset[str]:
    """The leader knows by another way that workers lived at that moment of the database's clock, and
    writes down just that. It keeps them attached; whoever was cut off must speak for itself."""
    if not worker_ids:
        return frozenset()
    statement = (
        update(workers)
        .where(
            workers.c.id.in_(sorted(worker_ids)),
            workers.c.state.in_([WorkerState.ATTACHED, WorkerState.DRAINING]),
            workers.c.heartbeat_at < heard_at,
            held(term),
        )
        .values(heartbeat_at=heard_at)
        .returning(workers.c.id)
    )
    return frozenset(connection.execute(statement).scalars())


def drain(connection: Connection, worker_ids: Sequence[str]) -> frozenset[str]:
    """Let workers finish what they have and take nothing new."""
    return _set_state(
        connection,
        workers.c.id.in_(worker_ids) & (workers.c.state == WorkerState.ATTACHED),
        WorkerState.DRAINING,
    )


def expel(connection: Connection, worker_ids: Sequence[str]) -> frozenset[str]:
    """An operator cuts workers off. They are not re-attached."""
    return _set_state(
        connection,
        workers.c.id.in_(worker_ids) & (workers.c.state != WorkerState.GONE),
        WorkerState.DETACHED,
        DetachReason.OPERATOR,
    )


def detach_silent(
    connection: Connection, *, term: Term, silent_after_seconds: float
) -> frozenset[str]:
    """The leader cuts off whoever has been silent that long. Not who drains: it gets nothing new
    anyway, and coming back it would be attached and no longer know that it is to leave."""
    return _set_state(
        connection,
        and_(
            workers.c.state == WorkerState.ATTACHED,
            workers.c.heartbeat_at <= db_now(-silent_after_seconds),
            held(term),
        ),
        WorkerState.DETACHED,
        DetachReason.SILENT,
    )


def reattach_heard(
    connection: Connection, *, term: Term, silent_after_seconds: float
) -> frozenset[str]:
    """The leader takes back workers that were only silent and speak again, and answers the
    question their runs were asking: they go on."""
    back = _set_state(
        connection,
        and_(
            workers.c.state == WorkerState.DETACHED,
            workers.c.detach_reason == DetachReason.SILENT,
            workers.c.heartbeat_at > db_now(-silent_after_seconds),
            held(term),
        ),
        WorkerState.ATTACHED,
    )
    answered = and_(
        job_runs.c.state == RunState.RUNNING,
        job_runs.c.continuation_state == ContinuationState.CONFIRMING,
        job_runs.c.continuation_check_deadline_at > db_now(),
        job_runs.c.assigned_worker_id.in_(
            select(workers.c.id).where(
                workers.c.state.in_([WorkerState.ATTACHED, WorkerState.DRAINING]),
                workers.c.heartbeat_at > db_now(-silent_after_seconds),
            )
        ),
    )
    connection.execute(
        update(job_runs)
        .where(job_runs.c.id.in_(_locked_in_order(answered)), answered, held(term))
        .values(continuation_state=ContinuationState.NONE, continuation_check_deadline_at=None)
    )
    return back


def ask_to_continue(connection: Connection, *, worker_id: str, deadline_seconds: float) -> int:
    """A worker in doubt marks all it runs as CONFIRMING. Answers how many there are."""
    unasked = and_(
        job_runs.c.assigned_worker_id == worker_id,
        job_runs.c.state == RunState.RUNNING,
        job_runs.c.continuation_state == ContinuationState.NONE,
    )
    return connection.execute(
        update(job_runs)
        .where(job_runs.c.id.in_(_locked_in_order(unasked)), unasked)
        .values(
            continuation_state=ContinuationState.CONFIRMING,
            continuation_check_deadline_at=db_now(deadline_seconds),
        )
    ).rowcount


def _locked_in_order(condition: ColumnElement[bool]) -> Select[Any]:
    """The runs to change, locked in the order of their ids like every batch of moves, so that the
    two never wait for each other in a circle."""
    return (
        select(job_runs.c.id)
        .where(condition)
        .order_by(job_runs.c.id)
        .with_for_update(of=job_runs, key_share=True)
        .correlate(None)
    )


def leave(connection: Connection, worker_id: str) -> bool:
    """A worker says goodbye."""
    return worker_id in _set_state(connection, workers.c.id == worker_id, WorkerState.GONE)


def bury_silent(
    connection: Connection, *, term: Term, silent_after_seconds: float
) -> frozenset[str]:
    """Whoever has been silent for long and runs nothing any more is gone for good."""
    busy = select(job_runs.c.assigned_worker_id).where(
        job_runs.c.assigned_worker_id == workers.c.id,
        job_runs.c.state.in_([RunState.ASSIGNED, RunState.RUNNING]),
    )
    return _set_state(
        connection,
        and_(
            workers.c.state.in_([WorkerState.DETACHED, WorkerState.DRAINING]),
            workers.c.heartbeat_at <= db_now(-silent_after_seconds),
            ~busy.exists(),
            held(term),
        ),
        WorkerState.GONE,
    )


def get(connection: Connection, worker_id: str) -> Worker | None:
    statement = select(workers).where(workers.c.id == worker_id)
    row = connection.execute(statement).mappings().one_or_none()
    return None if row is None else worker_from(row)


def find(connection: Connection, *, with_gone: bool = False) -> list[Worker]:
    statement = _EVER if with_gone else _PRESENT
    return [worker_from(row) for row in connection.execute(statement).mappings().all()]


_EVER = select(workers).order_by(workers.c.started_at, workers.c.id)
_PRESENT = _EVER.where(workers.c.state != WorkerState.GONE)


def _set_state(
    connection: Connection,
    guard: ColumnElement[bool],
    state: WorkerState,
    detach_reason: DetachReason | None = None,
) -> frozenset[str]:
    different = or_(
        workers.c.state != state, workers.c.detach_reason.is_distinct_from(detach_reason)
    )
    statement = (
        update(workers)
        .where(guard, different)
        .values(state=state, detach_reason=detach_reason)
        .returning(workers.c.id)
    )
    return frozenset(connection.execute(statement).scalars())


def worker_from(row: RowMapping) -> Worker:
    reason = row["detach_reason"]
    return Worker(
        id=row["id"],
        host=row["host"],
        pid=row["pid"],
        state=WorkerState(row["state"]),
        detach_reason=None if reason is None else DetachReason(reason),
        capacity=row["capacity"],
        tags=frozenset(row["tags"]),
        software_version=row["software_version"],
        started_at=row["started_at"],
        heartbeat_at=row["heartbeat_at"],
    )
