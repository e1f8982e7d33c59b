"""What the moves of a run are made of: the values they set, the conditions in their WHERE, the UPDATE itself."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Update, case, exists, select, update

from tsuzuki.model.states import Actor, ContinuationState, Reason, RunState
from tsuzuki.model.worker import WorkerState
from tsuzuki.store.batch import guard
from tsuzuki.store.chosen import Chosen
from tsuzuki.store.database import db_now
from tsuzuki.store.standing import among
from tsuzuki.store.tables import job_runs, workers


def signed(actor: Actor, actor_id: Any, epoch: Any, *, moves: int = 1) -> dict[str, Any]:
    """The mover's signature: the database copies it into the history."""
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
    return guard(among(states))


def mine(worker_id: Any) -> ColumnElement[bool]:
    return guard(job_runs.c.assigned_worker_id == worker_id)


def takes_work(worker_id: Any) -> ColumnElement[bool]:
    """The worker is there and may be given something."""
    return exists(
        select(workers.c.id).where(
            workers.c.id == worker_id, workers.c.state == WorkerState.ATTACHED
        )
    )


def worker_is_heard(silent_after_seconds: float, *, attached: bool = False) -> ColumnElement[bool]:
    """Its heartbeat is recent (and, if asked, it still takes work or finishes what it has)."""
    conditions = [
        workers.c.id == job_runs.c.assigned_worker_id,
        workers.c.heartbeat_at > db_now(-silent_after_seconds),
        workers.c.state != WorkerState.GONE,
    ]
    if attached:
        conditions.append(workers.c.state != WorkerState.DETACHED)
    return exists(select(workers.c.id).where(*conditions))


def guarded_update(rows: Chosen, allowed: ColumnElement[bool], values: Mapping[str, Any]) -> Update:
    return (
        update(job_runs)
        .where(
            rows.meant,
            guard(job_runs.c.version == rows.c.version),
            allowed,
        )
        .values(**values)
    )
