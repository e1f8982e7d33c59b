"""What runs write. A table of its own, so that long logs never slow the moves down."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import BigInteger, Connection, Integer, Text, delete, func, select
from sqlalchemy.dialects import postgresql, sqlite

from tsuzuki.model.states import RunState
from tsuzuki.store.batch import batch, guard
from tsuzuki.store.moves import Started
from tsuzuki.store.tables import job_run_logs, job_runs
from tsuzuki.store.types import PlainText, UtcTime


@dataclass(frozen=True, kw_only=True)
class LogLine:
    """One line of a run. `seq` counts from 1; `stream` is stdout, stderr or log."""

    seq: int
    at: datetime
    stream: str
    body: str


def append(
    connection: Connection, *, worker_id: str, lines: Sequence[tuple[Started, LogLine]]
) -> None:
    """Add lines of runs that are still ours; lines of others are dropped without a word."""
    if not lines:
        return
    written = batch(
        connection.dialect,
        {
            "run_id": BigInteger(),
            "version": Integer(),
            "epoch": BigInteger(),
            "seq": Integer(),
            "at": UtcTime(),
            "stream": Text(),
            "body": PlainText(),
        },
        [
            (run.id, run.version, run.epoch, line.seq, line.at, line.stream, line.body)
            for run, line in lines
        ],
    )
    columns = ["run_id", "seq", "at", "stream", "body"]
    flavour = sqlite if connection.dialect.name == "sqlite" else postgresql
    connection.execute(
        flavour.insert(job_run_logs)
        .from_select(
            columns,
            select(*(written.c[name] for name in columns)).where(
                job_runs.c.id == written.c.run_id,
                job_runs.c.version == written.c.version,
                job_runs.c.leader_epoch == written.c.epoch,
                guard(job_runs.c.state == RunState.RUNNING.value),
                guard(job_runs.c.assigned_worker_id == worker_id),
            ),
        )
        # A line whose commit was answered too late to be heard is sent again.
        .on_conflict_do_nothing()
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
