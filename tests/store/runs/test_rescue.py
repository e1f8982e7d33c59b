"""When the leader may take a run from its worker: each condition is needed, together they suffice."""

import pytest

from support.factories import (
    WORKER,
    add_job,
    add_worker,
    create_run,
    read_run,
    ref,
    run_in_state,
    take_lead,
)
from support.moving_clock import MovingClock
from tsuzuki.model.run import RunRef
from tsuzuki.model.states import Reason, RunState
from tsuzuki.store import workers
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import moves
from tsuzuki.store.sql.database import Database

REASSIGN_AFTER = 6.0
SILENT_AFTER = 10.0


def orphan(database: Database, term: Term, run: RunRef) -> bool:
    with database.write() as connection:
        took = moves.orphan(
            connection,
            term=term,
            runs=[run],
            reassign_after_seconds=REASSIGN_AFTER,
            silent_after_seconds=SILENT_AFTER,
            lost_alone=[WORKER],
        )
    return run.id in took


def fail_lost(database: Database, term: Term, run: RunRef) -> bool:
    with database.write() as connection:
        took = moves.fail_lost(connection, term=term, runs=[run], silent_after_seconds=SILENT_AFTER)
    return run.id in took


def beat(database: Database, worker_id: str = WORKER) -> None:
    with database.write() as connection:
        workers.heartbeat(connection, worker_id)


def ask_to_continue(database: Database, deadline_seconds: float) -> None:
    with database.write() as connection:
        workers.request_confirmation(
            connection, worker_id=WORKER, deadline_seconds=deadline_seconds
        )


@pytest.fixture
def term(database: Database) -> Term:
    add_worker(database)
    return take_lead(database)


# --- ASSIGNED -> ORPHANED -------------------------------------------------------------------------


def test_an_old_assignment_of_a_silent_worker_is_orphaned(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.ASSIGNED, term)
    clock.advance(SILENT_AFTER)
    assert orphan(database, term, run)
    after = read_run(database, run.id)
    assert (after.state, after.reason) == (RunState.ORPHANED, Reason.WORKER_SILENT)
    assert after.orphan_count == 1


def test_an_old_assignment_of_a_worker_that_is_heard_stays(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.ASSIGNED, term)
    clock.advance(1000)
    beat(database)
    clock.advance(SILENT_AFTER - 0.001)
    assert not orphan(database, term, run)
    clock.advance(0.001)
    assert orphan(database, term, run)


def test_a_young_assignment_of_a_silent_worker_stays(
    database: Database, clock: MovingClock, term: Term
) -> None:
    clock.advance(1000)
    run = run_in_state(database, RunState.ASSIGNED, term)
    clock.advance(REASSIGN_AFTER - 0.001)
    assert not orphan(database, term, run)
    clock.advance(0.001)
    assert orphan(database, term, run)


@pytest.mark.parametrize("leaves", ["detach", "leave"])
def test_a_detached_or_gone_worker_counts_as_silent_despite_heartbeats(
    database: Database, clock: MovingClock, term: Term, leaves: str
) -> None:
    run = run_in_state(database, RunState.ASSIGNED, term)
    with database.write() as connection:
        if leaves == "detach":
            workers.detach(connection, [WORKER])
        else:
            workers.deregister(connection, WORKER)
    clock.advance(REASSIGN_AFTER - 0.001)
    beat(database)
    assert not orphan(database, term, run)
    clock.advance(0.001)
    assert orphan(database, term, run)


def test_a_draining_worker_with_heartbeats_keeps_its_assigned_runs(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.ASSIGNED, term)
    with database.write() as connection:
        workers.drain(connection, [WORKER])
    clock.advance(1000)
    beat(database)
    assert not orphan(database, term, run)


def test_the_silence_of_one_worker_costs_another_nothing(
    database: Database, clock: MovingClock, term: Term
) -> None:
    other = add_worker(database, "host-2-bbbb")
    silent = run_in_state(database, RunState.ASSIGNED, term)
    heard = run_in_state(database, RunState.ASSIGNED, term, other)
    clock.advance(1000)
    beat(database, other)
    with database.write() as connection:
        took = moves.orphan(
            connection,
            term=term,
            runs=[heard, silent],
            reassign_after_seconds=REASSIGN_AFTER,
            silent_after_seconds=SILENT_AFTER,
            lost_alone=[WORKER],
        )
    assert took == {silent.id}


# --- RUNNING -> FAILED ----------------------------------------------------------------------------


def test_what_a_silent_worker_runs_is_lost_and_not_a_moment_earlier(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    clock.advance(SILENT_AFTER - 0.001)
    assert not fail_lost(database, term, run)
    clock.advance(0.001)
    assert fail_lost(database, term, run)
    after = read_run(database, run.id)
    assert (after.state, after.reason) == (RunState.FAILED, Reason.WORKER_LOST)


def test_a_long_run_of_a_worker_that_is_heard_is_not_lost(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    clock.advance(1_000_000)
    beat(database)
    assert not fail_lost(database, term, run)


def test_a_detached_worker_with_heartbeats_keeps_its_running_runs(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    with database.write() as connection:
        workers.detach(connection, [WORKER])
    clock.advance(1000)
    beat(database)
    assert not fail_lost(database, term, run)


def test_what_a_worker_that_left_still_ran_is_lost_at_once(database: Database, term: Term) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    with database.write() as connection:
        workers.deregister(connection, WORKER)
    assert fail_lost(database, term, run)


def test_nothing_is_lost_while_it_is_being_confirmed_before_the_deadline(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    ask_to_continue(database, SILENT_AFTER + 5)
    clock.advance(SILENT_AFTER + 4.999)
    assert not fail_lost(database, term, run)
    clock.advance(0.001)
    assert fail_lost(database, term, run)


def test_a_deadline_that_passed_protects_no_run(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    ask_to_continue(database, 1)
    clock.advance(SILENT_AFTER)
    assert fail_lost(database, term, run)


# --- ORPHANED -> FAILED ---------------------------------------------------------------------------


def test_a_run_fails_when_it_was_orphaned_so_often_and_not_before(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = create_run(database, add_job(database))
    for count in (1, 2, 3):
        with database.write() as connection:
            chosen = [moves.Assignment(run=ref(database, run.id), worker_id=WORKER)]
            assert moves.assign(connection, term=term, assignments=chosen)
        clock.advance(SILENT_AFTER)
        assert orphan(database, term, ref(database, run.id))
        assert read_run(database, run.id).orphan_count == count
        with database.write() as connection:
            now = ref(database, run.id)
            took = moves.fail_orphaned(connection, term=term, runs=[now], max_orphans=3)
        assert (run.id in took) is (count == 3)
    after = read_run(database, run.id)
    assert (after.state, after.reason) == (RunState.FAILED, Reason.ORPHAN_LIMIT)
    assert after.attempt == 3
