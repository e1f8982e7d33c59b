"""Runs that need rescue: their worker is silent or gone, they were orphaned too often, or their job is gone.

`needs_rescue` is the cheap check; the other queries find the runs themselves. Both are made of the same
conditions.
"""

from sqlalchemy import ColumnElement, Connection, Integer, bindparam, exists, or_, select

from tsuzuki.model.run import Run, RunRef
from tsuzuki.model.states import ContinuationState, RunState
from tsuzuki.model.worker import WorkerState
from tsuzuki.store.liveness import has_future_heartbeat, is_registered, is_silent
from tsuzuki.store.rows import run_from
from tsuzuki.store.runs.move_parts import (
    is_at_orphan_limit,
    is_lost,
    is_stale_assignment,
    lost_after,
    stale_after,
)
from tsuzuki.store.runs.runs import SELECT_RUNS
from tsuzuki.store.runs.states import HELD, WAITING, in_indexed_state
from tsuzuki.store.schema.tables import job_definitions, job_runs, workers
from tsuzuki.store.sql.prepared import execute

_AT_ORPHAN_LIMIT = (in_indexed_state(RunState.ORPHANED), is_at_orphan_limit())
_WAITS_FOR_REMOVED_JOB = (
    job_definitions.c.id == job_runs.c.job_definition_id,
    job_definitions.c.deleted_at.is_not(None),
    job_runs.c.finished_at.is_(None),
    WAITING,
)


def limits(*, silent_after_seconds: float, max_orphans: int) -> dict[str, float]:
    """The parameters of `condition`."""
    return {"minus_ttl": -silent_after_seconds, "max_orphans": max_orphans}


def condition() -> ColumnElement[bool]:
    """Whether anything at all needs rescue."""
    not_live = select(workers.c.id).where(
        is_registered(),
        or_(workers.c.state == WorkerState.DETACHED, is_silent(), has_future_heartbeat()),
    )
    at_limit = select(job_runs.c.id).where(*_AT_ORPHAN_LIMIT)
    unconfirmed = select(job_runs.c.id).where(
        HELD,
        or_(
            job_runs.c.continuation_state == ContinuationState.CONFIRMING.value,
            job_runs.c.assigned_worker_id.not_in(select(workers.c.id).where(is_registered())),
        ),
    )
    # From the few removed jobs to their runs, not from all waiting runs to their jobs. A LIMIT,
    # because PostgreSQL would reverse a plain EXISTS.
    same_job, is_removed, *waits = _WAITS_FOR_REMOVED_JOB
    one_waiting = select(job_runs.c.id).where(same_job, *waits).limit(1).scalar_subquery()
    removed = select(job_definitions.c.id).where(is_removed, one_waiting.is_not(None))
    return or_(exists(not_live), exists(at_limit), exists(unconfirmed), exists(removed))


_NEEDS_RESCUE = select(condition())


def needs_rescue(connection: Connection, *, silent_after_seconds: float, max_orphans: int) -> bool:
    """Whether anything at all needs rescue. One query, so that a frequent check costs little."""
    parameters = limits(silent_after_seconds=silent_after_seconds, max_orphans=max_orphans)
    return bool(execute(connection, _NEEDS_RESCUE, parameters).scalar_one())


_STALE = SELECT_RUNS.where(in_indexed_state(RunState.ASSIGNED), is_stale_assignment())
_LOST = SELECT_RUNS.where(in_indexed_state(RunState.RUNNING), is_lost())
_ORPHANS = SELECT_RUNS.where(*_AT_ORPHAN_LIMIT)
_OF_REMOVED_JOBS = (
    select(job_runs.c.id, job_runs.c.version)
    .join(job_definitions, _WAITS_FOR_REMOVED_JOB[0])
    .where(*_WAITS_FOR_REMOVED_JOB[1:])
    .limit(bindparam("limit", type_=Integer()))
)


def stale_assignments(
    connection: Connection, *, reassign_after_seconds: float, silent_after_seconds: float
) -> list[Run]:
    """Runs that `moves.orphan` would orphan now. Usually none."""
    parameters = stale_after(
        reassign_after_seconds=reassign_after_seconds, silent_after_seconds=silent_after_seconds
    )
    return [run_from(row) for row in execute(connection, _STALE, parameters).mappings()]


def lost(
    connection: Connection, *, silent_after_seconds: float, notice_seconds: float = 0.0
) -> list[Run]:
    """Runs that `moves.fail_lost` would fail now. Usually none."""
    parameters = lost_after(silent_after_seconds, notice_seconds=notice_seconds)
    return [run_from(row) for row in execute(connection, _LOST, parameters).mappings()]


def orphans_at_limit(connection: Connection, *, max_orphans: int) -> list[Run]:
    """Runs that were orphaned `max_orphans` times or more."""
    rows = execute(connection, _ORPHANS, {"max_orphans": max_orphans}).mappings()
    return [run_from(row) for row in rows]


def waiting_of_removed_jobs(connection: Connection, *, limit: int) -> list[RunRef]:
    """Waiting runs whose job was removed before they started."""
    rows = execute(connection, _OF_REMOVED_JOBS, {"limit": limit})
    return [RunRef._make(row) for row in rows.all()]
