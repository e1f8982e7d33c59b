"""Progress of running runs, written by the worker that runs them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import BigInteger, Connection, update
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.dml import ReturningUpdate

from tsuzuki.model.run import Started
from tsuzuki.store.runs.ownership import STARTED_COLUMNS, is_owned
from tsuzuki.store.schema.tables import job_runs
from tsuzuki.store.sql.batch import Columns
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.locked_rows import locked_rows
from tsuzuki.store.sql.prepared import execute_batch


@dataclass(frozen=True, kw_only=True)
class ProgressReport:
    run: Started
    processed: int
    total: int | None


_COLUMNS: Columns = {**STARTED_COLUMNS, "processed": BigInteger(), "total": BigInteger()}


def report_progress(
    connection: Connection, *, worker_id: str, reports: Sequence[ProgressReport]
) -> frozenset[int]:
    """Store how far runs are. A run that is missing from the answer is no longer this worker's."""
    rows = sorted((*report.run, report.processed, report.total) for report in reports)
    return frozenset(
        execute_batch(connection, _update, _COLUMNS, rows, {"me": worker_id}).scalars()
    )


@lru_cache
def _update(dialect: Dialect, varying: tuple[str, ...]) -> ReturningUpdate[Any]:
    reported = locked_rows(dialect, job_runs, _COLUMNS, varying)
    return (
        update(job_runs)
        .where(reported.matches, *is_owned(reported.c))
        .values(
            progress_processed=reported.c.processed,
            progress_total=reported.c.total,
            progress_at=db_now(),
        )
        .returning(job_runs.c.id)
    )
