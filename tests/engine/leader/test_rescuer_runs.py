"""Runs whose worker is gone: orphaned or failed when it is certain, and retried once."""

from dataclasses import replace
from datetime import timedelta
from itertools import count

import pytest

from support.factories import (
    WORKER,
    add_job,
    add_worker,
    create_run,
    read_run,
    ref,
    run_in_state,
    spec,
)
from support.moving_clock import NOON, MovingClock
from support.rescuing import (
    A_MOMENT,
    LOST,
    SETTINGS,
    TTL,
    SecondWrite,
    a_rescuer,
    heartbeat,
    lose,
    request_confirmation,
    retry_of,
    start_on,
)
from tsuzuki.engine.leader.assigner import Assigner
from tsuzuki.engine.leader.rescuer import Rescued
from tsuzuki.model.errors import Unreachable
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.retry import RetryPolicy
from tsuzuki.model.run import StartedRun
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import ContinuationState, Reason, RunState, Trigger
from tsuzuki.store import jobs, workers
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import moves, runs
from tsuzuki.store.sql.database import Database

pytestmark = pytest.mark.usefixtures("worker", "history_is_valid")


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


def test_a_run_that_is_moved_between_the_read_and_the_write_is_not_orphaned(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.ASSIGNED, term)
    clock.advance(TTL)

    def cancel() -> None:
        with database.write() as connection:
            assert moves.cancel(connection, operator="me", runs=[run])

    assert a_rescuer(SecondWrite(database, cancel)).tick(term).orphaned == 0
    assert read_run(database, run.id).state is RunState.CANCELED


def test_a_run_orphaned_too_often_fails_and_its_retry_counts(
    database: Database, clock: MovingClock, term: Term
) -> None:
    job_id = add_job(database, spec(retry=RetryPolicy(max_retries=1, jitter=0)))
    run_id = create_run(database, job_id).id
    with database.write() as connection:
        workers.deregister(connection, WORKER)
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
        started = StartedRun(id=run.id, version=run.version, epoch=term.epoch)
        end = moves.RunEnd(run=started, state=RunState.SUCCEEDED)
        assert moves.finish(connection, worker_id=WORKER, ends=[end]) == frozenset()
    assert read_run(database, run.id).state is RunState.FAILED


def test_a_run_that_ends_between_the_read_and_the_write_has_ended_and_is_not_retried(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    started = StartedRun(id=run.id, version=run.version, epoch=term.epoch)
    clock.advance(LOST)

    def finish() -> None:
        with database.write() as connection:
            end = moves.RunEnd(run=started, state=RunState.SUCCEEDED)
            assert moves.finish(connection, worker_id=WORKER, ends=[end])

    rescued = a_rescuer(SecondWrite(database, finish)).tick(term)
    assert (rescued.failed, rescued.retries) == (0, 0)
    assert read_run(database, run.id).state is RunState.SUCCEEDED
    assert retry_of(database, run.id) is None


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


def test_workers_that_are_lost_together_cost_their_runs_nothing(
    database: Database, clock: MovingClock, term: Term
) -> None:
    """A cut of all workers at once: repeated for free, after a growing wait, however often."""
    job_id = add_job(database, spec(concurrency_policy=ConcurrencyPolicy.ALLOW))
    chain = [create_run(database, job_id).id]
    rescuer, waits = a_rescuer(database), []
    for number in range(SETTINGS.max_orphans + 3):
        add_worker(database, f"beside-{number}")
        lose(database, clock, term, chain[-1], f"cut-{number}")
        assert rescuer.tick(term).retries == 1
        retry = retry_of(database, chain[-1])
        assert retry is not None
        assert (retry.retries_used, retry.losses, retry.losses_free) == (0, 0, number + 1)
        waits.append((retry.scheduled_for - clock.now()).total_seconds())
        chain.append(retry.id)
        clock.advance(max(waits[-1], LOST))
        rescuer.tick(term)
    assert waits[0] == 0 < waits[1] < waits[3] < waits[5]


def test_runs_that_were_not_started_are_orphaned_for_free_when_workers_are_lost_together(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run_id = create_run(database, add_job(database)).id
    rescuer, assigner = a_rescuer(database), Assigner(database=database)
    for number in range(SETTINGS.max_orphans + 1):
        add_worker(database, f"a-{number}", capacity=1)
        add_worker(database, f"b-{number}", capacity=1)
        assert assigner.tick(term) == 1
        clock.advance(TTL)
        assert rescuer.tick(term).orphaned == 1
        clock.advance(2 * LOST)
        assert rescuer.tick(term).failed == 0
    stored = read_run(database, run_id)
    assert (stored.state, stored.orphan_count, stored.orphans_free) == (RunState.ORPHANED, 4, 4)


def test_runs_that_kill_their_workers_at_once_end_all_the_same(
    database: Database, clock: MovingClock, term: Term
) -> None:
    """Their growing waits are random: soon they are lost at different times, and that counts."""
    job_id = add_job(database, spec(concurrency_policy=ConcurrencyPolicy.ALLOW))
    rescuer = a_rescuer(database)
    live = {create_run(database, job_id).id for _ in range(2)}
    worker_ids = (f"killed-{number}" for number in count())
    for _ in range(60):
        due = min(read_run(database, run_id).scheduled_for for run_id in live)
        clock.advance(max((due - clock.now()).total_seconds(), 0.0))
        due_now = [r for r in live if read_run(database, r).scheduled_for <= clock.now()]
        for run_id in due_now:
            start_on(database, term, run_id, next(worker_ids))
        clock.advance(LOST)
        rescuer.tick(term)
        retries = [retry_of(database, run_id) for run_id in due_now]
        live = live - {*due_now} | {retry.id for retry in retries if retry}
        if not live:
            break
    assert not live
    with database.read() as connection:
        found = runs.find(connection, RunFilter(limit=200))
    assert max(run.losses for run in found) == SETTINGS.max_orphans


@pytest.mark.parametrize("fault", ["lost reply", "crash before commit"])
def test_the_end_and_its_retry_are_one_transaction_however_it_was_interrupted(
    database: Database, clock: MovingClock, term: Term, fault: str
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    clock.advance(LOST)

    def set_fault() -> None:
        unreliable.replies_to_lose = int(fault == "lost reply")
        unreliable.crash_before_commit = fault != "lost reply"

    unreliable = SecondWrite(database, set_fault)
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
