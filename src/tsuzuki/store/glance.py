"""A leader's look at everything: whether anything is due, waits, is out of order or has changed.

One question, because an idle leader asks it and nothing else.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    Integer,
    bindparam,
    exists,
    func,
    or_,
    select,
)

from tsuzuki.model.states import ContinuationState, RunState
from tsuzuki.model.worker import WorkerState
from tsuzuki.store.database import AHEAD_SECONDS, db_now
from tsuzuki.store.standing import HELD, WAITING, is_in
from tsuzuki.store.tables import events, job_definitions, job_runs, workers

# State by state, so that each is one step into the index, however much waits for later.
_FIRST_DUE = [
    select(job_runs.c.scheduled_for)
    .where(is_in(state), job_runs.c.scheduled_for > db_now())
    .order_by(job_runs.c.scheduled_for)
    .limit(1)
    .scalar_subquery()
    for state in (RunState.PENDING, RunState.ORPHANED)
]
_NEXT_DUE = select(*_FIRST_DUE)


def next_due_at(connection: Connection) -> datetime | None:
    """When the next waiting run that is not due yet will be."""
    return _earliest(connection.execute(_NEXT_DUE).one())


def _earliest(moments: Iterable[datetime | None]) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)


def _uneasy() -> ColumnElement[bool]:
    """Whether anything at all is out of order."""
    unwell = select(workers.c.id).where(
        workers.c.state != WorkerState.GONE,
        or_(
            workers.c.state == WorkerState.DETACHED,
            workers.c.heartbeat_at <= db_now(bindparam("silence", type_=Float())),
            workers.c.heartbeat_at > db_now(AHEAD_SECONDS),
        ),
    )
    at_limit = select(job_runs.c.id).where(
        is_in(RunState.ORPHANED),
        job_runs.c.orphan_count >= bindparam("max_orphans", type_=Integer()),
    )
    in_doubt = select(job_runs.c.id).where(
        HELD,
        or_(
            job_runs.c.continuation_state == ContinuationState.CONFIRMING.value,
            job_runs.c.assigned_worker_id.not_in(
                select(workers.c.id).where(workers.c.state != WorkerState.GONE)
            ),
        ),
    )
    # From the few jobs that were removed to their runs, not from all that waits to its jobs.
    # A LIMIT, because PostgreSQL would turn a plain EXISTS round again.
    one_waiting = (
        select(job_runs.c.id)
        .where(
            job_runs.c.job_definition_id == job_definitions.c.id,
            job_runs.c.finished_at.is_(None),
            WAITING,
        )
        .limit(1)
        .scalar_subquery()
    )
    removed = select(job_definitions.c.id).where(
        job_definitions.c.deleted_at.is_not(None), one_waiting.is_not(None)
    )
    return or_(exists(unwell), exists(at_limit), exists(in_doubt), exists(removed))


_NEEDS_RESCUE = select(_uneasy())


def needs_rescue(connection: Connection, *, silent_after_seconds: float, max_orphans: int) -> bool:
    """Whether anything at all is out of order. One query, so that looking often costs little."""
    limits = {"silence": -silent_after_seconds, "max_orphans": max_orphans}
    return bool(connection.execute(_NEEDS_RESCUE, limits).scalar_one())


class Glance(NamedTuple):
    """All that a leader has to know to see that there is nothing to do."""

    now: datetime
    is_due: bool
    has_events: bool
    needs_rescue: bool
    jobs: tuple[int, int]
    """How many job definitions there are, and how often they were changed in all."""
    next_due_at: datetime | None


_GLANCE = select(
    db_now(),
    exists(select(job_runs.c.id).where(WAITING, job_runs.c.scheduled_for <= db_now())),
    exists(select(events.c.id).where(events.c.processed_at.is_(None))),
    _uneasy(),
    select(func.count()).select_from(job_definitions).scalar_subquery(),
    select(func.coalesce(func.sum(job_definitions.c.version), 0)).scalar_subquery(),
    *_FIRST_DUE,
)


def look(connection: Connection, *, silent_after_seconds: float, max_orphans: int) -> Glance:
    """One look at everything. An idle leader asks this and nothing else."""
    limits = {"silence": -silent_after_seconds, "max_orphans": max_orphans}
    now, is_due, has_events, uneasy, jobs, changes, *firsts = connection.execute(
        _GLANCE, limits
    ).one()
    return Glance(
        now=now,
        is_due=bool(is_due),
        has_events=bool(has_events),
        needs_rescue=bool(uneasy),
        jobs=(jobs, int(changes)),
        next_due_at=_earliest(firsts),
    )
