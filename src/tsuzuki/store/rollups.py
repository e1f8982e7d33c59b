"""Hourly rollups: how many runs of each job ended in an hour, with which outcome and after how long.

An hour is counted once, when it is over: rows and progress are one transaction under the leader's term. What
ended in the open hours is counted from the history when it is asked for.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Float,
    Integer,
    Select,
    Text,
    bindparam,
    case,
    delete,
    func,
    insert,
    literal_column,
    select,
    update,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.dml import Insert

from tsuzuki.model.durations import LIMITS_SECONDS, NEVER_STARTED
from tsuzuki.model.states import RunState
from tsuzuki.store.leadership import TERM_IS_CURRENT, Term
from tsuzuki.store.schema.rollup_tables import run_hours, run_hours_progress
from tsuzuki.store.schema.tables import job_run_transitions, job_runs
from tsuzuki.store.sql.batch import Columns, unpack
from tsuzuki.store.sql.dialect import insert_into, is_sqlite
from tsuzuki.store.sql.prepared import execute, execute_batch
from tsuzuki.store.sql.stored_values import to_text
from tsuzuki.store.sql.types import UtcTime
from tsuzuki.store.sql.value_list import in_list

HOUR = timedelta(hours=1)
_FROM = bindparam("from_", type_=UtcTime())
_TO = bindparam("to", type_=UtcTime())
_JOB = bindparam("job", type_=BigInteger())


class HourCount(NamedTuple):
    """How many runs of a job ended so in an hour (or a part of one), by the bucket of their duration."""

    job_id: int
    outcome: RunState
    bucket: int
    runs: int
    seconds: float


class HourRow(NamedTuple):
    """The same with the hour it is of."""

    hour: datetime
    counted: HourCount


def hour_of(moment: datetime) -> datetime:
    """The hour that a moment in UTC is in."""
    return moment.replace(minute=0, second=0, microsecond=0)


_UNTIL = select(run_hours_progress.c.until)


def counted_until(connection: Connection) -> datetime | None:
    """Up to which hour everything is counted; None if nothing is yet."""
    until: datetime | None = execute(connection, _UNTIL).scalar_one_or_none()
    return until


_FIRST_MOVE = select(func.min(job_run_transitions.c.at)).where(job_run_transitions.c.at >= _FROM)


def first_move_since(connection: Connection, moment: datetime) -> datetime | None:
    """When the first run moved at or after a moment."""
    first: datetime | None = execute(connection, _FIRST_MOVE, {"from_": moment}).scalar_one()
    return first


def ended_between(connection: Connection, start: datetime, end: datetime) -> list[HourCount]:
    """What ended from `start` to `end`, itself not included, counted from the history."""
    rows = execute(connection, _ended(connection.dialect), {"from_": start, "to": end}).all()
    return [_count_from(row) for row in rows]


@lru_cache
def _ended(dialect: Dialect) -> Select[Any]:
    moves, runs = job_run_transitions.c, job_runs.c
    seconds = _seconds(dialect)
    # Numbers, not parameters: PostgreSQL sees that what is grouped by is what is selected.
    bucket = case(
        (runs.started_at.is_(None), literal_column(str(NEVER_STARTED))),
        *(
            (seconds <= literal_column(str(limit)), literal_column(str(number)))
            for number, limit in enumerate(LIMITS_SECONDS, start=1)
        ),
        else_=literal_column(str(len(LIMITS_SECONDS) + 1)),
    )
    return (
        select(
            runs.job_definition_id,
            moves.to_state,
            bucket.label("bucket"),
            func.count().label("runs"),
            func.coalesce(func.sum(seconds), 0.0).label("seconds"),
        )
        .join_from(job_run_transitions, job_runs, runs.id == moves.run_id)
        .where(moves.at >= _FROM, moves.at < _TO, moves.to_state.in_(_FINAL))
        .group_by(runs.job_definition_id, moves.to_state, bucket)
    )


_FINAL: list[ColumnElement[str]] = [
    literal_column(f"'{state.value}'") for state in RunState if state.is_final
]


def _seconds(dialect: Dialect) -> ColumnElement[float]:
    """How long a run took; NULL if it never started, never less than nothing."""
    started, finished = job_runs.c.started_at, job_runs.c.finished_at
    if is_sqlite(dialect):
        days = func.julianday(finished, type_=Float()) - func.julianday(started, type_=Float())
        return func.max(days * 86_400.0, 0.0, type_=Float())
    return func.greatest(func.date_part("epoch", finished - started), 0.0, type_=Float())


_FIRST = bindparam("until", type_=UtcTime())
_ADVANCE = (
    update(run_hours_progress)
    .where(run_hours_progress.c.until == _FROM, TERM_IS_CURRENT)
    .values(until=_FIRST)
    .returning(run_hours_progress.c.id)
)
_COLUMNS: Columns = {
    "job_definition_id": BigInteger(),
    "outcome": Text(),
    "bucket": Integer(),
    "runs": Integer(),
    "seconds": Float(),
}


def store_hour(
    connection: Connection,
    *,
    term: Term,
    counted: datetime,
    hour: datetime,
    counts: Sequence[HourCount],
) -> bool:
    """Store the counts of an hour, the first since `counted` in which something moved. False if another process
    was first, or leads by now."""
    start(connection, counted)
    values = {"from_": counted, "until": hour + HOUR, **term.parameters}
    if execute(connection, _ADVANCE, values).one_or_none() is None:
        return False
    if counts:
        execute_batch(connection, _insert, _COLUMNS, counts, {"hour": hour})
    return True


def start(connection: Connection, hour: datetime) -> None:
    """Count from this hour on, unless that is settled already."""
    execute(connection, _start(connection.dialect), {"until": hour})


@lru_cache
def _start(dialect: Dialect) -> Insert:
    statement: Insert = (
        insert_into(dialect, run_hours_progress).values(id=1, until=_FIRST).on_conflict_do_nothing()
    )
    return statement


@lru_cache
def _insert(dialect: Dialect, varying: tuple[str, ...]) -> Insert:
    source = unpack(dialect, _COLUMNS, varying)
    hour = bindparam("hour", type_=UtcTime())
    rows = select(hour, *(source.c[name] for name in _COLUMNS))
    return insert(run_hours).from_select(["hour", *_COLUMNS], rows)


_DELETE = delete(run_hours).where(
    run_hours.c.hour < bindparam("before", type_=UtcTime()), TERM_IS_CURRENT
)


def delete_before(connection: Connection, moment: datetime, *, term: Term) -> int:
    """How many rows were deleted."""
    return execute(connection, _DELETE, {"before": moment, **term.parameters}).rowcount


_COLUMNS_OF_HOURS = select(
    run_hours.c.hour,
    run_hours.c.job_definition_id,
    run_hours.c.outcome,
    run_hours.c.bucket,
    run_hours.c.runs,
    run_hours.c.seconds,
)
_BETWEEN = _COLUMNS_OF_HOURS.where(run_hours.c.hour >= _FROM, run_hours.c.hour < _TO).order_by(
    run_hours.c.hour
)
# Each hour is looked up with its job: a range of hours would pass the rows of every job.
_OF_JOB = _COLUMNS_OF_HOURS.where(
    in_list(run_hours.c.hour, "hours"), run_hours.c.job_definition_id == _JOB
)
_IN_RANGE = (run_hours.c.hour >= _FROM, run_hours.c.hour < _TO)
_SUMS = (
    func.sum(run_hours.c.runs, type_=Integer()).label("runs"),
    func.sum(run_hours.c.seconds, type_=Float()).label("seconds"),
)


def hours_between(connection: Connection, start: datetime, end: datetime) -> list[HourRow]:
    """The stored hours from `start` to `end`, itself not included."""
    return _hour_rows(execute(connection, _BETWEEN, {"from_": start, "to": end}).all())


def hours_of_job(connection: Connection, hours: Sequence[datetime], job_id: int) -> list[HourRow]:
    """These hours of a job, as far as they are stored."""
    values = {"hours": [to_text(hour) for hour in hours], "job": job_id}
    return _hour_rows(execute(connection, _OF_JOB, values).all())


_BY_HOUR = (
    select(
        run_hours.c.hour,
        literal_column("0", Integer()),
        run_hours.c.outcome,
        run_hours.c.bucket,
        *_SUMS,
    )
    .where(*_IN_RANGE)
    .group_by(run_hours.c.hour, run_hours.c.outcome, run_hours.c.bucket)
)
_OF_EACH_JOB = (run_hours.c.job_definition_id, run_hours.c.outcome, run_hours.c.bucket)
_BY_JOB = select(*_OF_EACH_JOB, *_SUMS).where(*_IN_RANGE).group_by(*_OF_EACH_JOB)


def sums_by_hour(connection: Connection, start: datetime, end: datetime) -> list[HourRow]:
    """The stored hours of all jobs together, which have the id 0 here."""
    return _hour_rows(execute(connection, _BY_HOUR, {"from_": start, "to": end}).all())


def sums_by_job(connection: Connection, start: datetime, end: datetime) -> list[HourCount]:
    """The stored hours together, of each job."""
    rows = execute(connection, _BY_JOB, {"from_": start, "to": end}).all()
    return [_count_from(row) for row in rows]


def _hour_rows(rows: Sequence[Sequence[Any]]) -> list[HourRow]:
    return [HourRow(row[0], _count_from(row[1:])) for row in rows]


_OF_JOBS = (
    select(
        run_hours.c.job_definition_id,
        run_hours.c.outcome,
        run_hours.c.bucket,
        func.sum(run_hours.c.runs),
        func.sum(run_hours.c.seconds),
    )
    .where(
        run_hours.c.hour >= _FROM,
        run_hours.c.hour < _TO,
        in_list(run_hours.c.job_definition_id, "jobs"),
    )
    .group_by(run_hours.c.job_definition_id, run_hours.c.outcome, run_hours.c.bucket)
)


def sums_of_jobs(
    connection: Connection, start: datetime, end: datetime, *, job_ids: Sequence[int]
) -> list[HourCount]:
    """The stored hours of these jobs from `start` to `end`, itself not included, added up."""
    values = {"from_": start, "to": end, "jobs": job_ids}
    return [_count_from(row) for row in execute(connection, _OF_JOBS, values).all()]


def _count_from(row: Sequence[Any]) -> HourCount:
    job_id, outcome, bucket, runs, seconds = row
    return HourCount(job_id, RunState(outcome), bucket, runs, seconds)
