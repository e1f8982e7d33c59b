"""Query plans of the archivist: each query uses an index, however many rows the tables hold."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import event, text

from support.factories import add_job, take_lead
from tsuzuki.store import logs, pruning
from tsuzuki.store.leadership import Term
from tsuzuki.store.sql.database import Connection, Database

RUNS = 20_000
BEFORE = datetime(2026, 1, 1, 3, tzinfo=UTC)

NUMBERS = {
    "sqlite": f"""(WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers
                   WHERE n < {RUNS}) SELECT n FROM numbers)""",
    "postgresql": f"(SELECT n FROM generate_series(1, {RUNS}) AS n)",
}
MOMENTS = {
    "sqlite": "strftime('%Y-%m-%dT%H:%M:%f000Z', '2026-01-01', '+' || n || ' seconds')",
    "postgresql": "timestamptz '2026-01-01 00:00Z' + n * interval '1 second'",
}

QUERIES: dict[str, Callable[[Connection, Term], Any]] = {
    "logs to archive": lambda c, _: logs.stored(c, created_before=BEFORE, after_id=0, limit=50),
    "runs to prune": lambda c, _: pruning.due(c, finished_before=BEFORE, limit=200),
    "marking": lambda c, term: pruning.mark(c, term=term, run_ids=range(1, 200)),
    "runs with lines": lambda c, _: logs.having_lines(c, range(1, 200)),
    "lines to drop": lambda c, term: logs.delete_lines(c, term=term, run_id=5_000, limit=2_000),
    "runs to drop": lambda c, term: pruning.delete_marked(c, term=term, run_ids=range(1, 200)),
}


@pytest.fixture
def crowded(database: Database, dialect: str) -> Database:
    """Many finished runs, the later half of which has lines."""
    job_id = add_job(database)
    numbers, moment = NUMBERS[dialect], MOMENTS[dialect]
    with database.write() as connection:
        connection.execute(
            text(
                "INSERT INTO tsuzuki_job_runs (job_definition_id, state, version, trigger, scheduled_for,"
                " priority, arguments, attempt, retries_used, created_at)"
                f" SELECT {job_id}, 'PENDING', 1, 'manual', {moment}, 0, '{{}}', 1, 0, {moment}"
                f" FROM {numbers} AS numbers"
            )
        )
        connection.execute(
            text(
                "UPDATE tsuzuki_job_runs SET state = 'CANCELED', version = 2, reason = 'operator',"
                " finished_at = created_at, moved_at = created_at, moved_as = 'operator',"
                " moved_by = 'me'"
            )
        )
        connection.execute(
            text(
                "INSERT INTO tsuzuki_job_run_logs (run_id, seq, at, stream, body)"
                f" SELECT n, seq, {moment}, 'log', 'something' FROM {numbers} AS numbers,"
                f" (SELECT 1 AS seq UNION ALL SELECT 2) AS two WHERE n > {RUNS} / 2"
            )
        )
    with database.write() as connection:
        connection.execute(text("ANALYZE"))
    return database


@contextmanager
def recording(database: Database) -> Iterator[list[tuple[str, Any]]]:
    """The statements that are sent meanwhile."""
    sent: list[tuple[str, Any]] = []

    def record(_c: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        sent.append((statement, parameters))

    event.listen(database.engine, "before_cursor_execute", record)
    yield sent
    event.remove(database.engine, "before_cursor_execute", record)


def plan_of(connection: Connection, statement: str, parameters: Any) -> str:
    explain = "EXPLAIN QUERY PLAN" if connection.dialect.name == "sqlite" else "EXPLAIN"
    rows = connection.exec_driver_sql(f"{explain} {statement}", parameters)
    return "\n".join(str(row[-1]) for row in rows)


def test_no_query_of_the_archivist_scans_a_table(crowded: Database) -> None:
    term = take_lead(crowded)
    for name, query in QUERIES.items():
        with recording(crowded) as sent, crowded.write() as connection:
            query(connection, term)
            statements = [one for one in sent if not one[0].startswith("BEGIN")]
            for statement, parameters in statements:
                plan = plan_of(connection, statement, parameters)
                for scan in ("Seq Scan on job_run", "SCAN job_run"):
                    assert scan not in plan, f"{name}:\n{plan}"
        assert statements


def test_the_runs_with_lines_are_found_behind_many_without(crowded: Database) -> None:
    with crowded.read() as connection:
        found = logs.stored(connection, created_before=BEFORE, after_id=0, limit=3)
        last = logs.stored(connection, created_before=BEFORE, after_id=10_797, limit=10)

    assert [one.run_id for one in found] == [10_001, 10_002, 10_003]
    assert [one.run_id for one in last] == [10_798, 10_799]
