"""What runs write. A table of its own, so that long logs never slow the moves down."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, func, insert, select

from tsuzuki.store.tables import job_run_logs, job_runs


@dataclass(frozen=True, kw_only=True)
class LogLine:
    """One line of a run. `seq` counts from 1; `stream` is stdout, stderr or log."""

    seq: int
    at: datetime
    stream: str
    body: str


def append(connection: Connection, *, run_id: int, lines: Sequence[LogLine]) -> None:
    if lines:
        connection.execute(
            insert(job_run_logs),
            [
                {
                    "run_id": run_id,
                    "seq": line.seq,
                    "at": line.at,
                    "stream": line.stream,
                    "body": line.body,
                }
                for line in lines
            ],
        )


def read(
    connection: Connection, *, run_id: int, after_seq: int = 0, limit: int = 1000
) -> list[LogLine]:
    """Lines after `after_seq`, in order."""
    rows = connection.execute(
        select(job_run_logs.c.seq, job_run_logs.c.at, job_run_logs.c.stream, job_run_logs.c.body)
        .where(job_run_logs.c.run_id == run_id, job_run_logs.c.seq > after_seq)
        .order_by(job_run_logs.c.seq)
        .limit(limit)
    ).mappings()
    return [LogLine(**row) for row in rows]


def runs_to_archive(connection: Connection, *, finished_before: datetime, limit: int) -> list[int]:
    """Finished runs whose lines are still in the table and old enough to leave it."""
    with_lines = select(job_run_logs.c.run_id).where(job_run_logs.c.run_id == job_runs.c.id)
    statement = (
        select(job_runs.c.id)
        .where(job_runs.c.finished_at < finished_before, with_lines.exists())
        .order_by(job_runs.c.id)
        .limit(limit)
    )
    return list(connection.execute(statement).scalars())


def delete_of(connection: Connection, run_id: int) -> int:
    return connection.execute(delete(job_run_logs).where(job_run_logs.c.run_id == run_id)).rowcount


def size_of(connection: Connection, run_id: int) -> int:
    """How many lines a run has in the table."""
    return connection.execute(
        select(func.count()).where(job_run_logs.c.run_id == run_id)
    ).scalar_one()
