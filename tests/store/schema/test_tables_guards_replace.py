"""REPLACE on SQLite deletes no row that is kept, on a connection that is not ours either."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from sqlalchemy import select

from support import raw_statements
from support.dialects import only_on_sqlite
from support.factories import (
    add_job,
    add_worker,
    create_run,
    emit_event,
    read_run,
    run_in_state,
    spec,
    take_lead,
)
from tsuzuki.model.states import RunState, Trigger
from tsuzuki.store import events, jobs
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import moves
from tsuzuki.store.schema.tables import replace_checks
from tsuzuki.store.sql.database import Database

SIGNED = "tsuzuki: a move has a time and an actor"
EVENT = "tsuzuki: an event keeps its key"
REPLACE = "tsuzuki: REPLACE would delete"
KEEP_JOB = "tsuzuki: the row of a job stays"


@pytest.fixture
def term(database: Database) -> Term:
    add_worker(database)
    return take_lead(database)


@pytest.fixture
def shell(database: Database) -> Iterator[sqlite3.Connection]:
    """A connection as a database shell opens it: none of our settings."""
    with closing(sqlite3.connect(str(database.path), isolation_level=None)) as connection:
        yield connection


def refused_by(shell: sqlite3.Connection, sql: str) -> str:
    with pytest.raises(sqlite3.IntegrityError) as refused:
        shell.execute(sql)
    return str(refused.value)


@only_on_sqlite
def test_replace_does_not_delete_the_run_with_the_same_key_or_tick(
    database: Database, term: Term, shell: sqlite3.Connection
) -> None:
    job_id = add_job(database)
    keyed = create_run(database, job_id, idempotency_key="k")
    ticked = create_run(database, job_id, trigger=Trigger.TIME)
    with database.write() as connection:
        moves.assign_and_start(connection, term=term, worker_id="host-1-aaaa", runs=[keyed, ticked])
    for run in (keyed, ticked):
        copy = (
            f"INTO tsuzuki_job_runs ({raw_statements.RUN_COLUMNS})"
            f" SELECT {raw_statements.COPIED_RUN} FROM tsuzuki_job_runs WHERE id = {run.id}"
        )
        for verb in ("INSERT OR REPLACE", "REPLACE"):
            assert refused_by(shell, f"{verb} {copy}").startswith(REPLACE)
        assert refused_by(shell, f"INSERT {copy}").startswith(
            "UNIQUE constraint failed: tsuzuki_job_runs."
        )
        assert shell.execute(f"INSERT OR IGNORE {copy}").rowcount == 0
        assert shell.execute(f"INSERT {copy} ON CONFLICT DO NOTHING").rowcount == 0
        assert read_run(database, run.id).state is RunState.RUNNING
    assert shell.execute("SELECT * FROM tsuzuki_replace_checks").fetchall() == [(1, 0)]


@only_on_sqlite
def test_update_or_replace_does_not_delete_another_run(
    database: Database, term: Term, shell: sqlite3.Connection
) -> None:
    job_id = add_job(database)
    first = create_run(database, job_id, idempotency_key="a", trigger=Trigger.TIME)
    at = read_run(database, first.id).scheduled_for
    second = create_run(database, job_id, idempotency_key="b")
    tick = shell.execute(
        f"SELECT scheduled_for FROM tsuzuki_job_runs WHERE id = {first.id}"
    ).fetchone()[0]
    for assignment in (
        "idempotency_key = 'a'",
        f"trigger = 'time', scheduled_for = '{tick}'",
        *(f"{name} = {first.id}" for name in ("id", "rowid", "oid", "_rowid_", '"RowId"')),
        f"rowid = {first.id}, log_ref = 'x'",
    ):
        sql = f"UPDATE OR REPLACE tsuzuki_job_runs SET {assignment} WHERE id = {second.id}"
        assert refused_by(shell, sql).startswith("tsuzuki: "), assignment
    assert read_run(database, first.id).scheduled_for == at
    assert read_run(database, second.id).idempotency_key == "b"


@only_on_sqlite
def test_replace_does_not_delete_a_job(database: Database, shell: sqlite3.Connection) -> None:
    first, second = add_job(database, spec("first")), add_job(database, spec("second"))
    names = [column for column in jobs.columns_of(spec()) if column != "name"]
    copied = ", ".join(
        [*names, "source", "version", "planned_until", "created_at", "updated_at"],
    )
    for name, values in (("id, name", f"{first}, 'third'"), ("name", "'first'")):
        for verb in ("INSERT OR REPLACE", "REPLACE"):
            sql = (
                f"{verb} INTO tsuzuki_job_definitions ({name}, {copied})"
                f" SELECT {values}, {copied} FROM tsuzuki_job_definitions WHERE id = {second}"
            )
            assert refused_by(shell, sql).startswith(REPLACE)
    for assignment, words in (
        ("name = 'first'", REPLACE),
        (f"id = {first}", KEEP_JOB),
        (f"rowid = {first}", KEEP_JOB),
    ):
        sql = f"UPDATE OR REPLACE tsuzuki_job_definitions SET {assignment} WHERE id = {second}"
        assert refused_by(shell, sql).startswith(words)
    with database.read() as connection:
        assert [job.spec.name for job in jobs.find(connection)] == ["first", "second"]


@only_on_sqlite
def test_a_removed_job_does_not_come_back_in_the_place_of_another(
    database: Database, shell: sqlite3.Connection
) -> None:
    removed = add_job(database, spec("gone"))
    with database.write() as connection:
        job = jobs.get(connection, removed)
        assert job is not None
        jobs.remove(connection, job=job)
    add_job(database, spec("same"))
    shell.execute(f"UPDATE tsuzuki_job_definitions SET name = 'same' WHERE id = {removed}")
    back = f"UPDATE OR REPLACE tsuzuki_job_definitions SET deleted_at = NULL WHERE id = {removed}"
    assert refused_by(shell, back).startswith(REPLACE)


@only_on_sqlite
def test_replace_does_not_delete_an_event(database: Database, shell: sqlite3.Connection) -> None:
    first, second = emit_event(database, "a"), emit_event(database, "b")
    for columns, values in (
        ("event_type, payload, created_at, dedupe_key", "'paid', '{}', '', 'a'"),
        ("event_type, payload, created_at, id", f"'x', '{{}}', '', {first}"),
    ):
        for verb in ("INSERT OR REPLACE", "REPLACE"):
            sql = f"{verb} INTO tsuzuki_events ({columns}) VALUES ({values})"
            assert refused_by(shell, sql).startswith(REPLACE)
    for assignment in ("dedupe_key = 'a'", "event_type = 'x'", f"id = {first}", f"rowid = {first}"):
        sql = f"UPDATE OR REPLACE tsuzuki_events SET {assignment} WHERE id = {second}"
        assert refused_by(shell, sql).startswith(EVENT)
    with database.read() as connection:
        assert [event.id for event in events.find(connection)] == [second, first]


@only_on_sqlite
def test_or_ignore_does_not_move_a_run_without_history(
    database: Database, term: Term, shell: sqlite3.Connection
) -> None:
    run = run_in_state(database, RunState.PENDING, term)
    move = (
        "UPDATE OR IGNORE tsuzuki_job_runs SET state = 'CANCELED', version = 2, reason = 'operator',"
        " finished_at = '2026', moved_as = 'operator', moved_by = 'me'"
    )
    assert refused_by(shell, f"{move} WHERE id = {run.id}").startswith(SIGNED)
    assert read_run(database, run.id).version == 1


@only_on_sqlite
def test_the_row_by_which_replace_is_found_out_may_be_missing(
    database: Database, shell: sqlite3.Connection
) -> None:
    shell.execute("DELETE FROM tsuzuki_replace_checks")
    emit_event(database, "a")
    emit_event(database, "a")
    sql = "REPLACE INTO tsuzuki_events (event_type, payload, created_at, dedupe_key) VALUES ('paid', '1', '', 'a')"
    assert refused_by(shell, sql).startswith(REPLACE)
    with database.read() as connection:
        assert connection.execute(select(replace_checks)).all() == [(1, False)]
