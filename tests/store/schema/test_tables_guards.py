"""What the database itself refuses, from any sender."""

from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Column, Executable, Text, delete, insert, select, text, update

from support import raw_statements
from support.dialects import only_on_postgresql, only_on_sqlite
from support.factories import (
    add_job,
    add_worker,
    create_run,
    read_run,
    run_in_state,
    spec,
    take_lead,
)
from tsuzuki.model.states import FINAL_STATES, LIVE_STATES, Actor, RunState
from tsuzuki.store import audit
from tsuzuki.store.leadership import Term
from tsuzuki.store.schema.tables import (
    audit_log,
    job_definitions,
    job_run_transitions,
    job_runs,
    leadership,
)
from tsuzuki.store.sql.database import Database
from tsuzuki.store.sql.types import JsonText, KeyText, PlainText, UtcTime

VERSION = "tsuzuki: the version of a run"
CREATED_PENDING = "tsuzuki: a run is born PENDING"
FINISHED = "tsuzuki: a finished run does not change"
KEEP = "tsuzuki: an unfinished run cannot be deleted"
KEEP_JOB = "tsuzuki: the row of a job stays"
HISTORY = "tsuzuki: the history of runs"
AUDIT = "tsuzuki: the audit log"
EPOCH = "tsuzuki: the epoch only grows"


def assert_refused(database: Database, statement: Executable, words: str) -> None:
    assert raw_statements.refusal(database, statement).startswith(words), statement


# --- runs -----------------------------------------------------------------------------------------


@pytest.fixture
def term(database: Database) -> Term:
    add_worker(database)
    return take_lead(database)


def test_the_version_grows_by_one_with_a_move(database: Database, term: Term) -> None:
    run = run_in_state(database, RunState.ASSIGNED, term)
    for step in (0, -1, 2):
        wrong = job_runs.c.version + step
        move = raw_statements.move(run.id, RunState.RUNNING, Actor.WORKER, version=wrong)
        assert_refused(database, move, VERSION)


def test_the_version_stays_without_a_move(database: Database, term: Term) -> None:
    for state in LIVE_STATES:
        run = run_in_state(database, state, term)
        for step in (1, -1, 2):
            changed = raw_statements.change(run.id, version=job_runs.c.version + step)
            assert_refused(database, changed, VERSION)


def test_the_id_of_a_run_never_changes(database: Database, term: Term) -> None:
    for state in RunState:
        run = run_in_state(database, state, term)
        assert_refused(database, raw_statements.change(run.id, id=run.id + 1000), "tsuzuki: ")


def another(column: Column[Any], value: Any) -> Any:
    """A value of the column's kind that is not the one it has."""
    match column.type:
        case UtcTime():
            return datetime(1999, 12, 31, tzinfo=UTC)
        case JsonText():
            return {"not": "this"}
        case Text() | KeyText() | PlainText():
            return "PENDING" if column.name == "state" else "something else"
        case _:
            return (value or 0) + 7


@pytest.mark.parametrize("state", sorted(FINAL_STATES))
def test_nothing_on_a_finished_run_changes_but_its_log_ref(
    database: Database, term: Term, state: RunState
) -> None:
    run = run_in_state(database, state, term)
    with database.read() as connection:
        found = connection.execute(select(job_runs).where(job_runs.c.id == run.id))
        row = found.mappings().one()
    accepted = set()
    for column in job_runs.columns:
        changed = {column.name: another(column, row[column.name])}
        words = raw_statements.answer(database, raw_statements.change(run.id, **changed))
        if words is None:
            accepted.add(column.name)
        else:
            assert words.startswith("tsuzuki: "), (column.name, words)
    assert accepted == {"log_ref"}


def test_a_finished_run_does_not_lose_a_value_either(database: Database, term: Term) -> None:
    run = run_in_state(database, RunState.FAILED, term)
    for name in ("reason", "assigned_worker_id", "started_at", "finished_at", "moved_by"):
        assert_refused(database, raw_statements.change(run.id, **{name: None}), FINISHED)


def test_a_run_is_created_pending(database: Database, term: Term) -> None:
    for state in set(RunState) - {RunState.PENDING}:
        run = run_in_state(database, state, term)
        created = raw_statements.copy_of(database, job_runs, {"id": run.id}, id=..., version=1)
        assert_refused(database, created, CREATED_PENDING)


def test_a_run_is_created_at_version_one(database: Database) -> None:
    run = create_run(database, add_job(database))
    for version in (0, 2, 7):
        created = raw_statements.copy_of(
            database, job_runs, {"id": run.id}, id=..., version=version
        )
        assert_refused(database, created, CREATED_PENDING)


def test_an_unfinished_run_cannot_be_deleted(database: Database, term: Term) -> None:
    for state in LIVE_STATES:
        run = run_in_state(database, state, term)
        assert_refused(database, delete(job_runs).where(job_runs.c.id == run.id), KEEP)


def test_a_finished_run_can_be_deleted_and_its_history_only_after_it(
    database: Database, term: Term
) -> None:
    for state in FINAL_STATES:
        run = run_in_state(database, state, term)
        forget = delete(job_run_transitions).where(job_run_transitions.c.run_id == run.id)
        assert_refused(database, forget, HISTORY)
        raw_statements.send(database, delete(job_runs).where(job_runs.c.id == run.id))
        raw_statements.send(database, forget)
    with database.read() as connection:
        assert connection.execute(select(job_run_transitions)).all() == []


UPSERT = """
    INSERT INTO tsuzuki_job_runs (id, job_definition_id, state, version, trigger, scheduled_for, priority,
        arguments, attempt, retries_used, created_at)
    SELECT id, job_definition_id, 'PENDING', 1, trigger, scheduled_for, priority, arguments, attempt,
        retries_used, created_at FROM tsuzuki_job_runs WHERE id = :run
    ON CONFLICT (id) DO UPDATE SET state = 'PENDING', version = 1, assigned_worker_id = NULL,
        started_at = NULL, finished_at = NULL
"""


def test_an_upsert_is_held_to_the_same_rules(database: Database, term: Term) -> None:
    for state in set(RunState) - {RunState.PENDING}:
        run = run_in_state(database, state, term)
        assert_refused(database, raw_statements.in_words(UPSERT, run=run.id), "tsuzuki: ")
        assert read_run(database, run.id).state is state


# --- history --------------------------------------------------------------------------------------


def test_history_is_never_rewritten(database: Database, term: Term) -> None:
    run = run_in_state(database, RunState.SUCCEEDED, term)
    for changes in ({"actor_id": "me"}, {"reason": "operator"}, {"version": 9}, {"to_state": "X"}):
        rewrite = update(job_run_transitions).where(job_run_transitions.c.run_id == run.id)
        assert_refused(database, rewrite.values(**changes), HISTORY)


def invented_line(run_id: int, version: int, state: RunState) -> Executable:
    return insert(job_run_transitions).values(
        run_id=run_id,
        version=version,
        from_state=RunState.PENDING,
        to_state=state,
        at=raw_statements.MOMENT,
        actor=Actor.LEADER,
        actor_id="me",
    )


def test_history_is_not_written_by_hand(database: Database, term: Term) -> None:
    for state in RunState:
        run = run_in_state(database, state, term)
        for version in range(1, run.version + 2):
            assert_refused(database, invented_line(run.id, version, state), HISTORY)


def test_history_of_a_run_that_never_was_is_refused(database: Database) -> None:
    assert_refused(database, invented_line(4711, 2, RunState.ASSIGNED), HISTORY)


# --- audit log and leadership ---------------------------------------------------------------------


def test_the_audit_log_is_only_added_to(database: Database) -> None:
    with database.write() as connection:
        audit.record(connection, actor="me", action="x", object_type="y", object_id="z")
    assert_refused(database, update(audit_log).values(actor="unknown"), AUDIT)
    assert_refused(database, delete(audit_log), AUDIT)


def test_the_epoch_only_grows_by_one_and_a_new_holder_needs_a_new_one(database: Database) -> None:
    take_lead(database)
    for changes in (
        {"epoch": leadership.c.epoch - 1},
        {"epoch": leadership.c.epoch + 2},
        {"epoch": leadership.c.epoch + 2, "holder": "leader-2"},
        {"holder": "leader-2"},
    ):
        assert_refused(database, update(leadership).values(**changes), EPOCH)


def test_an_epoch_is_not_taken_again_after_a_leader_stepped_down(database: Database) -> None:
    take_lead(database)
    raw_statements.send(database, update(leadership).values(holder=None))
    assert_refused(database, update(leadership).values(holder="leader-1"), EPOCH)
    raw_statements.send(database, update(leadership).values(holder="leader-1", epoch=2))


def test_leadership_stays_one_row(database: Database) -> None:
    assert_refused(database, delete(leadership), EPOCH)
    second = raw_statements.copy_of(database, leadership, {"id": 1}, id=2, epoch=5)
    raw_statements.refusal(database, second)


# --- one database only ----------------------------------------------------------------------------


@only_on_postgresql
def test_truncate_is_refused(database: Database) -> None:
    for tables, words in [
        ("tsuzuki_job_runs", KEEP),
        ("tsuzuki_job_run_transitions", HISTORY),
        ("tsuzuki_audit_log", AUDIT),
        ("tsuzuki_leadership", EPOCH),
        ("tsuzuki_job_definitions", KEEP_JOB),
        ("tsuzuki_job_definitions, tsuzuki_job_runs", KEEP_JOB),
    ]:
        assert_refused(database, text(f"TRUNCATE {tables}"), words)


def test_the_row_of_a_job_stays(database: Database) -> None:
    job_id = add_job(database)
    assert_refused(
        database, delete(job_definitions).where(job_definitions.c.id == job_id), KEEP_JOB
    )


def test_a_run_stays_with_its_job(database: Database) -> None:
    run, other = create_run(database, add_job(database)), add_job(database, spec("other"))
    assert_refused(
        database,
        update(job_runs).where(job_runs.c.id == run.id).values(job_definition_id=other),
        "tsuzuki: ",
    )


@only_on_sqlite
def test_replace_cannot_put_a_new_row_in_the_place_of_a_guarded_one(
    database: Database, term: Term
) -> None:
    run = run_in_state(database, RunState.SUCCEEDED, term)
    with database.write() as connection:
        audit.record(connection, actor="me", action="x", object_type="y", object_id="z")
    for sql, words in [
        (
            "REPLACE INTO tsuzuki_job_runs (id, job_definition_id, state, version, trigger,"
            " scheduled_for, priority, arguments, attempt, retries_used, created_at)"
            f" VALUES ({run.id}, 1, 'PENDING', 1, 'manual', '', 0, '{{}}', 1, 0, '')",
            CREATED_PENDING,
        ),
        (
            "REPLACE INTO tsuzuki_job_run_transitions"
            f" VALUES ({run.id}, {run.version}, 'RUNNING', 'SUCCEEDED', '', 'leader', '', 1, '', '', 9)",
            HISTORY,
        ),
        ("REPLACE INTO tsuzuki_leadership VALUES (1, 0, NULL, '', NULL, 10, 0)", EPOCH),
        (
            "REPLACE INTO tsuzuki_audit_log VALUES (1, '', 'unknown', 'x', 'y', 'z', NULL, NULL)",
            AUDIT,
        ),
    ]:
        assert_refused(database, text(sql), words)
