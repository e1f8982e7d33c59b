"""A database with many runs: history, groups of failures, events, audit and rollups as the engine would have left them.

Rows are made inside the database by a few statements. The triggers are disabled meanwhile: they rightly refuse to
create a finished run. The mix is drawn from the number of the run, so every database of one size is the same:

    jobs       ten run most of the time, 189 now and then, one only ever ran 20 times, and that long ago
    states     95.5 % succeeded, 3 % failed, half a percent timed out, one percent canceled
    time       30 days up to now, evenly
    keys       5,000 concurrency keys, 20 workers, 400 causes of failure; every tenth run has an idempotency key
"""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta

import psycopg

from tsuzuki.engine.archive.rollups import HourlyRollups
from tsuzuki.model.clock import SystemClock
from tsuzuki.model.failure_signature import signature_of
from tsuzuki.model.job import JobSource, JobSpec
from tsuzuki.store import jobs, leadership
from tsuzuki.store.sql.database import Database, open_database
from tsuzuki.store.sql.stored_values import to_text

JOBS = 200
FREQUENT_JOBS = 10
RARE_RUNS = 20
SPREAD = timedelta(days=30)
EVENTS_SHARE = 10
"""There is an event and an audit entry for every tenth run."""

Execute = Callable[[str], object]


def fill(url: str, runs: int) -> None:
    """Fill a database that is migrated and empty."""
    database = open_database(url, clock=SystemClock())
    try:
        with database.write() as connection:
            specs = [_spec(number) for number in range(JOBS)]
            ids = sorted(jobs.add_many(connection, specs, source=JobSource.DATABASE))
        statements = _statements(ids[0], runs, is_sqlite=database.is_sqlite)
        if database.is_sqlite:
            _in_sqlite(url.removeprefix("sqlite:///"), statements)
        else:
            _in_postgresql(url, statements)
        _count_hours(database)
    finally:
        database.close()


def _spec(number: int) -> JobSpec:
    return JobSpec(
        name=f"job-{number:03}", handler="command", options={"argv": ["true"]}, enabled=False
    )


def _count_hours(database: Database) -> None:
    with database.write() as connection:
        term = leadership.take(connection, holder="fill", lease_seconds=3600)
    assert term is not None
    rollups = HourlyRollups(database=database)
    while rollups.tick(term):
        pass
    with database.write() as connection:
        leadership.release(connection, term=term)


def _statements(first_job: int, runs: int, *, is_sqlite: bool) -> list[str]:
    start = datetime.now(UTC) - SPREAD
    step = SPREAD.total_seconds() / runs

    def at(seconds: str) -> str:
        offset = f"n * {step!r} + {seconds}"
        if is_sqlite:
            return f"strftime('%Y-%m-%dT%H:%M:%f000Z', '{to_text(start)[:-1]}', ({offset}) || ' seconds')"
        return f"timestamptz '{to_text(start)}' + ({offset}) * interval '1 second'"

    return [
        _runs(first_job, runs, at, is_sqlite=is_sqlite),
        *_history(is_sqlite=is_sqlite),
        *_failures(),
        f"INSERT INTO tsuzuki_events (event_type, payload, dedupe_key, created_at, processed_at)"
        f" SELECT 'type-' || (n % 20), '{{}}', 'event-' || n, {at('0')}, {at('1')}"
        f" FROM {_numbers(runs // EVENTS_SHARE, is_sqlite=is_sqlite)}",
        f"INSERT INTO tsuzuki_audit_log (at, actor, action, object_type, object_id)"
        f" SELECT {at('0')}, 'user:u' || (n % 50), 'run.cancel', CASE WHEN n % 5 = 0 THEN 'job'"
        f" ELSE 'run' END, CAST(n AS text) FROM {_numbers(runs // EVENTS_SHARE, is_sqlite=is_sqlite)}",
    ]


def _numbers(count: int, *, is_sqlite: bool) -> str:
    if is_sqlite:
        return (
            "(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s"
            f" WHERE n < {count}) SELECT n FROM s)"
        )
    return f"generate_series(1, {count}) AS s(n)"


def _runs(first_job: int, runs: int, at: Callable[[str], str], *, is_sqlite: bool) -> str:
    rare = first_job + JOBS - 1
    job = (
        f"CASE WHEN n % 100 = 7 AND n <= {RARE_RUNS * 100} THEN {rare}"
        f" WHEN n % 100 < 80 THEN {first_job} + n % {FREQUENT_JOBS}"
        f" ELSE {first_job + FREQUENT_JOBS} + (n / 7) % {JOBS - FREQUENT_JOBS - 1} END"
    )
    state = (
        "CASE WHEN n % 1000 < 30 THEN 'FAILED' WHEN n % 1000 < 35 THEN 'TIMED_OUT'"
        " WHEN n % 1000 < 45 THEN 'CANCELED' ELSE 'SUCCEEDED' END"
    )
    reason = (
        "CASE WHEN n % 10000 = 1 THEN 'worker_lost' WHEN n % 1000 < 30 THEN 'handler_failed'"
        " WHEN n % 1000 < 35 THEN 'timeout' WHEN n % 1000 < 45 THEN 'overlap' END"
    )
    error = "CASE WHEN n % 1000 < 35 THEN 'RuntimeError: cause ' || (n % 400) END"
    trigger = (
        "CASE WHEN n % 50 = 3 THEN 'event' WHEN n % 50 = 4 THEN 'retry' WHEN n % 2 = 0 THEN 'time'"
        " ELSE 'manual' END"
    )
    columns = {
        "job_definition_id": job,
        "state": state,
        "version": "4",
        "trigger": trigger,
        "scheduled_for": at("0"),
        "priority": "0",
        "arguments": "'{\"month\": 11, \"number\": ' || n || '}'",
        "attempt": "1",
        "retries_used": "0",
        "retry_of": "CASE WHEN n % 50 = 4 THEN n - 1 END",
        "origin_id": "CASE WHEN n % 50 = 4 THEN n - 1 END",
        "idempotency_key": "CASE WHEN n % 10 = 5 THEN 'key:' || n END",
        "concurrency_key": "'tenant-' || (n % 5000)",
        "event_id": f"CASE WHEN n % 50 = 3 THEN n / {EVENTS_SHARE} + 1 END",
        "assigned_worker_id": "'host-' || (n % 20) || '-1234-abcdef'",
        "assigned_at": at("0.1"),
        "leader_epoch": "1",
        "started_at": at("0.2"),
        "finished_at": at("0.3 + n % 60"),
        "reason": reason,
        "error": error,
        "created_at": at("0"),
        "moved_at": at("0.3 + n % 60"),
        "moved_as": "'worker'",
        "moved_by": "'host-' || (n % 20) || '-1234-abcdef'",
        "moved_epoch": "1",
    }
    names, values = ", ".join(columns), ", ".join(columns.values())
    return f"INSERT INTO tsuzuki_job_runs ({names}) SELECT {values} FROM {_numbers(runs, is_sqlite=is_sqlite)}"


def _history(*, is_sqlite: bool) -> list[str]:
    moves = (
        ("2", "'PENDING'", "'ASSIGNED'", "assigned_at", "'leader'", "NULL"),
        ("3", "'ASSIGNED'", "'RUNNING'", "started_at", "'worker'", "NULL"),
        ("4", "'RUNNING'", "state", "finished_at", "'worker'", "reason"),
    )
    # In the order of the primary key, which the table of SQLite is kept in.
    parts = " UNION ALL ".join(
        f"SELECT id, {version}, {before}, {after}, {at}, {actor}, assigned_worker_id, 1, {reason},"
        " assigned_worker_id FROM tsuzuki_job_runs"
        for version, before, after, at, actor, reason in moves
    )
    order = " ORDER BY 1, 2" if is_sqlite else ""
    return [
        "INSERT INTO tsuzuki_job_run_transitions (run_id, version, from_state, to_state, at, actor, actor_id,"
        f" epoch, reason, worker_id) {parts}{order}"
    ]


def _failures() -> list[str]:
    """The group of a failure is stored by its cause first, and renamed to its real id."""
    words = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    causes = [f"{words[n // 10 % 10]} {words[n % 10]}{'s' * (n // 100)}" for n in range(400)]
    signatures = [
        signature_of("handler_failed", f"RuntimeError: cause {cause}") for cause in causes
    ]
    rows = ", ".join(f"('{found.id}', '{found.text}')" for found in signatures)
    by_cause = " ".join(f"WHEN {n} THEN '{found.id}'" for n, found in enumerate(signatures))
    return [
        f"INSERT INTO tsuzuki_failure_groups (id, signature) VALUES {rows}",
        "INSERT INTO tsuzuki_run_failures (run_id, group_id, job_definition_id, failed_at)"
        f" SELECT id, CASE (id / 7) % 400 {by_cause} END, job_definition_id, finished_at FROM tsuzuki_job_runs"
        " WHERE state IN ('FAILED', 'TIMED_OUT')",
    ]


def _in_postgresql(url: str, statements: Sequence[str]) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        for statement in statements:
            connection.execute(statement)
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")


def _in_sqlite(path: str, statements: Sequence[str]) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = -200000")
        guards = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall()
        connection.execute("BEGIN IMMEDIATE")
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement)
        for _, sql in guards:
            connection.execute(sql)
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
