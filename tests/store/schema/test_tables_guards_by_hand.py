"""What statements that are written by hand may not change, and what the version before still may."""

import pytest
from sqlalchemy import Executable, select, update

from support import raw_statements
from support.factories import (
    add_job,
    add_worker,
    create_run,
    emit_event,
    read_run,
    ref,
    run_in_state,
    take_lead,
)
from tsuzuki.model.states import LIVE_STATES, Actor, RunState, Trigger
from tsuzuki.store import events
from tsuzuki.store.inspection import inspect_database
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import runs
from tsuzuki.store.schema.tables import events as events_table
from tsuzuki.store.schema.tables import job_run_transitions, job_runs
from tsuzuki.store.sql.database import Database

FIXED = "tsuzuki: what a run was created with"
ATTEMPT = "tsuzuki: the attempt of a run"
HELD = "tsuzuki: worker and epoch of a run"
SIGNED = "tsuzuki: a move has a time and an actor"
EVENT = "tsuzuki: an event keeps its key"


def assert_refused(database: Database, statement: Executable, words: str) -> None:
    assert raw_statements.refusal(database, statement).startswith(words), statement


@pytest.fixture
def term(database: Database) -> Term:
    add_worker(database)
    return take_lead(database)


# --- columns of a run -----------------------------------------------------------------------------


CREATED_WITH = {
    "arguments": {"other": 1},
    "idempotency_key": "other",
    "work_key": "other",
    "defaulted_arguments": ["other"],
    "concurrency_key": "other",
    "retries_used": 1,
    "retry_of": 4711,
    "origin_id": 4711,
    "event_id": 4711,
    "trigger": "time",
    "covers_ticks": 9,
    "blocked_by": 4711,
    "created_at": raw_statements.MOMENT,
}


def test_what_a_run_was_created_with_does_not_change(database: Database, term: Term) -> None:
    for state in LIVE_STATES:
        run = run_in_state(database, state, term)
        for name, other in CREATED_WITH.items():
            changed = raw_statements.change(run.id, attempt=job_runs.c.attempt, **{name: other})
            assert_refused(database, changed, FIXED)


def test_a_key_is_not_taken_from_a_run(database: Database) -> None:
    run = create_run(database, add_job(database), idempotency_key="k")
    assert_refused(database, raw_statements.change(run.id, idempotency_key=None), FIXED)


def test_a_run_stays_with_its_tick(database: Database) -> None:
    run = create_run(database, add_job(database), trigger=Trigger.TIME)
    moved = raw_statements.change(run.id, scheduled_for=raw_statements.MOMENT)
    assert_refused(database, moved, FIXED)


def test_a_run_without_a_tick_may_be_put_off_and_given_another_priority(database: Database) -> None:
    run = create_run(database, add_job(database))
    later = raw_statements.change(run.id, scheduled_for=raw_statements.MOMENT, priority=7)
    assert raw_statements.answer(database, later) is None


def test_the_attempt_grows_only_when_an_orphaned_run_is_assigned_again(
    database: Database, term: Term
) -> None:
    for state in LIVE_STATES:
        run = run_in_state(database, state, term)
        changed = raw_statements.change(run.id, attempt=job_runs.c.attempt + 1)
        assert_refused(database, changed, ATTEMPT)
    pending = run_in_state(database, RunState.PENDING, term)
    orphaned = run_in_state(database, RunState.ORPHANED, term)
    for run, growth, is_legal in [
        (pending, 1, False),
        (orphaned, 2, False),
        (orphaned, -1, False),
        (orphaned, 1, True),
    ]:
        move = raw_statements.move(
            run.id, RunState.ASSIGNED, Actor.LEADER, attempt=job_runs.c.attempt + growth
        )
        words = raw_statements.answer(database, move)
        assert words is None if is_legal else (words or "").startswith(ATTEMPT)


def test_worker_and_epoch_change_only_with_a_move(database: Database, term: Term) -> None:
    for state in LIVE_STATES - {RunState.PENDING}:
        run = run_in_state(database, state, term)
        for name, other in {
            "assigned_worker_id": "host-2-bbbb",
            "leader_epoch": 7,
            "assigned_at": raw_statements.MOMENT,
        }.items():
            assert_refused(database, raw_statements.change(run.id, **{name: other}), HELD)
    running = run_in_state(database, RunState.RUNNING, term)
    again = raw_statements.change(running.id, started_at=raw_statements.MOMENT)
    assert_refused(database, again, HELD)


def test_progress_and_the_state_of_its_confirmation_change_without_a_move(
    database: Database, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    for changes in (
        {"progress_processed": 3, "progress_total": 9, "progress_at": raw_statements.MOMENT},
        {
            "continuation_state": "CONFIRMING",
            "continuation_check_deadline_at": raw_statements.MOMENT,
        },
    ):
        assert raw_statements.answer(database, raw_statements.change(run.id, **changes)) is None


# --- signatures -----------------------------------------------------------------------------------


@pytest.mark.parametrize("epoch", [None, 0, -1])
def test_a_leader_does_not_move_a_run_under_no_epoch(
    database: Database, term: Term, epoch: int | None
) -> None:
    for source in (RunState.PENDING, RunState.ORPHANED):
        run = run_in_state(database, source, term)
        for target, growth in ((RunState.ASSIGNED, 1), (RunState.RUNNING, 2)):
            move = raw_statements.move(
                run.id,
                target,
                Actor.LEADER,
                version=job_runs.c.version + growth,
                moved_epoch=epoch,
            )
            assert_refused(database, move, SIGNED)


def test_a_run_is_not_started_under_epoch_zero(database: Database, term: Term) -> None:
    for source, actor, growth in (
        (RunState.PENDING, Actor.LEADER, 2),
        (RunState.ASSIGNED, Actor.WORKER, 1),
    ):
        run = run_in_state(database, source, term)
        move = raw_statements.move(
            run.id,
            RunState.RUNNING,
            actor,
            version=job_runs.c.version + growth,
            leader_epoch=0,
        )
        assert_refused(database, move, HELD)


# --- events ---------------------------------------------------------------------------------------


def test_an_event_keeps_its_key_and_stays_processed(database: Database, term: Term) -> None:
    event_id, other_id = emit_event(database, "k"), emit_event(database)
    of_event = update(events_table).where(events_table.c.id == event_id)
    for changes in (
        {"dedupe_key": "other"},
        {"dedupe_key": None},
        {"event_type": "x"},
        {"id": 4711},
    ):
        assert_refused(database, of_event.values(**changes), EVENT)
    unkeyed = update(events_table).where(events_table.c.id == other_id)
    assert_refused(database, unkeyed.values(dedupe_key="new"), EVENT)
    with database.write() as connection:
        assert events.mark_processed(connection, term=term, event_ids=[event_id])
    for at in (None, raw_statements.MOMENT):
        assert_refused(database, of_event.values(processed_at=at), EVENT)


# --- the version before ---------------------------------------------------------------------------


SIGNED_BY = "moved_at = :at, moved_as = :actor, moved_by = :by, moved_epoch = :epoch"
BEFORE = {
    "create": f"INSERT INTO tsuzuki_job_runs ({raw_statements.RUN_COLUMNS})"
    f" SELECT {raw_statements.COPIED_RUN} FROM tsuzuki_job_runs WHERE id = :id ON CONFLICT DO NOTHING",
    "assign": "UPDATE tsuzuki_job_runs SET state = 'ASSIGNED', version = version + 1, attempt = CASE WHEN"
    " state = 'ORPHANED' THEN attempt + 1 ELSE attempt END, assigned_worker_id = 'host-1-aaaa',"
    f" assigned_at = :at, reason = NULL, {SIGNED_BY} WHERE id = :id",
    "hand back": "UPDATE tsuzuki_job_runs SET state = 'ORPHANED', version = version + 1, orphan_count ="
    f" orphan_count + 1, orphans_free = orphans_free + 1, reason = 'worker_shutdown', {SIGNED_BY}"
    " WHERE id = :id",
    "assign and start": "UPDATE tsuzuki_job_runs SET state = 'RUNNING', version = version + 2, attempt = CASE"
    " WHEN state = 'ORPHANED' THEN attempt + 1 ELSE attempt END, assigned_worker_id = 'host-1-aaaa',"
    " assigned_at = :at, reason = NULL, leader_epoch = (SELECT epoch FROM tsuzuki_leadership WHERE id = 1),"
    f" started_at = :at, {SIGNED_BY} WHERE id = :id",
    "report progress": "UPDATE tsuzuki_job_runs SET progress_processed = 1, progress_total = 2,"
    " progress_at = :at WHERE id = :id",
    "finish": "UPDATE tsuzuki_job_runs SET state = 'SUCCEEDED', version = version + 1, finished_at = :at,"
    " continuation_state = 'NONE', continuation_check_deadline_at = NULL, reason = NULL, error = NULL,"
    f" result = NULL, {SIGNED_BY} WHERE id = :id",
    "archive": "UPDATE tsuzuki_job_runs SET log_ref = 'x' WHERE id = :id",
}
"""What the version before the guards sends for one run, as far as columns and values go."""

SIGNERS = {
    "assign": ("leader", "leader-1", 1),
    "hand back": ("worker", "host-1-aaaa", None),
    "assign and start": ("leader", "leader-1", 1),
    "finish": ("worker", "host-1-aaaa", 1),
}


def test_the_statements_of_the_version_before_are_accepted(database: Database, term: Term) -> None:
    run = create_run(database, add_job(database), idempotency_key="k")
    for name, sql in BEFORE.items():
        actor, by, epoch = SIGNERS.get(name, (None, None, None))
        given = {
            "id": run.id,
            "at": raw_statements.MOMENT,
            "actor": actor,
            "by": by,
            "epoch": epoch,
        }
        if database.is_sqlite:
            given["at"] = "2026-03-01T13:00:00.000000Z"
        named = {key: value for key, value in given.items() if f":{key}" in sql}
        raw_statements.send(database, raw_statements.in_words(sql, **named))
    ended = read_run(database, run.id)
    assert (ended.state, ended.version, ended.attempt) == (RunState.SUCCEEDED, 6, 2)
    assert ref(database, run.id).version == 6
    with database.read() as connection:
        assert len(runs.find(connection, runs.RunFilter())) == 1
        history = connection.execute(select(job_run_transitions)).all()
    assert len(history) == 5
    assert all(finding.is_ok for finding in inspect_database(database))
