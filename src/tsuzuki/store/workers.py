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
    Float,
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
from sqlalchemy.sql.dml import ReturningUpdate

from tsuzuki.model.states import ContinuationState, RunState
from tsuzuki.model.worker import DetachReason, Worker, WorkerState
from tsuzuki.store.leadership import TERM_IS_CURRENT, Term
from tsuzuki.store.liveness import in_states, is_heard, is_heard_in_future, is_present, is_silent
from tsuzuki.store.runs.states import in_indexed_state
from tsuzuki.store.schema.tables import job_runs, workers
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.prepared import AnyConnection, execute
from tsuzuki.store.sql.types import UtcTime

_ME = workers.c.id == bindparam("me", type_=Text())
_THESE = workers.c.id.in_(bindparam("ids", expanding=True))

_REGISTER = insert(workers).values(
    state=WorkerState.ATTACHED, started_at=db_now(), heartbeat_at=db_now()
)


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
    who = {
        "id": worker_id,
        "host": host,
        "pid": pid,
        "capacity": capacity,
        "tags": sorted(tags),
        "software_version": software_version,
    }
    connection.execute(_REGISTER, who)


_HEARTBEAT = (
    update(workers)
    .where(_ME, workers.c.state != WorkerState.GONE)
    .values(heartbeat_at=db_now())
    .returning(workers.c.state)
)


def heartbeat(connection: AnyConnection, worker_id: str) -> WorkerState | None:
    """A worker says that it lives, and hears in which state it is held."""
    state = execute(connection, _HEARTBEAT, {"me": worker_id}).scalar_one_or_none()
    return None if state is None else WorkerState(state)


_SILENT = select(workers.c.id).where(is_present(), is_silent())


def silent(connection: Connection, *, silent_after_seconds: float) -> list[str]:
    """Who would be cut off now: attached, and silent for that long."""
    return list(execute(connection, _SILENT, {"minus_ttl": -silent_after_seconds}).scalars())


_REFRESH = (
    update(workers)
    .where(
        _THESE,
        is_present(),
        workers.c.heartbeat_at < bindparam("sent_at", type_=UtcTime()),
        TERM_IS_CURRENT,
    )
    .values(heartbeat_at=bindparam("sent_at", type_=UtcTime()))
    .returning(workers.c.id)
)


def refresh_heartbeats(
    connection: Connection, *, term: Term, worker_ids: Collection[str], sent_at: datetime
) -> frozenset[str]:
    """The leader knows by another way that workers lived at that moment of the database's clock, and
    writes down just that. It keeps them attached; whoever was cut off must speak for itself."""
    if not worker_ids:
        return frozenset()
    heard = {"ids": sorted(worker_ids), "sent_at": sent_at, "epoch": term.epoch}
    return frozenset(connection.execute(_REFRESH, heard).scalars())


# Whoever's row is held is left for the next look: to wait would mean to go by a time that is past.
_IN_FUTURE = (
    select(workers.c.id)
    .where(
        workers.c.state != WorkerState.GONE,
        is_heard_in_future(),
    )
    .with_for_update(key_share=True, skip_locked=True)
)
_RESET_FUTURE = (
    update(workers)
    .where(workers.c.id.in_(_IN_FUTURE), TERM_IS_CURRENT)
    .values(heartbeat_at=db_now())
    .returning(workers.c.id)
)


def reset_future_heartbeats(connection: Connection, *, term: Term) -> frozenset[str]:
    """Nobody was heard at a moment that is yet to come: the clock was put back since. Counted from now,
    the silence of whoever is dead is noticed as soon as any other's; who lives speaks again."""
    return frozenset(execute(connection, _RESET_FUTURE, {"epoch": term.epoch}).scalars())


def _setting(
    guard: ColumnElement[bool], state: WorkerState, detach_reason: DetachReason | None = None
) -> ReturningUpdate[Any]:
    """Written once and kept: whoever looks after workers says these again and again."""
    different = or_(
        workers.c.state != state, workers.c.detach_reason.is_distinct_from(detach_reason)
    )
    return (
        update(workers)
        .where(guard, different)
        .values(state=state, detach_reason=detach_reason)
        .returning(workers.c.id)
    )


_DRAIN = _setting(and_(_THESE, workers.c.state == WorkerState.ATTACHED), WorkerState.DRAINING)
_DETACH = _setting(
    and_(_THESE, workers.c.state != WorkerState.GONE), WorkerState.DETACHED, DetachReason.OPERATOR
)
_DETACH_SILENT = _setting(
    and_(
        workers.c.state == WorkerState.ATTACHED,
        is_silent(),
        TERM_IS_CURRENT,
    ),
    WorkerState.DETACHED,
    DetachReason.SILENT,
)
_REATTACH = _setting(
    and_(
        workers.c.state == WorkerState.DETACHED,
        workers.c.detach_reason == DetachReason.SILENT,
        is_heard(),
        TERM_IS_CURRENT,
    ),
    WorkerState.ATTACHED,
)


def drain(connection: Connection, worker_ids: Sequence[str]) -> frozenset[str]:
    """Let workers finish what they have and take nothing new."""
    return frozenset(connection.execute(_DRAIN, {"ids": worker_ids}).scalars())


def detach(connection: Connection, worker_ids: Sequence[str]) -> frozenset[str]:
    """An operator cuts workers off. They are not re-attached."""
    return frozenset(connection.execute(_DETACH, {"ids": worker_ids}).scalars())


def detach_silent(
    connection: Connection, *, term: Term, silent_after_seconds: float
) -> frozenset[str]:
    """The leader cuts off whoever has been silent that long. Not who drains: it gets nothing new
    anyway, and coming back it would be attached and no longer know that it is to deregister."""
    judged = {"minus_ttl": -silent_after_seconds, "epoch": term.epoch}
    return frozenset(execute(connection, _DETACH_SILENT, judged).scalars())


def reattach_and_confirm(
    connection: Connection, *, term: Term, silent_after_seconds: float
) -> frozenset[str]:
    """The leader takes back workers that were only silent and speak again, and answers the
    question their runs were asking: they go on."""
    judged = {"minus_ttl": -silent_after_seconds, "epoch": term.epoch}
    back = frozenset(execute(connection, _REATTACH, judged).scalars())
    execute(connection, _CONFIRM, judged)
    return back


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


_CONFIRMING_IN_TIME = and_(
    in_indexed_state(RunState.RUNNING),
    job_runs.c.continuation_state == ContinuationState.CONFIRMING,
    job_runs.c.continuation_check_deadline_at > db_now(),
    job_runs.c.assigned_worker_id.in_(select(workers.c.id).where(is_present(), is_heard())),
)
_CONFIRM = (
    update(job_runs)
    .where(
        job_runs.c.id.in_(_locked_in_order(_CONFIRMING_IN_TIME)),
        _CONFIRMING_IN_TIME,
        TERM_IS_CURRENT,
    )
    .values(continuation_state=ContinuationState.NONE, continuation_check_deadline_at=None)
)
_UNMARKED = and_(
    job_runs.c.assigned_worker_id == bindparam("me", type_=Text()),
    in_indexed_state(RunState.RUNNING),
    job_runs.c.continuation_state == ContinuationState.NONE,
)
_REQUEST_CONFIRMATION = (
    update(job_runs)
    .where(job_runs.c.id.in_(_locked_in_order(_UNMARKED)), _UNMARKED)
    .values(
        continuation_state=ContinuationState.CONFIRMING,
        continuation_check_deadline_at=db_now(bindparam("deadline_seconds", type_=Float())),
    )
)


def request_confirmation(connection: Connection, *, worker_id: str, deadline_seconds: float) -> int:
    """A worker in doubt marks all it runs as CONFIRMING. Answers how many there are."""
    asked = {"me": worker_id, "deadline_seconds": deadline_seconds}
    return execute(connection, _REQUEST_CONFIRMATION, asked).rowcount


_DEREGISTER = _setting(_ME, WorkerState.GONE)
_RETIRE_ID = _setting(
    workers.c.id.in_(select(workers.c.id).where(_ME).with_for_update(skip_locked=True)),
    WorkerState.GONE,
)
_BUSY = select(job_runs.c.assigned_worker_id).where(
    job_runs.c.assigned_worker_id == workers.c.id,
    in_indexed_state(RunState.ASSIGNED, RunState.RUNNING),
)
_MARK_GONE = _setting(
    and_(
        in_states(WorkerState.DETACHED, WorkerState.DRAINING),
        is_silent(),
        ~_BUSY.exists(),
        TERM_IS_CURRENT,
    ),
    WorkerState.GONE,
)


def deregister(connection: Connection, worker_id: str) -> bool:
    """A worker says goodbye."""
    return execute(connection, _DEREGISTER, {"me": worker_id}).scalar_one_or_none() is not None


def retire_id(connection: Connection, worker_id: str) -> bool:
    """A name that its worker does not use any more: nobody should give it anything. Waits for nobody; if
    somebody holds the row, the silence of that name will tell."""
    return execute(connection, _RETIRE_ID, {"me": worker_id}).scalar_one_or_none() is not None


def mark_silent_gone(
    connection: Connection, *, term: Term, silent_after_seconds: float
) -> frozenset[str]:
    """Whoever has been silent for long and runs nothing any more is gone for good."""
    judged = {"minus_ttl": -silent_after_seconds, "epoch": term.epoch}
    return frozenset(execute(connection, _MARK_GONE, judged).scalars())


_BY_ID = select(workers).where(_ME)
_EVER = select(workers).order_by(workers.c.started_at, workers.c.id)
_NOT_GONE = _EVER.where(workers.c.state != WorkerState.GONE)


def get(connection: Connection, worker_id: str) -> Worker | None:
    row = connection.execute(_BY_ID, {"me": worker_id}).mappings().one_or_none()
    return None if row is None else worker_from(row)


def find(connection: Connection, *, with_gone: bool = False) -> list[Worker]:
    statement = _EVER if with_gone else _NOT_GONE
    return [worker_from(row) for row in connection.execute(statement).mappings().all()]


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
