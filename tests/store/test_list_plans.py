"""Query plans of lists and counts beside many rows: each goes along an index. Those of runs: `runs/test_run_search`."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import text

from support.query_plans import last_sent, plan_of
from tsuzuki.store import audit, events, failures, rollups
from tsuzuki.store.sql.database import Connection, Database

ROWS = 20_000
SINCE = datetime(2026, 1, 1, 5, tzinfo=UTC)
UNTIL = datetime(2026, 1, 1, 6, tzinfo=UTC)
LAST = failures.GroupPosition(UNTIL, "group-7")

LISTS: dict[str, Callable[[Connection], Any]] = {
    "groups": lambda c: failures.find(c, since=SINCE, with_acknowledged=False, limit=50),
    "groups, further": lambda c: failures.find(
        c, since=SINCE, with_acknowledged=True, limit=50, after=LAST
    ),
    "a group": lambda c: failures.get(c, "group-7"),
    "jobs of a group": lambda c: failures.job_names(c, "group-7"),
    "runs of a group": lambda c: failures.run_ids(c, "group-7", limit=50),
    "events": lambda c: events.find(c, before_id=ROWS, limit=50),
    "events of a type": lambda c: events.find(c, event_type="type-3", before_id=ROWS, limit=50),
    "events of a type, counted": lambda c: events.count(c, event_type="type-3", at_most=50_001),
    "changes": lambda c: audit.find(c, before_id=ROWS, limit=50),
    "changes of an actor": lambda c: audit.find(c, actor="actor-3", before_id=ROWS, limit=50),
    "changes of an actor, counted": lambda c: audit.count(c, actor="actor-3", at_most=50_001),
    "changes of a kind": lambda c: audit.find(c, object_type="job", before_id=ROWS, limit=50),
    "changes of an object": lambda c: audit.find(c, object_type="job", object_id="7", limit=50),
    "hours": lambda c: rollups.sums_by_hour(c, SINCE, UNTIL),
    "hours by job": lambda c: rollups.sums_by_job(c, SINCE, UNTIL),
    "hours of a job": lambda c: rollups.hours_of_job(c, [SINCE, UNTIL], 7),
}
TABLES = ("tsuzuki_run_failures", "events", "tsuzuki_audit_log", "tsuzuki_run_hours")


@pytest.fixture
def crowded(database: Database) -> Database:
    is_sqlite = database.is_sqlite
    numbers = (
        f"(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {ROWS})"
        " SELECT n FROM s) AS numbers"
        if is_sqlite
        else f"(SELECT n FROM generate_series(1, {ROWS}) AS n) AS numbers"
    )
    at = (
        "strftime('%Y-%m-%dT%H:%M:%f000Z', '2026-01-01', n || ' seconds')"
        if is_sqlite
        else "timestamptz '2026-01-01 00:00Z' + n * interval '1 second'"
    )
    hour = at.replace("n || ' seconds'", "(n / 20) || ' hours'").replace(
        "n * interval '1 second'", "n / 20 * interval '1 hour'"
    )
    statements = [
        f"INSERT INTO tsuzuki_failure_groups (id, signature) SELECT 'group-' || n, '' FROM {numbers}"
        " WHERE n <= 50",
        "INSERT INTO tsuzuki_run_failures (run_id, group_id, job_definition_id, failed_at)"
        f" SELECT n, 'group-' || (n % 50 + 1), n % 9, {at} FROM {numbers}",
        "INSERT INTO tsuzuki_events (event_type, payload, created_at)"
        f" SELECT 'type-' || (n % 500), '{{}}', {at} FROM {numbers}",
        "INSERT INTO tsuzuki_audit_log (at, actor, action, object_type, object_id) SELECT"
        f" {at}, 'actor-' || (n % 500), 'a', CASE WHEN n % 900 = 0 THEN 'job' ELSE 'run' END,"
        f" CAST(n AS text) FROM {numbers}",
        "INSERT INTO tsuzuki_run_hours (hour, job_definition_id, outcome, bucket, runs, seconds)"
        f" SELECT {hour}, n % 20, 'SUCCEEDED', 1, 1, 1.0 FROM {numbers}",
        "ANALYZE",
    ]
    for statement in statements:
        with database.write() as connection:
            connection.execute(text(statement))
    return database


def test_no_list_and_no_count_scans_its_table(crowded: Database) -> None:
    for name, ask in LISTS.items():
        with crowded.read() as connection:
            with last_sent(connection) as sent:
                ask(connection)
            assert sent
            for one in sent:
                plan = plan_of(connection, one)
                for table in TABLES:
                    assert f"SCAN {table}\n" not in plan, f"{name}:\n{plan}"
                    assert f"Seq Scan on {table}" not in plan, f"{name}:\n{plan}"
