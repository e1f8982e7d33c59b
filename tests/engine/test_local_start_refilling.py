"""While runs wait and no slot is free, what ends is replaced in the transaction that stores its end."""

import pytest

from support.dialects import only_on_postgresql
from support.factories import add_job, add_worker, create_run, depose_and_take, spec
from support.leader_and_worker import LeaderAndWorker
from support.rescuing import heartbeat
from support.statement_recorder import recorded
from support.threads import in_background
from tsuzuki.engine.local_start import NOT_REFILLED, RECONCILE_SECONDS, Refilled
from tsuzuki.engine.worker.step import WorkerStep
from tsuzuki.model.errors import Unreachable
from tsuzuki.model.states import RunState

RUNNING, SUCCEEDED, PENDING = RunState.RUNNING, RunState.SUCCEEDED, RunState.PENDING


def fill(pair: LeaderAndWorker, *, waiting: int) -> list[int]:
    """Every slot is taken, and so many runs wait. The ids of all."""
    ids = [pair.submit().id for _ in range(pair.worker.free + waiting)]
    while pair.lead():
        pass
    pair.adopt()
    return ids


def end_first(pair: LeaderAndWorker) -> WorkerStep:
    pair.executor.started[0].succeed()
    return pair.worker.tick(poll=False)


def states(pair: LeaderAndWorker, ids: list[int]) -> list[RunState]:
    return [pair.state(run_id) for run_id in ids]


def test_an_end_and_the_next_start_are_one_transaction(pair: LeaderAndWorker) -> None:
    ids = fill(pair, waiting=2)
    step = end_first(pair)
    assert step.refilled == Refilled(assigned=1, is_full=True)
    assert states(pair, ids) == [SUCCEEDED, RUNNING, RUNNING, RUNNING, PENDING]
    assert pair.executed() == ids[:4]
    assert [task.run.id for task in step.started] == [ids[3]]


def test_it_takes_four_statements(pair: LeaderAndWorker) -> None:
    fill(pair, waiting=2)
    with recorded(pair.database) as statements:
        assert end_first(pair).refilled.assigned == 1
    assert len(statements) == 4, statements


def test_the_last_run_that_waits_leaves_the_next_round_to_the_leader(pair: LeaderAndWorker) -> None:
    ids = fill(pair, waiting=1)
    pair.executor.started[1].succeed()
    step = end_first(pair)
    assert step.refilled == Refilled(assigned=1, is_full=False)
    assert states(pair, ids) == [SUCCEEDED, SUCCEEDED, RUNNING, RUNNING]
    pair.executor.started[2].succeed()
    assert pair.worker.tick(poll=False).refilled == NOT_REFILLED


def test_without_a_backlog_an_end_is_stored_alone(pair: LeaderAndWorker) -> None:
    fill(pair, waiting=0)
    with recorded(pair.database) as statements:
        assert end_first(pair).refilled == NOT_REFILLED
    assert len(statements) == 1, statements


def test_what_another_worker_has_room_for_is_assigned_to_it(pair: LeaderAndWorker) -> None:
    ids = fill(pair, waiting=3)
    add_worker(pair.database, "other", capacity=100)
    step = end_first(pair)
    assert step.refilled.assigned == 3
    assert not step.refilled.is_full
    assert {pair.state(run_id) for run_id in ids[3:]} <= {RunState.ASSIGNED, RUNNING}
    assert RunState.ASSIGNED in states(pair, ids[3:])


def test_behind_a_blocked_run_the_rest_is_left_to_the_leader(pair: LeaderAndWorker) -> None:
    """To find what can run behind a long blocked backlog may take long."""
    disabled = add_job(pair.database, spec("off", enabled=False))
    ids = fill(pair, waiting=0)
    create_run(pair.database, disabled, priority=9)
    waiting = pair.submit().id
    pair.lead()
    step = end_first(pair)
    assert step.refilled == Refilled(assigned=0, is_full=False)
    assert (pair.state(ids[0]), pair.state(waiting)) == (SUCCEEDED, PENDING)
    assert (pair.lead(), pair.state(waiting)) == (1, RUNNING)


def test_a_leader_whose_term_is_over_assigns_nothing_and_the_end_is_stored(
    pair: LeaderAndWorker,
) -> None:
    ids = fill(pair, waiting=1)
    depose_and_take(pair.database)
    step = end_first(pair)
    assert step.refilled == Refilled(assigned=0, is_full=False)
    assert states(pair, ids) == [SUCCEEDED, RUNNING, RUNNING, PENDING]


def test_a_worker_that_stops_accepting_gets_nothing_more(pair: LeaderAndWorker) -> None:
    ids = fill(pair, waiting=1)
    pair.worker.stop_accepting()
    assert end_first(pair).refilled == NOT_REFILLED
    assert states(pair, ids) == [SUCCEEDED, RUNNING, RUNNING, PENDING]


def test_while_a_round_is_under_way_the_end_does_not_wait_for_it(pair: LeaderAndWorker) -> None:
    ids = fill(pair, waiting=1)
    with pair.assigner._lock:
        assert end_first(pair).refilled == NOT_REFILLED
    assert states(pair, ids) == [SUCCEEDED, RUNNING, RUNNING, PENDING]


def test_a_round_does_not_wait_for_an_end_that_is_stored_alone(pair: LeaderAndWorker) -> None:
    fill(pair, waiting=0)
    assigned: list[int] = []
    pair.faulty_database.before_commit.append(
        lambda: assigned.append(in_background(pair.lead).result(30))
    )
    assert end_first(pair).refilled == NOT_REFILLED
    assert assigned == [0]


@only_on_postgresql
def test_a_round_does_not_wait_for_a_handler_that_holds_its_run(pair: LeaderAndWorker) -> None:
    """A handler that was given up after its timeout may go on in its transaction for long."""
    ids = fill(pair, waiting=1)
    first = pair.executor.started[0]
    with pair.worker.run_io.transaction(first.task):
        assert in_background(lambda: end_first(pair)).result(30).ended == []
        add_worker(pair.database, "other")
        assert in_background(pair.lead).result(30) == 1
        in_background(pair.worker.stop_accepting).result(30)
    assert states(pair, ids) == [RUNNING, RUNNING, RUNNING, RunState.ASSIGNED]
    pair.worker.tick(poll=False)
    assert pair.state(ids[0]) is SUCCEEDED


def test_a_lost_reply_is_reconciled_and_nothing_executes_twice(pair: LeaderAndWorker) -> None:
    ids = fill(pair, waiting=1)
    pair.faulty_database.replies_to_lose = 1
    with pytest.raises(Unreachable):
        end_first(pair)
    assert pair.executed() == ids[:3]
    pair.worker.tick(poll=False)
    assert states(pair, ids) == [SUCCEEDED, RUNNING, RUNNING, RUNNING]
    assert pair.executed() == ids


def test_a_commit_that_failed_has_ended_and_started_nothing(pair: LeaderAndWorker) -> None:
    ids = fill(pair, waiting=1)
    pair.faulty_database.crash_before_commit = True
    with pytest.raises(Unreachable):
        end_first(pair)
    assert states(pair, ids) == [RUNNING, RUNNING, RUNNING, PENDING]
    pair.worker.tick(poll=False)
    assert states(pair, ids) == [SUCCEEDED, RUNNING, RUNNING, PENDING]


def test_after_an_error_ends_are_stored_alone_for_a_while(pair: LeaderAndWorker) -> None:
    """What is assigned may be the cause, and must not keep ends from being stored."""
    fill(pair, waiting=3)
    pair.faulty_database.crash_before_commit = True
    with pytest.raises(Unreachable):
        end_first(pair)
    pair.executor.started[1].succeed()
    step = pair.worker.tick(poll=False)
    assert (len(step.ended), step.refilled) == (2, NOT_REFILLED)
    pair.lead()
    pair.adopt()
    pair.clock.advance(RECONCILE_SECONDS)
    heartbeat(pair.database)
    pair.executor.started[2].succeed()
    assert pair.worker.tick(poll=False).refilled.assigned == 1
