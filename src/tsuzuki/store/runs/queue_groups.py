"""The queue by groups: due runs of given jobs, found without passing what is blocked.

A group is the waiting runs of one job with one concurrency key. A long backlog has few groups; a group whose key is at
its limit is one step into an index, however many runs wait in it. The order of what is found is that of the queue.
"""

from collections.abc import Collection, Iterable
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import (
    CTE,
    ColumnElement,
    Connection,
    FromClause,
    Integer,
    Select,
    and_,
    bindparam,
    func,
    literal_column,
    not_,
    or_,
    select,
    tuple_,
    union_all,
)
from sqlalchemy.engine import Dialect

from tsuzuki.model.job import JobEdition
from tsuzuki.model.run import RunRef
from tsuzuki.store.runs.indexed_states import WAITING_STATES
from tsuzuki.store.runs.queue import JOB_EDITION, DueRun
from tsuzuki.store.runs.states import HELD, in_states
from tsuzuki.store.schema.tables import job_definitions, job_runs
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.dialect import is_sqlite
from tsuzuki.store.sql.prepared import execute
from tsuzuki.store.sql.value_list import in_list


class LiveJob(NamedTuple):
    """A job with runs that wait or are held, and what it says now."""

    id: int
    edition: JobEdition


def _next_live_job(after: ColumnElement[Any] | None = None) -> ColumnElement[Any]:
    """The job with the next higher id that has live runs."""
    found = (
        select(job_runs.c.job_definition_id)
        .where(job_runs.c.finished_at.is_(None))
        .order_by(job_runs.c.job_definition_id)
        .limit(literal_column("1"))
    )
    if after is not None:
        found = found.where(job_runs.c.job_definition_id > after)
    return found.scalar_subquery()


def _live_jobs() -> Select[Any]:
    """One step into the index per job, however many runs each has."""
    first = select(_next_live_job().label("job")).cte("live", recursive=True)
    live = first.union_all(select(_next_live_job(first.c.job)).where(first.c.job.is_not(None)))
    return select(
        job_definitions.c.id, job_definitions.c.version, job_definitions.c.updated_at
    ).join(live, live.c.job == job_definitions.c.id)


_LIVE_JOBS = _live_jobs()


def live_jobs(connection: Connection) -> list[LiveJob]:
    """Every job with waiting or held runs."""
    rows = execute(connection, _LIVE_JOBS).all()
    return [LiveJob(job_id, JobEdition(*edition)) for job_id, *edition in rows]


class GroupedRun(NamedTuple):
    """A due run, and its place in the order of the queue."""

    order: tuple[int, datetime, int]
    run: DueRun


def due_runs_without_key(
    connection: Connection,
    *,
    limited_jobs: Collection[int],
    unlimited_jobs: Collection[int],
    limit: int,
    per_limited_job: int,
) -> list[GroupedRun]:
    """The first due runs of these jobs that have no key, in the order of the queue; at most `per_limited_job` of each
    limited job. One step into the index per job."""
    values = {
        "limited": limited_jobs,
        "unlimited": unlimited_jobs,
        "limit": limit,
        "per_limited_job": min(per_limited_job, limit),
    }
    return _grouped(execute(connection, _due_without_key(connection.dialect), values).all())


def due_runs_with_key(
    connection: Connection, *, jobs: Collection[int], limit: int, per_key: int
) -> list[GroupedRun]:
    """The first due runs of these jobs whose key is not at its limit, in the order of the queue; at most `per_key` of
    each key. One step into the index per key."""
    values = {"jobs": jobs, "limit": limit, "per_key": min(per_key, limit)}
    return _grouped(execute(connection, _due_with_key(connection.dialect), values).all())


def _grouped(rows: Iterable[Any]) -> list[GroupedRun]:
    return [
        GroupedRun(
            (-priority, scheduled_for, run_id),
            DueRun(RunRef(run_id, version), job_id, key, job_version, job_updated_at),
        )
        for (
            run_id,
            version,
            job_id,
            key,
            job_version,
            job_updated_at,
            priority,
            scheduled_for,
        ) in rows
    ]


# Conditions and order as the indexes have them, literals included: only so do they serve.
_RUN = job_runs.alias("run")
_KEY = _RUN.c.concurrency_key
_WAITING = in_states(WAITING_STATES, of=_RUN)
_BY_KEY = and_(_WAITING, or_(_KEY.is_(None), func.length(_KEY) <= literal_column("200")))
_LONG_KEY = and_(_WAITING, func.length(_KEY) > literal_column("200"))


@lru_cache
def _due_without_key(dialect: Dialect) -> Select[Any]:
    limited, unlimited = _listed("limited"), _listed("unlimited")
    return _first(
        _found(dialect, limited, _BY_KEY, _is_of(limited), _KEY.is_(None), limit="per_limited_job"),
        _found(dialect, unlimited, _BY_KEY, _is_of(unlimited), _KEY.is_(None), limit="limit"),
    )


@lru_cache
def _due_with_key(dialect: Dialect) -> Select[Any]:
    full, groups, jobs = _full_keys(), _groups(), _listed("jobs")
    is_open = _is_in_none(full, _RUN.c.job_definition_id, _KEY)
    return _first(
        _found(dialect, groups, _BY_KEY, _is_of(groups), groups.c.key == _KEY, limit="per_key")
        .where(groups.c.key.is_not(None))
        .where(_is_in_none(full, groups.c.job, groups.c.key)),
        _found(dialect, jobs, _LONG_KEY, _is_of(jobs), is_open, limit="limit"),
    )


def _first(*parts: Select[Any]) -> Select[Any]:
    found = union_all(*parts).subquery("found")
    return (
        select(found)
        .order_by(found.c.priority.desc(), found.c.scheduled_for, found.c.id)
        .limit(bindparam("limit", type_=Integer()))
    )


def _is_of(groups: FromClause) -> ColumnElement[bool]:
    return _RUN.c.job_definition_id == groups.c.job


def _is_in_none(full: CTE, *job_and_key: ColumnElement[Any]) -> ColumnElement[bool]:
    return not_(tuple_(*job_and_key).in_(select(full.c.job, full.c.key)))


def _listed(name: str) -> FromClause:
    """The jobs of a list parameter."""
    return (
        select(job_definitions.c.id.label("job"))
        .where(in_list(job_definitions.c.id, name))
        .subquery(name)
    )


def _full_keys() -> CTE:
    """Keys at their limit, counted from the held runs."""
    job, key = job_runs.c.job_definition_id, job_runs.c.concurrency_key
    limit = job_definitions.c.max_concurrent_per_key
    return (
        select(job.label("job"), key.label("key"))
        .join(job_definitions, job_definitions.c.id == job)
        .where(HELD, key.is_not(None), limit.is_not(None))
        .group_by(job, key)
        .having(func.count() >= func.min(limit))
        .cte("full_keys")
    )


def _groups() -> CTE:
    """Each key with waiting runs, one step into the index per key; the last row of a job has none."""
    jobs = _listed("jobs")

    def next_key(*after: ColumnElement[bool]) -> ColumnElement[Any]:
        return (
            select(_KEY)
            .where(_BY_KEY, _KEY.is_not(None), *after)
            .order_by(_KEY)
            .limit(literal_column("1"))
            .scalar_subquery()
        )

    found = select(jobs.c.job, next_key(_is_of(jobs)).label("key")).cte("groups", recursive=True)
    after = next_key(_is_of(found), found.c.key < _KEY)
    return found.union_all(select(found.c.job, after).where(found.c.key.is_not(None)))


def _found(
    dialect: Dialect, groups: FromClause, *which: ColumnElement[bool], limit: str
) -> Select[Any]:
    """The first due runs of each group, looked up group by group."""
    # By the key too, though it is one key or none: PostgreSQL would sort what has none, or read the whole queue.
    by_key = [] if which[0] is _LONG_KEY else [_KEY]
    ids = (
        select(_RUN.c.id)
        .where(*which, _RUN.c.scheduled_for <= db_now())
        .order_by(*by_key, _RUN.c.priority.desc(), _RUN.c.scheduled_for, _RUN.c.id)
        .limit(bindparam(limit, type_=Integer()))
        .correlate(groups)
    )
    matches = (
        job_runs.c.id.in_(ids)
        if is_sqlite(dialect)
        else job_runs.c.id == func.any(func.array(ids.scalar_subquery()))
    )
    return select(
        job_runs.c.id,
        job_runs.c.version,
        job_runs.c.job_definition_id,
        job_runs.c.concurrency_key,
        *JOB_EDITION,
        job_runs.c.priority,
        job_runs.c.scheduled_for,
    ).select_from(groups.join(job_runs, matches))
