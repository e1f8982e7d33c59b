"""The check of a database names what is broken."""

from sqlalchemy import text

from support import raw_statements
from support.factories import add_worker, run_in_state, take_lead
from tsuzuki.model.states import RunState
from tsuzuki.store.inspection import inspect_database
from tsuzuki.store.sql.database import Database


def without_guards(database: Database, sql: str) -> None:
    """A statement that no trigger sees."""
    with database.write() as connection:
        if database.is_sqlite:
            stored = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
            triggers = connection.execute(text(stored)).all()
            for name, _ in triggers:
                connection.execute(text(f"DROP TRIGGER {name}"))
            connection.execute(text(sql))
            for _, created in triggers:
                connection.exec_driver_sql(created)
        else:
            connection.execute(text("SET LOCAL session_replication_role = replica"))
            connection.execute(text(sql))


def test_the_check_finds_history_and_logs_without_their_run(database: Database) -> None:
    add_worker(database)
    term = take_lead(database)
    deleted = run_in_state(database, RunState.SUCCEEDED, term)
    run_in_state(database, RunState.RUNNING, term)
    assert all(finding.is_ok for finding in inspect_database(database))
    line = "(run_id, seq, at, stream, body) VALUES (4711, 1, '2026-03-01T13:00:00Z', 'out', 'x')"
    raw_statements.send(database, text(f"INSERT INTO tsuzuki_job_run_logs {line}"))
    without_guards(database, f"DELETE FROM tsuzuki_job_runs WHERE id = {deleted.id}")
    broken = {finding.subject: finding for finding in inspect_database(database)}
    assert [subject for subject, finding in broken.items() if not finding.is_ok] == ["runs"]
    problem = broken["runs"].problem or ""
    assert f"run {deleted.id} is missing, but has a history" in problem
    assert "run 4711 is missing, but has a log" in problem
