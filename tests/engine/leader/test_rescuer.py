"""The rescuer orphans, fails and retries runs of workers that are gone, and takes nothing from a live one."""

from dataclasses import replace
from typing import Any

import pytest

from support.factories import (
    WORKER,
    add_job,
    add_worker,
    create_run,
    depose_and_take,
    read_run,
    run_in_state,
)
from support.moving_clock import MovingClock
from support.rescuing import (
    A_MOMENT,
    GONE,
    LOST,
    SETTINGS,
    TTL,
    a_rescuer,
    heartbeat,
    request_confirmation,
    retry_of,
    the_worker,
)
from support.statement_recorder import recorded
from support.unreliable_database import UnreliableDatabase
from tsuzuki.engine.leader.assigner import Assigner
from tsuzuki.engine.leader.rescuer import Rescued
from tsuzuki.model.states import ContinuationState, Reason, RunState
from tsuzuki.model.worker import DetachReason, WorkerState
from tsuzuki.store import workers
from tsuzuki.store.leadership import Term
from tsuzuki.store.sql.database import Database

pytestmark = pytest.mark.usefixtures("worker", "history_is_valid")


# --- workers --------------------------------------------------------------------------------------


def test_with_nothing_to_rescue_a_tick_is_one_query(
    database: Database, clock: MovingClock, term: Term
) -> None:
    for state in (RunState.PENDING, RunState.ASSIGNED, RunState.RUNNING, RunState.ORPHANED):
        run_in_state(database, state, term)
    clock.advance(TTL - A_MOMENT)
    with recorded(database) as sent:
        assert a_rescuer(database).tick(term) == Rescued()
    assert len(sent) == 1


def test_a_worker_is_detached_after_the_ttl_and_not_before(
    database: Database, clock: MovingClock, term: Term
) -> None:
    rescuer = a_rescuer(database)
    clock.advance(TTL - A_MOMENT)
    assert rescuer.tick(term) == Rescued()
    clock.advance(A_MOMENT)
    assert rescuer.tick(term) == Rescued(detached=1)
    worker = the_worker(database)
    assert (worker.state, worker.detach_reason) == (WorkerState.DETACHED, DetachReason.SILENT)


def test_a_worker_that_is_heard_again_in_time_is_reattached_and_its_runs_go_on(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    rescuer = a_rescuer(database)
    clock.advance(TTL)
    rescuer.tick(term)
    clock.advance(2.0)
    heartbeat(database)
    request_confirmation(database)
    clock.advance(0.5)
    assert rescuer.tick(term) == Rescued(reattached=1)
    assert the_worker(database).state is WorkerState.ATTACHED
    after = read_run(database, run.id)
    assert (after.state, after.version) == (RunState.RUNNING, run.version)
    assert after.continuation_state is ContinuationState.NONE
    assert after.continuation_check_deadline_at is None
    assert rescuer.tick(term) == Rescued()


def test_a_request_is_confirmed_even_if_the_worker_was_never_detached(
    database: Database, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    request_confirmation(database)
    a_rescuer(database).tick(term)
    assert read_run(database, run.id).continuation_state is ContinuationState.NONE


def test_nothing_is_confirmed_after_the_deadline(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    request_confirmation(database, deadline_seconds=0.9)
    clock.advance(0.9)
    a_rescuer(database).tick(term)
    after = read_run(database, run.id)
    assert (after.state, after.continuation_state) == (
        RunState.RUNNING,
        ContinuationState.CONFIRMING,
    )


def test_a_worker_that_an_operator_detached_is_not_reattached_though_it_is_heard(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    with database.write() as connection:
        workers.detach(connection, [WORKER])
    request_confirmation(database)
    heartbeat(database)
    assert a_rescuer(database).tick(term) == Rescued()
    assert the_worker(database).state is WorkerState.DETACHED
    assert read_run(database, run.id).continuation_state is ContinuationState.CONFIRMING


def test_a_draining_worker_that_was_silent_for_a_while_is_still_draining(
    database: Database, clock: MovingClock, term: Term
) -> None:
    """Attached again it would be assigned runs that it will never start."""
    with database.write() as connection:
        workers.drain(connection, [WORKER])
    rescuer = a_rescuer(database)
    clock.advance(TTL + 1)
    rescuer.tick(term)
    heartbeat(database)
    rescuer.tick(term)
    assert the_worker(database).state is WorkerState.DRAINING
    create_run(database, add_job(database))
    assert Assigner(database=database).tick(term) == 0


def test_the_runs_of_a_draining_worker_are_rescued_too(
    database: Database, clock: MovingClock, term: Term
) -> None:
    running = run_in_state(database, RunState.RUNNING, term)
    assigned = run_in_state(database, RunState.ASSIGNED, term)
    with database.write() as connection:
        workers.drain(connection, [WORKER])
    clock.advance(GONE)
    rescued = a_rescuer(database).tick(term)
    assert (rescued.orphaned, rescued.failed) == (1, 1)
    assert read_run(database, running.id).reason is Reason.WORKER_LOST
    assert read_run(database, assigned.id).state is RunState.ORPHANED
    assert the_worker(database).state is WorkerState.GONE


def test_a_worker_heard_between_the_read_and_the_write_is_left_alone(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    clock.advance(LOST + 5)

    class LateDatabase(UnreliableDatabase):
        def write(self) -> Any:
            heartbeat(database)
            return super().write()

    assert a_rescuer(LateDatabase(database)).tick(term) == Rescued()
    assert the_worker(database).state is WorkerState.ATTACHED
    assert read_run(database, run.id).state is RunState.RUNNING


def test_a_long_silent_worker_is_marked_gone_with_its_runs_and_never_comes_back(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run_in_state(database, RunState.RUNNING, term)
    rescuer = a_rescuer(database)
    clock.advance(GONE - A_MOMENT)
    rescuer.tick(term)
    assert the_worker(database).state is WorkerState.DETACHED
    clock.advance(A_MOMENT)
    rescuer.tick(term)
    assert the_worker(database).state is WorkerState.GONE
    heartbeat(database)
    assert rescuer.tick(term) == Rescued()
    assert the_worker(database).state is WorkerState.GONE


# --- a deposed leader -----------------------------------------------------------------------------


def test_a_deposed_rescuer_changes_nothing_at_all(
    database: Database, clock: MovingClock, term: Term
) -> None:
    running = run_in_state(database, RunState.RUNNING, term)
    assigned = run_in_state(database, RunState.ASSIGNED, term)
    at_limit = run_in_state(database, RunState.ORPHANED, term)
    clock.advance(LOST)
    add_worker(database, "heard")
    with database.write() as connection:
        workers.detach_silent(connection, term=term, silent_after_seconds=0.0)
    heartbeat(database, "heard")
    depose_and_take(database)
    strict = replace(SETTINGS, max_orphans=0)
    assert a_rescuer(database, strict).tick(term) == Rescued()
    assert read_run(database, running.id).state is RunState.RUNNING
    assert read_run(database, assigned.id).state is RunState.ASSIGNED
    assert read_run(database, at_limit.id).state is RunState.ORPHANED
    assert retry_of(database, running.id) is None
    assert the_worker(database, "heard").state is WorkerState.DETACHED
    assert the_worker(database).state is WorkerState.DETACHED
