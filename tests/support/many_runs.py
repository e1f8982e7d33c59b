"""Many runs of a few jobs, stored by a few statements: every filter of a list finds some of them.

The triggers are disabled meanwhile: they refuse to create a finished run.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from sqlalchemy import Connection, text

from support.factories import add_job, spec
from tsuzuki.store.sql.database import Database

START = datetime(2026, 1, 1, tzinfo=UTC)
"""Run n is created n seconds later, and ends half a minute after that."""

JOBS = ("often", "seldom", "never")

_ENDS = "CASE n % 20 WHEN 0 THEN 'FAILED' WHEN 1 THEN 'CANCELED' WHEN 2 THEN 'TIMED_OUT' ELSE 'SUCCEEDED' END"
_REASONS = "CASE n % 20 WHEN 0 THEN 'handler_failed' WHEN 1 THEN 'late' WHEN 2 THEN 'timeout' END"


def add_many_runs(database: Database, count: int) -> None:
    """With ids from 1, of the jobs with the ids 1 to 3; every hundredth is still waiting."""
    for name in JOBS:
        add_job(database, spec(name))
    is_sqlite = database.is_sqlite
    numbers = (
        f"(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {count})"
        " SELECT n FROM s)"
        if is_sqlite
        else f"(SELECT n FROM generate_series(1, {count}) AS n)"
    )
    created = _moment("n", is_sqlite=is_sqlite)
    ended = _moment("n + 30", is_sqlite=is_sqlite)
    columns = {
        "job_definition_id": "CASE WHEN n % 97 = 0 THEN 2 ELSE 1 END",
        "state": f"CASE WHEN n % 100 = 99 THEN 'PENDING' ELSE {_ENDS} END",
        "reason": f"CASE WHEN n % 100 = 99 THEN NULL ELSE {_REASONS} END",
        "version": "1",
        "trigger": "CASE WHEN n % 3 = 0 THEN 'event' WHEN n % 7 = 0 THEN 'retry' ELSE 'manual' END",
        "scheduled_for": created,
        "priority": "0",
        "arguments": "'{}'",
        "attempt": "1",
        "retries_used": "0",
        "retry_of": "CASE WHEN n % 7 = 0 THEN n - 1 END",
        "origin_id": "CASE WHEN n % 7 = 0 THEN n - n % 14 END",
        "event_id": "CASE WHEN n % 3 = 0 THEN n / 9 END",
        "concurrency_key": "'key-' || (n % 50)",
        "assigned_worker_id": "CASE WHEN n % 100 <> 99 THEN 'worker-' || (n % 4) END",
        "started_at": f"CASE WHEN n % 100 <> 99 THEN {created} END",
        "finished_at": f"CASE WHEN n % 100 <> 99 THEN {ended} END",
        "created_at": created,
    }
    with database.write() as connection, _without_triggers(connection):
        connection.execute(
            text(
                f"INSERT INTO tsuzuki_job_runs ({', '.join(columns)})"
                f" SELECT {', '.join(columns.values())} FROM {numbers} AS numbers"
            )
        )
    with database.write() as connection:
        connection.execute(text("ANALYZE"))


def _moment(seconds: str, *, is_sqlite: bool) -> str:
    if is_sqlite:
        return f"strftime('%Y-%m-%dT%H:%M:%f000Z', '2026-01-01', ({seconds}) || ' seconds')"
    return f"timestamptz '2026-01-01 00:00Z' + ({seconds}) * interval '1 second'"


@contextmanager
def _without_triggers(connection: Connection) -> Iterator[None]:
    if connection.dialect.name != "sqlite":
        connection.execute(text("SET LOCAL session_replication_role = replica"))
        yield
        return
    triggers = connection.exec_driver_sql(
        "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
    ).all()
    for name, _ in triggers:
        connection.exec_driver_sql(f"DROP TRIGGER {name}")
    yield
    for _, sql in triggers:
        connection.exec_driver_sql(sql)
