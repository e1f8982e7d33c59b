"""The parts of a move's UPDATE: the values it sets, and the conditions in its WHERE."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Update, case, exists, select, update

from tsuzuki.model.states import Actor, ContinuationState, Reason, RunState
from tsuzuki.model.worker import WorkerState
from tsuzuki.store.liveness import is_heard, is_present
from tsuzuki.store.runs.states import in_states
from tsuzuki.store.schema.tables import job_runs, workers
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.locked_rows import LockedRows
from tsuzuki.store.sql.plan_hints import guard


def signed(actor: Actor, actor_id: Any, epoch: Any, *, moves: int = 1) -> dict[str, Any]:
    """Who moves the run; the database's trigger copies it into the history."""
    return {
        "version": job_runs.c.version + moves,
        "moved_at": db_now(),
        "moved_as": actor,
        "moved_by": actor_id,
        "moved_epoch": epoch,
    }


def assigned_to(worker_id: Any) -> dict[str, Any]:
    again = job_runs.c.state == RunState.ORPHANED
    return {
        "assigned_worker_id": worker_id,
        "assigned_at": db_now(),
        "attempt": case((again, job_runs.c.attempt + 1), else_=job_runs.c.attempt),
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


def orphaned(reason: Reason) -> dict[str, Any]:
    return {
        "state": RunState.ORPHANED,
        "reason": reason,
        "orphan_count": job_runs.c.orphan_count + 1,
    }


def in_state(*states: RunState) -> ColumnElement[bool]:
    return guard(in_states(states))


def is_assigned_to(worker_id: Any) -> ColumnElement[bool]:
    return guard(job_runs.c.assigned_worker_id == worker_id)


def takes_work(worker_id: Any) -> ColumnElement[bool]:
    """The worker is attached, and so may be assigned runs."""
    return exists(
        select(workers.c.id).where(
            workers.c.id == worker_id, workers.c.state == WorkerState.ATTACHED
        )
    )


def assigned_worker_is_heard(*, attached: bool = False) -> ColumnElement[bool]:
    """The run's worker was heard within the ttl and is not gone; if asked, not detached either."""
    is_there = is_present() if attached else workers.c.state != WorkerState.GONE
    return exists(
        select(workers.c.id).where(
            workers.c.id == job_runs.c.assigned_worker_id, is_heard(), is_there
        )
    )


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
