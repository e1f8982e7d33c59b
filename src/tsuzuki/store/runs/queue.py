"""The queue: runs that wait, in the order in which they are assigned, and when the next one is due."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    Connection,
    Integer,
    Select,
    bindparam,
    exists,
    not_,
    or_,
    select,
    union_all,
)

from tsuzuki.model.job import JobEdition
from tsuzuki.model.run import RunRef
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import RunState
from tsuzuki.store.bulk import BulkAction
from tsuzuki.store.runs.indexed_states import WAITING_STATES
from tsuzuki.store.runs.run_filter import covered
from tsuzuki.store.runs.states import HELD, WAITING, in_indexed_state
from tsuzuki.store.schema.tables import events, job_definitions, job_runs
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.plan_hints import guard, likely
from tsuzuki.store.sql.prepared import execute
from tsuzuki.store.sql.value_list import in_list


class DueRun(NamedTuple):
    """A run that is due, as far as the assigner needs to know it."""

    ref: RunRef
    job_id: int
    concurrency_key: str | None
    job_version: int
    job_updated_at: datetime

    @property
    def job_edition(self) -> JobEdition:
        return JobEdition(self.job_version, self.job_updated_at)


# Scalar subqueries per row, answered from the primary key: a join might reverse the index walk.
JOB_EDITION = tuple(
    select(column)
    .where(job_definitions.c.id == job_runs.c.job_definition_id)
    .scalar_subquery()
    .label(f"job_{column.name}")
    for column in (job_definitions.c.version, job_definitions.c.updated_at)
)
_DUE_RUN = select(
    job_runs.c.id,
    job_runs.c.version,
    job_runs.c.job_definition_id,
    job_runs.c.concurrency_key,
    *JOB_EDITION,
)
DUE = (
    _DUE_RUN
    # Along the index that has the queue in order, however long it is, without sorting it.
    .where(likely(WAITING), job_runs.c.scheduled_for <= db_now())
    .order_by(job_runs.c.priority.desc(), job_runs.c.scheduled_for, job_runs.c.id)
    .limit(bindparam("limit", type_=Integer()))
)


def due_runs(
    connection: Connection, *, limit: int, canceled_by: Sequence[BulkAction] = ()
) -> list[DueRun]:
    """Runs that may be assigned now, in order: priority, then time, then age; without those that one of these bulk
    cancels covers."""
    return _found(connection, DUE, {"limit": limit}, canceled_by)


_DUE_AMONG = _DUE_RUN.where(
    in_list(job_runs.c.id, "ids"), guard(WAITING), job_runs.c.scheduled_for <= db_now()
)


def due_among(
    connection: Connection, run_ids: Sequence[int], *, canceled_by: Sequence[BulkAction] = ()
) -> list[DueRun]:
    """Those of these runs that may be assigned now, without what one of these bulk cancels covers."""
    return _found(connection, _DUE_AMONG, {"ids": run_ids}, canceled_by)


def _found(
    connection: Connection,
    due: Select[Any],
    parameters: Mapping[str, Any],
    canceled_by: Sequence[BulkAction],
) -> list[DueRun]:
    found = (
        connection.execute(_except(due, canceled_by), parameters).all()
        if canceled_by
        else execute(connection, due, parameters).all()
    )
    return [
        DueRun(RunRef(run_id, version), job_id, key, job_version, job_updated_at)
        for run_id, version, job_id, key, job_version, job_updated_at in found
    ]


def _except(due: Select[Any], canceled_by: Sequence[BulkAction]) -> Select[Any]:
    return due.where(
        *(
            not_(covered(RunFilter.from_dict(action.filter), up_to_id=action.ceiling_id))
            for action in canceled_by
        )
    )


# State by state, so that each is one step into the index, however long the queue is.
FIRST_NOT_DUE = [
    select(job_runs.c.scheduled_for)
    .where(in_indexed_state(state), job_runs.c.scheduled_for > db_now())
    .order_by(job_runs.c.scheduled_for)
    .limit(1)
    .scalar_subquery()
    for state in WAITING_STATES
]
_NEXT_DUE = select(*FIRST_NOT_DUE)


def next_due_at(connection: Connection) -> datetime | None:
    """When the next waiting run that is not due yet will be."""
    return earliest(execute(connection, _NEXT_DUE).one())


def _first_in(state: RunState) -> Select[Any]:
    """Along the index of what waits, as above."""
    first = (
        select(job_runs.c.id, job_runs.c.scheduled_for)
        .where(in_indexed_state(state))
        .order_by(job_runs.c.scheduled_for)
        .limit(bindparam("limit", type_=Integer()))
        .subquery()
    )
    return select(first.c.id, first.c.scheduled_for)


_FIRST_WAITING = union_all(*map(_first_in, WAITING_STATES))


def first_waiting(connection: Connection, *, limit: int) -> list[int]:
    """The ids of waiting runs, due or not, by the time at which they are due; at most `limit`."""
    rows = execute(connection, _FIRST_WAITING, {"limit": limit}).all()
    ordered = sorted((due_at, run_id) for run_id, due_at in rows)
    return [run_id for _, run_id in ordered[:limit]]


def earliest(moments: Iterable[datetime | None]) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)


# One step into the index per job, however many runs wait. A LIMIT, because PostgreSQL would reverse a plain EXISTS.
_ONE_DUE = (
    select(job_runs.c.id)
    .where(
        job_runs.c.job_definition_id == job_definitions.c.id,
        job_runs.c.finished_at.is_(None),
        WAITING,
        job_runs.c.scheduled_for <= db_now(),
    )
    .limit(1)
    .scalar_subquery()
)
_JOBS_WITH_DUE = select(job_definitions.c.id).where(
    in_list(job_definitions.c.id, "ids"), _ONE_DUE.is_not(None)
)


def jobs_with_due_runs(connection: Connection, job_ids: Collection[int]) -> frozenset[int]:
    """Those of the jobs with a run that is due and waits."""
    if not job_ids:
        return frozenset()
    return frozenset(execute(connection, _JOBS_WITH_DUE, {"ids": sorted(job_ids)}).scalars())


_IS_BUSY = select(
    or_(
        exists(select(job_runs.c.id).where(HELD)),
        exists(select(events.c.id).where(events.c.processed_at.is_(None))),
    )
)


def is_idle(connection: Connection) -> bool:
    """Nothing is assigned or running, and no event is unprocessed."""
    return not execute(connection, _IS_BUSY).scalar_one()
