"""Hourly rollups: how many runs of each job ended in an hour, with which outcome and after how long.

An hour is counted once, when it is over: rows and progress are one transaction under the leader's term. What
ended in the open hours is counted from the history when it is asked for.

An end may be stored after its hour was counted: its transaction committed late, or the clock was set back. From before
an hour is counted, a trigger notes such ends (`late_ends`): the count leaves them out, and they are added afterwards.
"""

from collections import defaultdict
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
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.dml import Insert

from tsuzuki.model.durations import LIMITS_SECONDS, NEVER_STARTED
from tsuzuki.model.states import NOT_COUNTED_REASONS, SKIP_REASONS, Outcome, RunState
from tsuzuki.store.leadership import TERM_IS_CURRENT, Term
from tsuzuki.store.schema.history_tables import late_ends, run_hours, run_hours_progress
from tsuzuki.store.schema.tables import job_run_transitions, job_runs
from tsuzuki.store.sql.batch import Columns, unpack
from tsuzuki.store.sql.dialect import is_sqlite, upsert_from
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
    outcome: Outcome
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


class RollupProgress(NamedTuple):
    """Every hour before `until` is counted; `corrections` grows whenever late ends are added to such hours."""

    until: datetime
    corrections: int


_PROGRESS = select(run_hours_progress.c.until, run_hours_progress.c.corrections)


def progress(connection: Connection) -> RollupProgress | None:
    """None if nothing is counted yet."""
    row = execute(connection, _PROGRESS).one_or_none()
    return None if row is None else RollupProgress(*row)


_FIRST_MOVE = select(func.min(job_run_transitions.c.at)).where(job_run_transitions.c.at >= _FROM)


def first_move_since(connection: Connection, moment: datetime) -> datetime | None:
    """When the first run moved at or after a moment."""
    first: datetime | None = execute(connection, _FIRST_MOVE, {"from_": moment}).scalar_one()
    return first


def ended_between(connection: Connection, start: datetime, end: datetime) -> list[HourCount]:
    """What ended from `start` to `end`, itself not included, counted from the history."""
    rows = execute(connection, _ended(connection.dialect), {"from_": start, "to": end}).all()
    return [_count_from(row) for row in rows]


def ended_in_time(connection: Connection, hour: datetime) -> list[HourCount]:
    """What ended in an hour without the ends that are noted as late, counted from the history."""
    statement = _ended_in_time(connection.dialect)
    rows = execute(connection, statement, {"from_": hour, "to": hour + HOUR}).all()
    return [_count_from(row) for row in rows]


@lru_cache
def _ended(dialect: Dialect) -> Select[Any]:
    end = _end(dialect)
    key = (end.job_id, end.outcome, end.bucket)
    return (
        select(
            *key,
            func.count().label("runs"),
            func.coalesce(func.sum(end.seconds), 0.0).label("seconds"),
        )
        .join_from(job_run_transitions, job_runs, _IS_END_OF_RUN)
        .where(job_run_transitions.c.at >= _FROM, job_run_transitions.c.at < _TO, _IS_COUNTED)
        .group_by(*key)
    )


@lru_cache
def _ended_in_time(dialect: Dialect) -> Select[Any]:
    return _ended(dialect).where(
        ~exists(select(late_ends.c.run_id).where(late_ends.c.run_id == job_runs.c.id))
    )


class _End(NamedTuple):
    """The columns of a counted end."""

    job_id: ColumnElement[Any]
    outcome: ColumnElement[Any]
    bucket: ColumnElement[Any]
    seconds: ColumnElement[float]


def _end(dialect: Dialect) -> _End:
    seconds = _seconds(dialect)
    # Numbers, not parameters: PostgreSQL sees that what is grouped by is what is selected.
    bucket = case(
        (job_runs.c.started_at.is_(None), literal_column(str(NEVER_STARTED))),
        *(
            (seconds <= literal_column(str(limit)), literal_column(str(number)))
            for number, limit in enumerate(LIMITS_SECONDS, start=1)
        ),
        else_=literal_column(str(len(LIMITS_SECONDS) + 1)),
    ).label("bucket")
    return _End(job_runs.c.job_definition_id, _OUTCOME, bucket, seconds)


_SKIPPED = Outcome.SKIPPED.value.upper()
_OUTCOME = case(
    (
        job_run_transitions.c.reason.in_(
            [literal_column(f"'{reason.value}'") for reason in sorted(SKIP_REASONS)]
        ),
        literal_column(f"'{_SKIPPED}'"),
    ),
    else_=job_run_transitions.c.to_state,
).label("outcome")
_IS_COUNTED = or_(
    job_run_transitions.c.reason.is_(None),
    job_run_transitions.c.reason.not_in(
        [literal_column(f"'{reason.value}'") for reason in sorted(NOT_COUNTED_REASONS)]
    ),
)
_FINAL: list[ColumnElement[str]] = [
    literal_column(f"'{state.value}'") for state in RunState if state.is_final
]
_IS_END_OF_RUN = and_(
    job_runs.c.id == job_run_transitions.c.run_id, job_run_transitions.c.to_state.in_(_FINAL)
)


def _seconds(dialect: Dialect) -> ColumnElement[float]:
    """How long a run took; NULL if it never started, never less than nothing."""
    started, finished = job_runs.c.started_at, job_runs.c.finished_at
    if is_sqlite(dialect):
        days = func.julianday(finished, type_=Float()) - func.julianday(started, type_=Float())
        return func.max(days * 86_400.0, 0.0, type_=Float())
    return func.greatest(func.date_part("epoch", finished - started), 0.0, type_=Float())


_FIRST = bindparam("until", type_=UtcTime())
_CLOSING = bindparam("closing", type_=UtcTime())
_IS_FIRST = (run_hours_progress.c.until == _FROM, TERM_IS_CURRENT)
_CLOSE = (
    update(run_hours_progress)
    .where(*_IS_FIRST)
    .values(
        closing=case(
            (run_hours_progress.c.closing > _CLOSING, run_hours_progress.c.closing), else_=_CLOSING
        )
    )
    .returning(run_hours_progress.c.id)
)
_ADVANCE = (
    update(run_hours_progress)
    .where(*_IS_FIRST)
    .values(until=_FIRST)
    .returning(run_hours_progress.c.id)
)
_COLUMNS: Columns = {
    "hour": UtcTime(),
    "job_definition_id": BigInteger(),
    "outcome": Text(),
    "bucket": Integer(),
    "runs": Integer(),
    "seconds": Float(),
}


def close_hour(connection: Connection, *, term: Term, counted: datetime, hour: datetime) -> bool:
    """From the commit on, every end before the end of this hour is noted as late. Everything before `counted` is
    counted. False if another process has counted more, or leads by now."""
    execute(connection, _start(connection.dialect), {"until": counted, **term.parameters})
    values = {"from_": counted, "closing": hour + HOUR, **term.parameters}
    return execute(connection, _CLOSE, values).one_or_none() is not None


def store_hour(
    connection: Connection,
    *,
    term: Term,
    counted: datetime,
    hour: datetime,
    counts: Sequence[HourCount],
) -> bool:
    """Store the counts of an hour that was closed before they were counted. False if another process was first, or
    leads by now."""
    values = {"from_": counted, "until": hour + HOUR, **term.parameters}
    if execute(connection, _ADVANCE, values).one_or_none() is None:
        return False
    _add(connection, [HourRow(hour, count) for count in counts])
    return True


def _add(connection: Connection, rows: Sequence[HourRow]) -> None:
    """Add to what is stored of these hours."""
    if rows:
        execute_batch(connection, _upsert, _COLUMNS, [_stored(row) for row in rows])


def _stored(row: HourRow) -> tuple[Any, ...]:
    job_id, outcome, *counted = row.counted
    return row.hour, job_id, outcome.value.upper(), *counted


@lru_cache
def _start(dialect: Dialect) -> Insert:
    """The row of the progress, unless it is there."""
    row: list[ColumnElement[Any]] = [literal_column("1", Integer()), _FIRST, _FIRST]
    first = select(*row).where(TERM_IS_CURRENT)
    added = upsert_from(dialect, run_hours_progress, ["id", "until", "closing"], first)
    statement: Insert = added.on_conflict_do_nothing()
    return statement


@lru_cache
def _upsert(dialect: Dialect, varying: tuple[str, ...]) -> Insert:
    source = unpack(dialect, _COLUMNS, varying)
    rows = select(*(source.c[name] for name in _COLUMNS))
    added = upsert_from(dialect, run_hours, list(_COLUMNS), rows)
    statement: Insert = added.on_conflict_do_update(
        index_elements=[run_hours.c[name] for name in ("hour", *_KEY)],
        set_={name: run_hours.c[name] + added.excluded[name] for name in ("runs", "seconds")},
    )
    return statement


_KEY = ("job_definition_id", "outcome", "bucket")

# --- late ends ------------------------------------------------------------------------------------

_ANY_LATE = select(late_ends.c.run_id).limit(1)
_CORRECT = (
    update(run_hours_progress)
    .where(TERM_IS_CURRENT)
    .values(corrections=run_hours_progress.c.corrections + 1)
    .returning(run_hours_progress.c.until)
)
_FORGET_LATE = delete(late_ends).where(in_list(late_ends.c.run_id, "ids"))


def has_late_ends(connection: Connection) -> bool:
    return execute(connection, _ANY_LATE).one_or_none() is not None


def add_late_ends(connection: Connection, *, term: Term, limit: int) -> int:
    """Add late ends to their hours, as far as these are counted. Answers how many were added."""
    # First the row of the progress, which is locked: a second leader then finds nothing left.
    until = execute(connection, _CORRECT, term.parameters).scalar_one_or_none()
    if until is None:
        return 0
    values = {"to": until, "limit": limit}
    found = execute(connection, _late(connection.dialect), values).all()
    _add(connection, _together(found))
    execute(connection, _FORGET_LATE, {"ids": [run_id for run_id, *_ in found]})
    return len(found)


@lru_cache
def _late(dialect: Dialect) -> Select[Any]:
    end = _end(dialect)
    seconds = func.coalesce(end.seconds, 0.0).label("seconds")
    return (
        select(
            late_ends.c.run_id,
            job_run_transitions.c.at,
            *end[:3],
            seconds,
            _IS_COUNTED.label("is_counted"),
        )
        .join_from(
            late_ends, job_run_transitions, job_run_transitions.c.run_id == late_ends.c.run_id
        )
        .join(job_runs, _IS_END_OF_RUN)
        .where(job_run_transitions.c.at < _TO)
        .limit(bindparam("limit", type_=Integer()))
    )


def _together(found: Sequence[Sequence[Any]]) -> list[HourRow]:
    """Ends of one hour, job, outcome and bucket as one row."""
    seconds = defaultdict[tuple[Any, ...], list[float]](list)
    for _, at, job_id, outcome, bucket, took, is_counted in found:
        if is_counted:
            seconds[hour_of(at), job_id, outcome, bucket].append(took)
    return [
        HourRow(hour, HourCount(job_id, Outcome(outcome.lower()), bucket, len(took), sum(took)))
        for (hour, job_id, outcome, bucket), took in seconds.items()
    ]


# --- reading --------------------------------------------------------------------------------------

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
    return HourCount(job_id, Outcome(outcome.lower()), bucket, runs, seconds)
