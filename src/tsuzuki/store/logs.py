"""Logs of runs, and how they leave the database. A table of their own, so that long logs never slow down moves."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    CTE,
    BigInteger,
    ColumnElement,
    Connection,
    FromClause,
    Integer,
    Text,
    bindparam,
    delete,
    func,
    literal,
    select,
    update,
)
from sqlalchemy.engine import Dialect

from tsuzuki.model.run import StartedRun
from tsuzuki.store.leadership import TERM_IS_CURRENT, Term
from tsuzuki.store.runs.ownership import is_owned
from tsuzuki.store.schema.tables import job_run_logs, job_runs
from tsuzuki.store.sql.batch import Columns, unpack
from tsuzuki.store.sql.dialect import insert_into, is_sqlite
from tsuzuki.store.sql.plan_hints import by_key, guard
from tsuzuki.store.sql.prepared import execute, execute_batch
from tsuzuki.store.sql.types import PlainText, UtcTime
from tsuzuki.store.sql.value_list import in_list


@dataclass(frozen=True, kw_only=True)
class LogLine:
    """One line of a run. `seq` counts from 1; `stream` is stdout, stderr or log."""

    seq: int
    at: datetime
    stream: str
    body: str


_LINE = (job_run_logs.c.seq, job_run_logs.c.at, job_run_logs.c.stream, job_run_logs.c.body)


def append(
    connection: Connection, *, worker_id: str, lines: Sequence[tuple[StartedRun, LogLine]]
) -> frozenset[int]:
    """Add lines of runs that the worker still owns. None of these runs can be moved until the transaction ends, so no
    line comes after the end of its run. Answers the runs whose lines were not stored: another transaction may be
    ending them and holds their row, or they are no longer this worker's. On SQLite, which has one writer, the lines of
    the latter are dropped, and the answer is empty."""
    rows = [
        (run.id, run.version, run.epoch, line.seq, line.at, line.stream, line.body)
        for run, line in lines
    ]
    owned = execute_batch(connection, _append, _APPEND_COLUMNS, rows, {"me": worker_id})
    if is_sqlite(connection.dialect):
        return frozenset()
    return frozenset(run.id for run, _ in lines).difference(owned.scalars())


_APPEND_COLUMNS: Columns = {
    "run_id": BigInteger(),
    "version": Integer(),
    "epoch": BigInteger(),
    "seq": Integer(),
    "at": UtcTime(),
    "stream": Text(),
    "body": PlainText(),
}


@lru_cache
def _append(dialect: Dialect, varying: tuple[str, ...]) -> Any:
    """On PostgreSQL its rows are the runs whose lines it adds, which it locks."""
    batch = unpack(dialect, _APPEND_COLUMNS, varying)
    if is_sqlite(dialect):
        return _insert(dialect, batch, job_runs.c.id == batch.c.run_id, *is_owned(batch.c))
    lines = select(*batch.c).cte("lines")
    run = select(lines.c.run_id, lines.c.version, lines.c.epoch).distinct().subquery("run")
    owned = (
        select(job_runs.c.id)
        .where(by_key(job_runs.c.id, run.c.run_id), *is_owned(run.c))
        .with_for_update(of=job_runs, read=True, key_share=True, skip_locked=True)
        .cte("owned")
    )
    stored = _insert(dialect, lines, lines.c.run_id == owned.c.id)
    return select(owned.c.id).add_cte(stored.cte("stored"))


def _insert(dialect: Dialect, lines: FromClause, *conditions: ColumnElement[bool]) -> Any:
    columns = ["run_id", "seq", "at", "stream", "body"]
    return (
        insert_into(dialect, job_run_logs)
        .from_select(columns, select(*(lines.c[name] for name in columns)).where(*conditions))
        # Idempotent: a line whose commit was not confirmed (a lost reply) is written again.
        .on_conflict_do_nothing()
    )


_OF_RUN = job_run_logs.c.run_id == bindparam("run", type_=BigInteger())
_LIMIT = bindparam("limit", type_=Integer())
_LINES = select(*_LINE).where(_OF_RUN).limit(_LIMIT)
_AFTER = _LINES.where(job_run_logs.c.seq > bindparam("after", type_=Integer())).order_by(
    job_run_logs.c.seq
)
_LAST = _LINES.order_by(job_run_logs.c.seq.desc())


def read(
    connection: Connection, *, run_id: int, after_seq: int = 0, limit: int = 1000
) -> list[LogLine]:
    """Lines after `after_seq`, in order."""
    wanted = {"run": run_id, "after": after_seq, "limit": limit}
    return [LogLine(**row) for row in execute(connection, _AFTER, wanted).mappings()]


def tail(connection: Connection, *, run_id: int, count: int) -> list[LogLine]:
    """The last `count` lines, in order."""
    rows = execute(connection, _LAST, {"run": run_id, "limit": count}).mappings()
    return [LogLine(**row) for row in reversed(rows)]


_WITH_TEXT = _AFTER.where(
    job_run_logs.c.body.ilike(bindparam("pattern", type_=Text()), escape="\\")
)


def search(
    connection: Connection, *, run_id: int, text: str, after_seq: int = 0, limit: int = 1000
) -> list[LogLine]:
    """Lines after `after_seq` that have the text in them, whatever the case of its ASCII letters; in order."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    wanted = {"run": run_id, "after": after_seq, "limit": limit, "pattern": f"%{escaped}%"}
    return [LogLine(**row) for row in execute(connection, _WITH_TEXT, wanted).mappings()]


# --- leaving the table --------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class StoredLog:
    """A run that has lines in the table. `run_is_gone`: the run is deleted, so they cannot be read any more."""

    run_id: int
    run_is_gone: bool
    version: int | None
    state: str | None
    finished_at: datetime | None
    log_ref: str | None

    def is_old(self, finished_before: datetime) -> bool:
        """Whether its lines are due for the archive. An unfinished run keeps its lines, however old it is."""
        if self.finished_at is None:
            return self.run_is_gone
        return self.finished_at < finished_before


def stored(
    connection: Connection, *, created_before: datetime, after_id: int, limit: int
) -> list[StoredLog]:
    """The next runs with lines in the table, in the order of their ids, roughly of those created before
    `created_before`.

    A loose index scan: it skips from run to run through the primary key, so its cost is that of its answer.
    Neither the lines of a run nor the many runs whose lines are gone are read. Ids grow with time, so the
    newest finished run created before that time is where it stops.
    """
    wanted = {"created_before": created_before, "after": after_id, "limit": limit}
    return [StoredLog(**row) for row in execute(connection, _STORED, wanted).mappings()]


def _runs_with_lines() -> CTE:
    created_before = bindparam("created_before", type_=UtcTime())
    newest = (
        select(job_runs.c.id)
        .where(job_runs.c.created_at < created_before, job_runs.c.finished_at.is_not(None))
        .order_by(job_runs.c.created_at.desc(), job_runs.c.id.desc())
        .limit(1)
        .cte("newest")
    )

    def next_run(last_id: ColumnElement[int]) -> ColumnElement[int]:
        run_id = job_run_logs.c.run_id
        up_to = select(newest.c.id).scalar_subquery()
        following = select(run_id).where(run_id > last_id, run_id <= up_to)
        return following.order_by(run_id).limit(1).scalar_subquery()

    after = bindparam("after", type_=BigInteger())
    first = select(next_run(after).label("run_id"), literal(1).label("step"))
    walk = first.cte("walk", recursive=True)
    further = select(next_run(walk.c.run_id), walk.c.step + 1)
    return walk.union_all(further.where(walk.c.run_id.is_not(None), walk.c.step < _LIMIT))


_WALK = _runs_with_lines()
_STORED = (
    select(
        _WALK.c.run_id,
        job_runs.c.id.is_(None).label("run_is_gone"),
        job_runs.c.version,
        job_runs.c.state,
        job_runs.c.finished_at,
        job_runs.c.log_ref,
    )
    .join_from(_WALK, job_runs, job_runs.c.id == _WALK.c.run_id, isouter=True)
    .where(_WALK.c.run_id.is_not(None))
    .order_by(_WALK.c.run_id)
)
_SET_REF = (
    update(job_runs)
    .where(
        job_runs.c.id == bindparam("run", type_=BigInteger()),
        guard(job_runs.c.version == bindparam("version", type_=Integer())),
        guard(job_runs.c.state == bindparam("state", type_=Text())),
        guard(job_runs.c.finished_at.is_not(None)),
        guard(job_runs.c.log_ref.is_not_distinct_from(bindparam("before", type_=Text()))),
        TERM_IS_CURRENT,
    )
    .values(log_ref=bindparam("ref", type_=Text()))
    .returning(job_runs.c.id)
)


def set_ref(connection: Connection, *, term: Term, log: StoredLog, ref: str) -> bool:
    """Store the archive's ref of a finished run's log. False if another process leads, or stored a ref first."""
    values = {
        "run": log.run_id,
        "version": log.version,
        "state": log.state,
        "before": log.log_ref,
        "ref": ref,
        **term.parameters,
    }
    return execute(connection, _SET_REF, values).scalar_one_or_none() is not None


# A subquery with a LIMIT is executed run by run; the planner may turn EXISTS into a scan of all lines.
_FIRST_LINE = (
    select(job_run_logs.c.seq)
    .where(job_run_logs.c.run_id == job_runs.c.id)
    .order_by(job_run_logs.c.seq)
    .limit(1)
    .scalar_subquery()
)
_HAVING_LINES = select(job_runs.c.id).where(in_list(job_runs.c.id, "ids"), _FIRST_LINE.is_not(None))


def having_lines(connection: Connection, run_ids: Collection[int]) -> list[int]:
    """Those of these runs that have lines in the table."""
    return execute(connection, _HAVING_LINES, {"ids": run_ids}).scalars()


_FIRST_LINES = (
    select(job_run_logs.c.seq).where(_OF_RUN).order_by(job_run_logs.c.seq).limit(_LIMIT).subquery()
)
_DELETE_LINES = delete(job_run_logs).where(
    _OF_RUN,
    job_run_logs.c.seq <= select(func.max(_FIRST_LINES.c.seq)).scalar_subquery(),
    TERM_IS_CURRENT,
)


def delete_lines(connection: Connection, *, term: Term, run_id: int, limit: int) -> int:
    """Delete a run's first `limit` lines. Answers how many were deleted; fewer than `limit` means that none is
    left, or that another process leads."""
    values = {"run": run_id, "limit": limit, **term.parameters}
    return execute(connection, _DELETE_LINES, values).rowcount
