"""The parts of a move's UPDATE: the values it sets, and the conditions in its WHERE."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Float,
    Integer,
    Update,
    and_,
    bindparam,
    case,
    exists,
    func,
    not_,
    or_,
    select,
    update,
)

from tsuzuki.model.clock import CLOCK_TOLERANCE_SECONDS
from tsuzuki.model.settings import NOTICE_SHARE
from tsuzuki.model.states import Actor, ContinuationState, Reason, RunState
from tsuzuki.model.worker import WorkerState
from tsuzuki.store.liveness import (
    LOST_AFTER,
    MINUS_TTL,
    at_least,
    has_recent_heartbeat,
    is_not_dead,
    is_present,
    is_registered,
)
from tsuzuki.store.runs.states import in_states
from tsuzuki.store.schema.tables import job_runs, workers
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.locked_rows import LockedRows
from tsuzuki.store.sql.plan_hints import guard


def signed(actor: Actor, actor_id: Any, epoch: Any, *, moves: int = 1) -> dict[str, Any]:
    """The actor of a move, and its epoch; the database's trigger copies them into the history."""
    return {
        "version": job_runs.c.version + moves,
        "moved_at": db_now(),
        "moved_as": actor,
        "moved_by": actor_id,
        "moved_epoch": epoch,
    }


def assigned_to(worker_id: Any) -> dict[str, Any]:
    is_reassigned = job_runs.c.state == RunState.ORPHANED
    return {
        "assigned_worker_id": worker_id,
        "assigned_at": db_now(),
        "attempt": case((is_reassigned, job_runs.c.attempt + 1), else_=job_runs.c.attempt),
        "reason": None,
    }


def started(epoch: Any) -> dict[str, Any]:
    return {"state": RunState.RUNNING, "started_at": db_now(), "leader_epoch": epoch}


def ended(state: Any, reason: Any) -> dict[str, Any]:
    return {
        "state": state,
        "reason": reason,
        "finished_at": db_now(),
        "continuation_state": ContinuationState.NONE,
        "continuation_check_deadline_at": None,
    }


def orphaned(reason: Reason, *, is_free: ColumnElement[bool]) -> dict[str, Any]:
    """`is_free`: it does not count against `max_orphans`."""
    return {
        "state": RunState.ORPHANED,
        "reason": reason,
        "orphan_count": job_runs.c.orphan_count + 1,
        "orphans_free": job_runs.c.orphans_free + case((is_free, 1), else_=0),
    }


def in_state(*states: RunState) -> ColumnElement[bool]:
    return guard(in_states(states))


def is_assigned_to(worker_id: Any) -> ColumnElement[bool]:
    return guard(job_runs.c.assigned_worker_id == worker_id)


def takes_work(worker_id: Any) -> ColumnElement[bool]:
    """The worker is attached: runs may be assigned to it."""
    return exists(
        select(workers.c.id).where(
            workers.c.id == worker_id, workers.c.state == WorkerState.ATTACHED
        )
    )


def assigned_worker_is_attached() -> ColumnElement[bool]:
    """The run's worker has a heartbeat within the TTL, and is neither gone nor detached."""
    return exists(
        select(workers.c.id).where(
            workers.c.id == job_runs.c.assigned_worker_id, has_recent_heartbeat(), is_present()
        )
    )


def assigned_worker_may_run() -> ColumnElement[bool]:
    """The run's worker is neither gone nor recorded as dead, and has a heartbeat within the TTL, or within the time
    after which it stops its runs by the settings that it last confirmed. It may be cut off, and not know that they are
    shorter now."""
    return exists(
        select(workers.c.id).where(
            workers.c.id == job_runs.c.assigned_worker_id,
            has_recent_heartbeat(at_least(MINUS_TTL, LOST_AFTER)),
            is_registered(),
            is_not_dead(),
        )
    )


def assigned_worker_has_no_notice() -> ColumnElement[bool]:
    """SQLite: the silence of the run's worker has not been on record for the notice period. A worker that waits for
    the write lock can read, and relies on it; one that is dead cannot. `minus_notice` 0 demands no record."""
    minus_notice = bindparam("minus_notice", type_=Float())
    confirmed = func.coalesce(workers.c.grace_seconds * NOTICE_SHARE, 0.0)
    recorded_at = workers.c.silence_recorded_at
    return exists(
        select(workers.c.id).where(
            workers.c.id == job_runs.c.assigned_worker_id,
            is_registered(),
            is_not_dead(),
            minus_notice < 0,
            or_(recorded_at.is_(None), recorded_at > db_now(at_least(minus_notice, confirmed))),
        )
    )


def is_stale_assignment() -> ColumnElement[bool]:
    """The run was assigned long ago to a worker that is detached or silent. An assignment in the future (clock
    skew: the clock was set back since) is long ago too."""
    assigned_before = db_now(bindparam("minus_reassign_after", type_=Float()))
    return and_(
        or_(
            job_runs.c.assigned_at <= assigned_before,
            job_runs.c.assigned_at > db_now(CLOCK_TOLERANCE_SECONDS),
        ),
        not_(assigned_worker_is_attached()),
    )


def is_lost() -> ColumnElement[bool]:
    """The run's worker has been silent for the TTL or is recorded as dead, and is not being confirmed. A
    confirmation deadline further ahead than the silence that is judged by does not count (clock skew: the clock was set
    back since)."""
    deadline = job_runs.c.continuation_check_deadline_at
    confirmed = select(workers.c.id).where(
        workers.c.id == job_runs.c.assigned_worker_id, deadline <= db_now(LOST_AFTER)
    )
    confirming = and_(
        job_runs.c.continuation_state == ContinuationState.CONFIRMING,
        deadline > db_now(),
        or_(deadline <= db_now(-MINUS_TTL), exists(confirmed)),
    )
    return and_(
        not_(assigned_worker_may_run()), not_(assigned_worker_has_no_notice()), not_(confirming)
    )


def stale_after(*, reassign_after_seconds: float, silent_after_seconds: float) -> dict[str, float]:
    """The parameters of `is_stale_assignment`."""
    return {"minus_reassign_after": -reassign_after_seconds, "minus_ttl": -silent_after_seconds}


def lost_after(silent_after_seconds: float, *, notice_seconds: float) -> dict[str, float]:
    """The parameters of `is_lost`."""
    return {
        "minus_ttl": -silent_after_seconds,
        "minus_notice": -notice_seconds,
    }


def is_at_orphan_limit() -> ColumnElement[bool]:
    """The run was orphaned `max_orphans` times or more, those that are free left out."""
    counted = job_runs.c.orphan_count - job_runs.c.orphans_free
    return counted >= bindparam("max_orphans", type_=Integer())


def guarded_update(
    rows: LockedRows, allowed: ColumnElement[bool], values: Mapping[str, Any]
) -> Update:
    return (
        update(job_runs)
        .where(
            rows.matches,
            guard(job_runs.c.version == rows.c.version),
            allowed,
        )
        .values(**values)
    )
