"""Progress of running runs, written by the worker that runs them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Connection, Integer, bindparam, case, func, select, update
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.dml import ReturningUpdate

from tsuzuki.model.run import StartedRun
from tsuzuki.model.states import RunState
from tsuzuki.store.runs.ownership import STARTED_COLUMNS, is_owned
from tsuzuki.store.runs.states import in_indexed_state
from tsuzuki.store.schema.tables import job_definitions, job_runs
from tsuzuki.store.sql.batch import Columns
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.locked_rows import locked_rows
from tsuzuki.store.sql.prepared import execute, execute_batch


@dataclass(frozen=True, kw_only=True)
class ProgressReport:
    """`number` counts the reports of a worker, from 1 on."""

    run: StartedRun
    processed: int
    total: int | None
    number: int


_COLUMNS: Columns = {
    **STARTED_COLUMNS,
    "processed": BigInteger(),
    "total": BigInteger(),
    "number": BigInteger(),
}


def report_progress(
    connection: Connection, *, worker_id: str, reports: Sequence[ProgressReport]
) -> frozenset[int]:
    """Store how far runs are, unless a later report of a run is stored already: the worker's thread and a handler's
    transaction may overtake each other. A run that is missing from the answer is no longer this worker's, or another
    transaction holds its row."""
    rows = sorted(
        (*report.run, report.processed, report.total, report.number) for report in reports
    )
    return frozenset(
        execute_batch(connection, _update, _COLUMNS, rows, {"me": worker_id}).scalars()
    )


@lru_cache
def _update(dialect: Dialect, varying: tuple[str, ...]) -> ReturningUpdate[Any]:
    reported = locked_rows(dialect, job_runs, _COLUMNS, varying, key_share=True)
    is_newer = reported.c.number > func.coalesce(job_runs.c.progress_number, 0)
    written = {
        job_runs.c.progress_processed: reported.c.processed,
        job_runs.c.progress_total: reported.c.total,
        job_runs.c.progress_at: db_now(),
        job_runs.c.progress_number: reported.c.number,
    }
    # Not in the WHERE: then an overtaken report would look like one whose row is locked.
    return (
        update(job_runs)
        .where(reported.matches, *is_owned(reported.c))
        .values({column: case((is_newer, new), else_=column) for column, new in written.items()})
        .returning(job_runs.c.id)
    )


class RunProgress(NamedTuple):
    """How far a running run is."""

    run_id: int
    job_name: str
    processed: int
    total: int | None
    at: datetime


_RUNNING = (
    select(
        job_runs.c.id,
        job_definitions.c.name,
        job_runs.c.progress_processed,
        job_runs.c.progress_total,
        job_runs.c.progress_at,
    )
    .join_from(job_runs, job_definitions, job_definitions.c.id == job_runs.c.job_definition_id)
    .where(in_indexed_state(RunState.RUNNING), job_runs.c.progress_at.is_not(None))
    .order_by(job_runs.c.id.desc())
    .limit(bindparam("limit", type_=Integer()))
)


def of_running(connection: Connection, *, limit: int) -> list[RunProgress]:
    """The running runs that reported progress, the newest first."""
    rows = execute(connection, _RUNNING, {"limit": limit}).all()
    return [RunProgress(*row) for row in rows]
