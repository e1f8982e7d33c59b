"""A table with many finished runs: copies of one and its history, made inside the database.

The triggers are disabled meanwhile, because they rightly refuse to create a finished run.
"""

import sqlite3

import psycopg

from tsuzuki import Tsuzuki
from tsuzuki.store.schema.tables import job_run_transitions, job_runs

TABLES = ((job_runs, "id"), (job_run_transitions, "run_id"))


async def long_ago() -> None:
    """The handler of the run that is copied."""


def add_finished_runs(app: Tsuzuki, url: str, finished: int) -> None:
    app.job("long-ago")(long_ago)
    with app.running():
        first = app.submit("long-ago").wait(timeout_seconds=60).id
    if url.startswith("sqlite"):
        _copy_in_sqlite(url.removeprefix("sqlite:///"), first, finished - 1)
    else:
        _copy_in_postgres(url, first, finished - 1)


def _copying(first: int, numbers: str) -> list[str]:
    """One statement per table: every row of the first run, once for each number `n`."""
    statements = []
    for table, key in TABLES:
        others = ", ".join(f'"{column.name}"' for column in table.columns if column.name != key)
        statements.append(
            f"INSERT INTO {table.name} ({key}, {others})"
            f" SELECT {key} + n, {others} FROM {table.name}, {numbers} WHERE {key} = {first}"
        )
    return statements


def _copy_in_postgres(url: str, first: int, copies: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        for statement in _copying(first, f"generate_series(1, {copies}) AS s(n)"):
            connection.execute(statement)
        connection.execute(
            "SELECT setval(pg_get_serial_sequence('tsuzuki_job_runs', 'id'), max(id)) FROM tsuzuki_job_runs"
        )
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")


def _copy_in_sqlite(path: str, first: int, copies: int) -> None:
    numbers = (
        "(WITH RECURSIVE s(n) AS"
        f" (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {copies}) SELECT n FROM s)"
    )
    connection = sqlite3.connect(path, isolation_level=None)
    guards = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
    ).fetchall()
    connection.execute("BEGIN IMMEDIATE")
    for name, _ in guards:
        connection.execute(f"DROP TRIGGER {name}")
    for statement in _copying(first, numbers):
        connection.execute(statement)
    for _, sql in guards:
        connection.execute(sql)
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
