"""The rescuer orphans, fails and retries runs of workers that are gone, and takes nothing from a live one."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from support.factories import (
    WORKER,
    add_job,
    add_worker,
    create_run,
    depose_and_take,
    read_run,
    ref,
    run_in_state,
    spec,
    take_lead,
)
from support.history_checker import check_history
from support.moving_clock import NOON, MovingClock
from support.statement_recorder import recorded
from support.unreliable_database import UnreliableDatabase
from tsuzuki.engine.leader.assigner import Assigner
from tsuzuki.engine.leader.rescuer import Rescued, Rescuer
from tsuzuki.model.errors import Unreachable
from tsuzuki.model.retry import RetryPolicy
from tsuzuki.model.run import Run, Started
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import ContinuationState, Reason, RunState, Trigger
from tsuzuki.model.worker import DetachReason, Worker, WorkerState
from tsuzuki.store import jobs, workers
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import moves, runs
from tsuzuki.store.sql.database import Database

SETTINGS = EngineSettings(
    worker_ttl_seconds=6.0,
    worker_grace_seconds=4.0,
    reassign_after_seconds=6.0,
    continuation_retry_count=3,
    continuation_retry_interval_seconds=0.3,
    max_orphans=3,
).checked()
TTL = SETTINGS.worker_ttl_seconds
LOST = SETTINGS.lost_after_seconds
A_MOMENT = 0.001
HOUR = 3600.0


@pytest.fixture
def term(database: Database) -> Term:
    add_worker(database)
    return take_lead(database, lease_seconds=100_000)


@pytest.fixture(autouse=True)
def history_is_valid(database: Database) -> Iterator[None]:
    yield
    check_history(database)


def a_rescuer(database: Database, settings: EngineSettings = SETTINGS) -> Rescuer:
    return Rescuer(database=database, settings=lambda: settings, random=Random(1))


def heartbeat(database: Database, worker_id: str = WORKER) -> None:
    with database.write() as connection:
        workers.heartbeat(connection, worker_id)


def request_confirmation(database: Database, deadline_seconds: float = 0.9) -> None:
    with database.write() as connection:
        workers.request_confirmation(
            connection, worker_id=WORKER, deadline_seconds=deadline_seconds
        )


def the_worker(database: Database, worker_id: str = WORKER) -> Worker:
    with database.read() as connection:
        worker = workers.get(connection, worker_id)
    assert worker is not None
    return worker


def retry_of(database: Database, run_id: int) -> Run | None:
    with database.read() as connection:
        return runs.get_by_key(connection, f"retry:{run_id}")


def lose(database: Database, clock: MovingClock, term: Term, run_id: int, worker_id: str) -> None:
    """Let a new worker start the run, then fall silent for good."""
    add_worker(database, worker_id)
    with database.write() as connection:
        assignment = moves.Assignment(run=ref(database, run_id), worker_id=worker_id)
        assert moves.assign(connection, term=term, assignments=[assignment])
    with database.write() as connection:
        assert moves.start(connection, worker_id=worker_id, runs=[ref(database, run_id)])
    clock.advance(LOST)


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
    clock.advance(LOST)
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
    clock.advance(LOST - A_MOMENT)
    rescuer.tick(term)
    assert the_worker(database).state is WorkerState.DETACHED
    clock.advance(A_MOMENT)
    rescuer.tick(term)
    assert the_worker(database).state is WorkerState.GONE
    heartbeat(database)
    assert rescuer.tick(term) == Rescued()
    assert the_worker(database).state is WorkerState.GONE


# --- ASSIGNED -> ORPHANED -------------------------------------------------------------------------


def test_an_assignment_is_orphaned_only_when_it_is_old_and_its_worker_silent(
    database: Database, clock: MovingClock, term: Term
) -> None:
    slow = replace(SETTINGS, reassign_after_seconds=20.0)
    run = run_in_state(database, RunState.ASSIGNED, term)
    rescuer = a_rescuer(database, slow)
    for _ in range(4):
        clock.advance(5.9)
        heartbeat(database)
        rescuer.tick(term)
    assert read_run(database, run.id).state is RunState.ASSIGNED
    clock.advance(TTL - A_MOMENT)
    rescuer.tick(term)
    assert read_run(database, run.id).state is RunState.ASSIGNED
    clock.advance(A_MOMENT)
    assert rescuer.tick(term).orphaned == 1
    after = read_run(database, run.id)
    assert (after.state, after.reason) == (RunState.ORPHANED, Reason.WORKER_SILENT)
    assert (after.orphan_count, after.attempt) == (1, 1)


def test_a_young_assignment_of_a_silent_worker_waits(
    database: Database, clock: MovingClock, term: Term
) -> None:
    clock.advance(TTL - A_MOMENT)
    run = run_in_state(database, RunState.ASSIGNED, term)
    rescuer = a_rescuer(database)
    clock.advance(SETTINGS.reassign_after_seconds - A_MOMENT)
    assert rescuer.tick(term) == Rescued(detached=1)
    clock.advance(A_MOMENT)
    assert rescuer.tick(term).orphaned == 1
    assert read_run(database, run.id).state is RunState.ORPHANED


def test_an_orphan_is_assigned_to_another_and_the_old_worker_can_no_longer_start_it(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.ASSIGNED, term)
    clock.advance(TTL)
    a_rescuer(database).tick(term)
    add_worker(database, "other")
    assert Assigner(database=database).tick(term) == 1
    heartbeat(database)
    with database.write() as connection:
        assert moves.start(connection, worker_id=WORKER, runs=[run]) == {}
        assert moves.start(connection, worker_id=WORKER, runs=[ref(database, run.id)]) == {}
    after = read_run(database, run.id)
    assert (after.assigned_worker_id, after.attempt) == ("other", 2)


def test_a_run_started_between_the_read_and_the_write_is_not_orphaned(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.ASSIGNED, term)
    clock.advance(TTL)

    class LateDatabase(UnreliableDatabase):
        def write(self) -> Any:
            with database.write() as connection:
                assert moves.start(connection, worker_id=WORKER, runs=[run])
            return super().write()

    assert a_rescuer(LateDatabase(database)).tick(term).orphaned == 0
    assert read_run(database, run.id).state is RunState.RUNNING


def test_a_run_orphaned_too_often_fails_and_its_retry_counts(
    database: Database, clock: MovingClock, term: Term
) -> None:
    job_id = add_job(database, spec(retry=RetryPolicy(max_retries=1, jitter=0)))
    run_id = create_run(database, job_id).id
    rescuer, assigner = a_rescuer(database), Assigner(database=database)
    for number in range(SETTINGS.max_orphans):
        assert read_run(database, run_id).state in (RunState.PENDING, RunState.ORPHANED)
        add_worker(database, f"w{number}")
        assert assigner.tick(term) == 1
        clock.advance(LOST)
        rescued = rescuer.tick(term)
    assert (rescued.orphaned, rescued.failed, rescued.retries) == (1, 1, 1)
    failed = read_run(database, run_id)
    assert (failed.state, failed.reason) == (RunState.FAILED, Reason.ORPHAN_LIMIT)
    assert (failed.orphan_count, failed.attempt) == (3, 3)
    retry = retry_of(database, run_id)
    assert retry is not None
    assert (retry.attempt, retry.retries_used, retry.orphan_count) == (4, 1, 0)
    assert retry.scheduled_for == clock.now() + timedelta(seconds=10)


# --- RUNNING -> FAILED (worker_lost) --------------------------------------------------------------


def test_a_running_run_is_lost_after_ttl_and_grace_and_not_before(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    rescuer = a_rescuer(database)
    clock.advance(LOST - A_MOMENT)
    assert rescuer.tick(term) == Rescued(detached=1)
    assert read_run(database, run.id).state is RunState.RUNNING
    clock.advance(A_MOMENT)
    assert rescuer.tick(term) == Rescued(failed=1, retries=1)
    after = read_run(database, run.id)
    assert (after.state, after.reason) == (RunState.FAILED, Reason.WORKER_LOST)


def test_a_run_whose_worker_still_asks_is_not_taken_before_the_deadline_it_set(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    rescuer = a_rescuer(database)
    request_confirmation(database, deadline_seconds=30.0)
    clock.advance(30.0 - A_MOMENT)
    rescuer.tick(term)
    assert read_run(database, run.id).state is RunState.RUNNING
    clock.advance(A_MOMENT)
    assert rescuer.tick(term).failed == 1
    after = read_run(database, run.id)
    assert (after.state, after.continuation_state) == (RunState.FAILED, ContinuationState.NONE)


@pytest.mark.parametrize("leaves", ["deregister", "detach"])
def test_a_worker_that_left_loses_its_runs_at_once_and_a_detached_one_only_by_silence(
    database: Database, clock: MovingClock, term: Term, leaves: str
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    with database.write() as connection:
        if leaves == "deregister":
            workers.deregister(connection, WORKER)
        else:
            workers.detach(connection, [WORKER])
    rescued = a_rescuer(database).tick(term)
    assert rescued.failed == (1 if leaves == "deregister" else 0)
    clock.advance(LOST)
    a_rescuer(database).tick(term)
    assert read_run(database, run.id).reason is Reason.WORKER_LOST


def test_a_worker_heard_again_after_its_run_was_failed_can_write_nothing(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    clock.advance(LOST)
    a_rescuer(database).tick(term)
    with database.write() as connection:
        started = Started(id=run.id, version=run.version, epoch=term.epoch)
        end = moves.RunEnd(run=started, state=RunState.SUCCEEDED)
        assert moves.finish(connection, worker_id=WORKER, ends=[end]) == frozenset()
    assert read_run(database, run.id).state is RunState.FAILED


def test_a_run_that_ends_between_the_read_and_the_write_has_ended_and_is_not_retried(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    started = Started(id=run.id, version=run.version, epoch=term.epoch)
    clock.advance(LOST)

    class LateDatabase(UnreliableDatabase):
        def write(self) -> Any:
            with database.write() as connection:
                end = moves.RunEnd(run=started, state=RunState.SUCCEEDED)
                assert moves.finish(connection, worker_id=WORKER, ends=[end])
            return super().write()

    rescued = a_rescuer(LateDatabase(database)).tick(term)
    assert (rescued.failed, rescued.retries) == (0, 0)
    assert read_run(database, run.id).state is RunState.SUCCEEDED
    assert retry_of(database, run.id) is None


# --- and its retry --------------------------------------------------------------------------------


def test_a_lost_run_is_retried_at_once_for_free_under_its_own_key(
    database: Database, clock: MovingClock, term: Term
) -> None:
    job_id = add_job(database, spec(concurrency_key="k"))
    run_id = create_run(
        database, job_id, arguments={"k": "v"}, priority=4, concurrency_key="v", event_id=77
    ).id
    lose(database, clock, term, run_id, "killed")
    assert a_rescuer(database).tick(term).retries == 1
    retry = retry_of(database, run_id)
    assert retry is not None
    assert (retry.trigger, retry.state) == (Trigger.RETRY, RunState.PENDING)
    assert (retry.retry_of, retry.origin_id, retry.event_id) == (run_id, run_id, 77)
    assert (retry.attempt, retry.retries_used) == (2, 0)
    assert retry.scheduled_for == NOON + timedelta(seconds=LOST)
    assert (retry.arguments, retry.priority, retry.concurrency_key) == ({"k": "v"}, 4, "v")


def test_losses_are_free_only_so_often_then_they_cost_retries_then_it_is_over(
    database: Database, clock: MovingClock, term: Term
) -> None:
    """A job that kills its worker each time must stop doing so."""
    policy = RetryPolicy(max_retries=2, initial_seconds=10, jitter=0)
    run_id = create_run(database, add_job(database, spec(retry=policy))).id
    rescuer, chain = a_rescuer(database), [run_id]
    for number in range(20):
        lose(database, clock, term, chain[-1], f"killed-{number}")
        rescuer.tick(term)
        retry = retry_of(database, chain[-1])
        if retry is None:
            break
        chain.append(retry.id)
    made = [read_run(database, each) for each in chain]
    assert [run.attempt for run in made] == [1, 2, 3, 4, 5, 6]
    assert [run.retries_used for run in made] == [0, 0, 0, 0, 1, 2]
    assert {run.origin_id for run in made[1:]} == {run_id}
    waits = [(run.scheduled_for - run.created_at).total_seconds() for run in made]
    assert waits == [0, 0, 0, 0, 10, 20]


@pytest.mark.parametrize("fault", ["lost reply", "crash before commit"])
def test_the_end_and_its_retry_are_one_transaction_however_it_was_interrupted(
    database: Database, clock: MovingClock, term: Term, fault: str
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    clock.advance(LOST)
    unreliable = UnreliableDatabase(database)
    unreliable.replies_to_lose = int(fault == "lost reply")
    unreliable.crash_before_commit = fault != "lost reply"
    rescuer = a_rescuer(unreliable)
    with pytest.raises(Unreachable):
        rescuer.tick(term)
    was_done = fault == "lost reply"
    assert (read_run(database, run.id).state is RunState.FAILED) == was_done
    assert (retry_of(database, run.id) is not None) == was_done
    assert rescuer.tick(term).retries == (0 if was_done else 1)
    assert read_run(database, run.id).state is RunState.FAILED
    assert retry_of(database, run.id) is not None


def test_a_lost_run_of_a_removed_job_is_not_retried(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    with database.write() as connection:
        job = jobs.get_by_name(connection, "hello")
        assert job is not None
        jobs.remove(connection, job=job)
    clock.advance(LOST)
    rescuer = a_rescuer(database)
    rescuer.tick(term)
    rescuer.tick(term)
    retry = retry_of(database, run.id)
    assert retry is None or retry.reason is Reason.JOB_DELETED


# --- removed jobs ---------------------------------------------------------------------------------


def test_waiting_runs_of_a_removed_job_are_canceled_and_assigned_ones_go_on(
    database: Database, clock: MovingClock, term: Term
) -> None:
    states = [RunState.PENDING, RunState.ORPHANED, RunState.ASSIGNED, RunState.RUNNING]
    made = {state: run_in_state(database, state, term).id for state in states}
    other = create_run(database, add_job(database, spec("other"))).id
    with database.write() as connection:
        job = jobs.get_by_name(connection, "hello")
        assert job is not None
        jobs.remove(connection, job=job)
    assert a_rescuer(database).tick(term) == Rescued(canceled=2)
    for state in states[:2]:
        run = read_run(database, made[state])
        assert (run.state, run.reason) == (RunState.CANCELED, Reason.JOB_DELETED)
    assert [read_run(database, made[state]).state for state in states[2:]] == states[2:]
    assert read_run(database, other).state is RunState.PENDING
    assert a_rescuer(database).tick(term) == Rescued()


# --- a deposed leader --------------------------------------------------------------------------------


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
    strict = replace(SETTINGS, max_orphans=1)
    assert a_rescuer(database, strict).tick(term) == Rescued()
    assert read_run(database, running.id).state is RunState.RUNNING
    assert read_run(database, assigned.id).state is RunState.ASSIGNED
    assert read_run(database, at_limit.id).state is RunState.ORPHANED
    assert retry_of(database, running.id) is None
    assert the_worker(database, "heard").state is WorkerState.DETACHED
    assert the_worker(database).state is WorkerState.DETACHED


# --- the clock ------------------------------------------------------------------------------------


def test_a_clock_that_steps_back_takes_nothing_from_a_worker(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    assigned = run_in_state(database, RunState.ASSIGNED, term)
    clock.step(-3600)
    assert a_rescuer(database).tick(term) == Rescued()
    heartbeat(database)
    clock.advance(TTL - A_MOMENT)
    assert a_rescuer(database).tick(term) == Rescued()
    assert read_run(database, run.id).state is RunState.RUNNING
    assert read_run(database, assigned.id).state is RunState.ASSIGNED


# --- a clock that was put back --------------------------------------------------------------------


@pytest.mark.parametrize("is_in_doubt", [False, True], ids=["", "that was in doubt"])
def test_a_dead_workers_run_is_failed_in_time_though_the_clock_was_put_back(
    database: Database, clock: MovingClock, term: Term, is_in_doubt: bool
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    if is_in_doubt:
        request_confirmation(database)
    clock.step(-HOUR)
    rescuer = a_rescuer(database)
    assert rescuer.tick(term) == Rescued()
    clock.advance(LOST - A_MOMENT)
    rescuer.tick(term)
    assert read_run(database, run.id).state is RunState.RUNNING
    clock.advance(A_MOMENT)
    assert rescuer.tick(term).failed == 1


def test_what_a_dead_worker_had_not_started_is_orphaned_in_time_though_the_clock_was_put_back(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.ASSIGNED, term)
    clock.step(-HOUR)
    rescuer = a_rescuer(database)
    rescuer.tick(term)
    clock.advance(TTL - A_MOMENT)
    assert rescuer.tick(term) == Rescued()
    assert read_run(database, run.id).state is RunState.ASSIGNED
    clock.advance(A_MOMENT)
    assert rescuer.tick(term) == Rescued(detached=1, orphaned=1)


def test_a_live_worker_is_not_affected_by_a_clock_that_was_put_back(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    clock.step(-HOUR)
    rescuer = a_rescuer(database)
    for _ in range(10):
        rescuer.tick(term)
        clock.advance(TTL / 2)
        heartbeat(database)
    after = read_run(database, run.id)
    assert (after.state, after.version) == (RunState.RUNNING, run.version)
    assert the_worker(database).state is WorkerState.ATTACHED


def test_a_deposed_leader_resets_no_heartbeat(
    database: Database, clock: MovingClock, term: Term
) -> None:
    depose_and_take(database)
    clock.step(-HOUR)
    before = the_worker(database)
    a_rescuer(database).tick(term)
    assert the_worker(database) == before
