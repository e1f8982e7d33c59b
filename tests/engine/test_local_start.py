"""Runs that a leader assigns to the worker of its own process start in the same transaction, and execute once."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import TypeVar

import pytest

from support.factories import (
    WORKER,
    add_worker,
    depose_and_take,
    new_run,
    read_run,
)
from support.leader_and_worker import LeaderAndWorker
from support.statement_recorder import recorded
from support.threads import in_background
from tsuzuki.engine.local_start import RECONCILE_SECONDS
from tsuzuki.model.errors import Unreachable
from tsuzuki.model.run import RunRef
from tsuzuki.model.states import RunState
from tsuzuki.store import events, jobs, workers
from tsuzuki.store.runs import moves, runs

T = TypeVar("T")


def meanwhile(pair: LeaderAndWorker, act: Callable[[], T]) -> "list[Future[T]]":
    """`act` between the leader's next commit and its reply, for which it has to wait."""
    acts: list[Future[T]] = []

    def start() -> None:
        acts.append(in_background(act))
        with pytest.raises(TimeoutError):
            acts[0].result(0.2)

    pair.faulty_database.after_commit.append(start)
    return acts


def test_one_transaction_assigns_and_starts(pair: LeaderAndWorker) -> None:
    run_id = pair.submit().id
    assert pair.lead() == 1
    run = read_run(pair.database, run_id)
    assert (run.state, run.version, run.leader_epoch) == (RunState.RUNNING, 3, pair.term.epoch)
    # Starting a handler may take its time, and must not hold up the leader's thread.
    assert pair.executed() == []
    assert pair.woken == 1
    assert (pair.worker.running, pair.worker.free) == (1, 2)
    pair.adopt()
    task = pair.executor.last.task
    assert (task.run.id, task.started.version, task.spec.name) == (run_id, 3, "free")
    assert pair.executed() == [run_id]
    assert pair.adopt() == []
    pair.executor.last.succeed()
    pair.worker.tick(poll=False)
    assert pair.state(run_id) is RunState.SUCCEEDED
    assert pair.worker.running == 0


def test_a_round_that_assigns_and_starts_is_three_statements(pair: LeaderAndWorker) -> None:
    pair.submit()
    pair.lead()  # which also learns about the job
    pair.submit()
    with recorded(pair.database) as statements:
        assert pair.lead() == 1
    assert len(statements) == 3, statements


def test_the_first_run_needs_two_statements(pair: LeaderAndWorker) -> None:
    pair.submit()
    pair.lead()  # which also learns about the job
    run_id = pair.submit().id
    with recorded(pair.database) as statements:
        assert pair.assigner.assign_first(pair.term) == 1
    assert len(statements) == 2, statements
    assert pair.state(run_id) is RunState.RUNNING
    pair.adopt()
    assert run_id in pair.executed()


def test_the_first_run_is_the_most_urgent_and_the_others_are_left(pair: LeaderAndWorker) -> None:
    pair.learn_job()
    later = pair.submit().id
    with pair.database.write() as connection:
        urgent = new_run(pair.database, pair.job_id, priority=5)
        (first,) = runs.create(connection, [urgent])
    assert pair.assigner.assign_first(pair.term) == 1
    assert [pair.state(first or 0), pair.state(later)] == [RunState.RUNNING, RunState.PENDING]
    assert pair.lead() == 1


def test_a_first_run_whose_job_is_not_known_is_left_to_a_full_round(pair: LeaderAndWorker) -> None:
    run_id = pair.submit().id
    assert pair.assigner.assign_first(pair.term) == 0
    assert (pair.lead(), pair.state(run_id)) == (1, RunState.RUNNING)


def test_a_first_run_that_an_event_caused_has_its_payload(pair: LeaderAndWorker) -> None:
    pair.learn_job()
    with pair.database.write() as connection:
        event, _ = events.emit(connection, event_type="x", payload={"n": 1})
        caused = new_run(pair.database, pair.job_id, event_id=event.id)
        runs.create(connection, [caused])
    assert pair.assigner.assign_first(pair.term) == 1
    pair.adopt()
    assert pair.executor.last.task.event == {"n": 1}


def test_a_first_run_that_another_worker_gets_is_only_assigned(pair: LeaderAndWorker) -> None:
    pair.learn_job()
    first = pair.submit().id
    pair.lead()
    add_worker(pair.database, "other", capacity=100)
    run_id = pair.submit().id
    assert pair.assigner.assign_first(pair.term) == 1
    assigned = read_run(pair.database, run_id)
    assert (assigned.state, assigned.assigned_worker_id) == (RunState.ASSIGNED, "other")
    assert pair.state(first) is RunState.RUNNING


def test_a_first_run_that_cannot_be_assigned_is_left(pair: LeaderAndWorker) -> None:
    assert pair.assigner.assign_first(pair.term) == 0
    pair.learn_job()
    with pair.database.write() as connection:
        job = jobs.get(connection, pair.job_id)
        assert job is not None
        jobs.change(connection, job=job, spec=replace(job.spec, enabled=False))
    run_id = pair.submit().id
    pair.lead()  # which learns of the change
    assert pair.assigner.assign_first(pair.term) == 0
    assert pair.state(run_id) is RunState.PENDING


def test_a_leader_whose_term_is_over_assigns_nothing(pair: LeaderAndWorker) -> None:
    pair.learn_job()
    run_id = pair.submit().id
    depose_and_take(pair.database)
    assert pair.assigner.assign_first(pair.term) == 0
    assert (pair.state(run_id), pair.executed()) == (RunState.PENDING, [])


def test_runs_of_other_workers_are_only_assigned(pair: LeaderAndWorker) -> None:
    add_worker(pair.database, "other", capacity=3)
    ids = [pair.submit().id for _ in range(4)]
    assert pair.lead() == 4
    states = sorted(pair.state(run_id) for run_id in ids)
    assert states == [RunState.ASSIGNED] * 2 + [RunState.RUNNING] * 2
    pair.adopt()
    assert len(pair.executed()) == 2


def test_after_a_lost_reply_the_run_is_reconciled_and_executed_once(
    pair: LeaderAndWorker,
) -> None:
    run_id = pair.submit().id
    pair.faulty_database.replies_to_lose = 1
    with pytest.raises(Unreachable):
        pair.lead()
    assert pair.state(run_id) is RunState.RUNNING
    assert pair.executed() == pair.adopt() == []
    assert pair.woken == 1, "nothing else would wake it"
    assert [task.run.id for task in pair.worker.tick(poll=False).started] == [run_id]
    pair.worker.tick()
    assert pair.executed() == [run_id]


def test_adopting_runs_does_not_count_as_a_check_of_ownership(pair: LeaderAndWorker) -> None:
    """Else a stream of short runs would keep a canceled one going."""
    canceled = pair.submit()
    pair.lead()
    assert [task.run.id for task in pair.worker.tick().started] == [canceled.id]
    with pair.database.write() as connection:
        moves.cancel(connection, operator="ada", runs=[RunRef(canceled.id, 3)])
    pair.submit()
    pair.lead()
    adopting = pair.worker.tick(poll=True)
    assert (adopting.polled, adopting.lost, len(adopting.started)) == (False, [], 1)
    polling = pair.worker.tick(poll=True)
    assert (polling.polled, [task.run.id for task in polling.lost]) == (True, [canceled.id])


def test_what_was_not_committed_is_assigned_again(pair: LeaderAndWorker) -> None:
    run_id = pair.submit().id
    pair.faulty_database.crash_before_commit = True
    with pytest.raises(Unreachable):
        pair.lead()
    assert pair.state(run_id) is RunState.PENDING
    assert pair.worker.tick().started == []
    assert pair.lead() == 1
    pair.adopt()
    assert pair.executed() == [run_id]


def test_reconciling_does_not_take_a_queued_run_for_lost(pair: LeaderAndWorker) -> None:
    pair.faulty_database.replies_to_lose = 1
    first = pair.submit().id
    with pytest.raises(Unreachable):
        pair.lead()
    second = pair.submit().id
    assert pair.lead() == 1
    assert [task.run.id for task in pair.worker.tick().started] == [second]
    assert [task.run.id for task in pair.worker.tick().started] == [first]
    pair.worker.tick()
    assert sorted(pair.executed()) == [first, second]


def test_reconciling_waits_for_a_local_start_under_way(pair: LeaderAndWorker) -> None:
    """A race: in the database it runs already, and it is not in the queue yet."""
    pair.worker.local_start.note_unknown_commit()
    run_id = pair.submit().id
    ticks = meanwhile(pair, pair.worker.tick)
    assert pair.lead() == 1
    assert [task.run.id for task in ticks[0].result(30).started] == [run_id]
    pair.worker.tick()
    assert pair.executed() == [run_id]


def test_a_commit_that_came_late_is_found_by_a_later_poll(pair: LeaderAndWorker) -> None:
    """The connection broke, and the database carried out afterwards what it had been sent."""
    run = pair.submit()
    pair.faulty_database.crash_before_commit = True
    with pytest.raises(Unreachable):
        pair.lead()
    assert pair.worker.tick().started == []
    with pair.database.write() as connection:
        assignment = moves.Assignment(run=run, worker_id=WORKER)
        moves.assign(connection, term=pair.term, assignments=[assignment])
        moves.start(connection, worker_id=WORKER, runs=[RunRef(id=run.id, version=2)])
    pair.clock.advance(RECONCILE_SECONDS / 2)
    assert [task.run.id for task in pair.worker.tick().started] == [run.id]


def test_a_worker_that_accepts_nothing_any_more_starts_nothing(pair: LeaderAndWorker) -> None:
    run_id = pair.submit().id
    pair.worker.stop_accepting()
    assert pair.lead() == 1
    assert pair.state(run_id) is RunState.ASSIGNED
    pair.worker.tick()
    assert (pair.state(run_id), pair.executed()) == (RunState.ORPHANED, [])


def test_draining_counts_a_local_start_under_way(pair: LeaderAndWorker) -> None:
    run_id = pair.submit().id

    def stop() -> int:
        pair.worker.drain()
        return pair.worker.running

    stops = meanwhile(pair, stop)
    assert pair.lead() == 1
    assert stops[0].result(30) == 1
    pair.adopt()
    assert pair.executed() == [run_id]


def test_a_worker_that_was_detached_meanwhile_gets_nothing(pair: LeaderAndWorker) -> None:
    run_id = pair.submit().id

    with pair.database.read() as connection:
        chosen = pair.assigner._choose(connection)
    with pair.database.write() as connection:
        workers.detach(connection, [WORKER])
    local = pair.worker.local_start
    with local.starting() as started, pair.faulty_database.write() as connection:
        assert not pair.assigner._assign(connection, started, pair.term, chosen)
    assert (pair.state(run_id), pair.adopt()) == (RunState.PENDING, [])
