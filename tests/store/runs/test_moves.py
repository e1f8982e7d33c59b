"""What makes a move take, and what makes it lose."""

from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.exc import IntegrityError

from support.factories import (
    WORKER,
    add_job,
    add_worker,
    create_run,
    depose_and_take,
    new_run,
    read_run,
    ref,
    run_in_state,
    take_lead,
)
from support.move_functions import LONG_AGO, MOVERS, states_taken
from support.moving_clock import MovingClock
from support.run_counts import count_by_state
from tsuzuki.model.run import RunRef, StartedRun
from tsuzuki.model.states import FINAL_STATES, ContinuationState, Reason, RunState
from tsuzuki.model.worker import WorkerState
from tsuzuki.store import workers
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import moves, runs
from tsuzuki.store.runs.moves import Assignment, RunEnd
from tsuzuki.store.sql.database import Database

OTHER = "host-2-bbbb"


def started(run: RunRef, term: Term) -> StartedRun:
    return StartedRun(id=run.id, version=run.version, epoch=term.epoch)


def finish(database: Database, ending: RunEnd, worker_id: str = WORKER) -> frozenset[int]:
    with database.write() as connection:
        return moves.finish(connection, worker_id=worker_id, ends=[ending])


def start(database: Database, run: RunRef, worker_id: str = WORKER) -> StartedRun | None:
    with database.write() as connection:
        started = moves.start(connection, worker_id=worker_id, runs=[run])
        return started[run.id].started if started else None


def assign(database: Database, term: Term, run: RunRef, worker_id: str = WORKER) -> frozenset[int]:
    with database.write() as connection:
        chosen = [Assignment(run=run, worker_id=worker_id)]
        return moves.assign(connection, term=term, assignments=chosen)


def bring_to(database: Database, worker_id: str, state: WorkerState) -> None:
    with database.write() as connection:
        match state:
            case WorkerState.DRAINING:
                workers.drain(connection, [worker_id])
            case WorkerState.DETACHED:
                workers.detach(connection, [worker_id])
            case WorkerState.GONE:
                workers.deregister(connection, worker_id)
            case WorkerState.ATTACHED:
                pass


# --- who loses ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MOVERS)
def test_a_mover_with_another_version_loses(
    database: Database, clock: MovingClock, name: str
) -> None:
    term = take_lead(database)
    add_worker(database)
    found = [run_in_state(database, state, term) for state in states_taken(name)]
    clock.advance(LONG_AGO)
    for run in found:
        before = read_run(database, run.id)
        for wrong in (run.version - 1, run.version + 1, 1000):
            with database.write() as connection:
                assert not MOVERS[name](connection, term, RunRef(id=run.id, version=wrong))
        assert read_run(database, run.id) == before


@pytest.mark.parametrize("name", MOVERS)
def test_a_run_that_does_not_exist_is_not_moved(database: Database, name: str) -> None:
    term = take_lead(database)
    with database.write() as connection:
        assert not MOVERS[name](connection, term, RunRef(id=4711, version=1))


def test_a_worker_moves_only_what_is_assigned_to_it(database: Database) -> None:
    term = take_lead(database)
    add_worker(database)
    add_worker(database, OTHER)
    assigned = run_in_state(database, RunState.ASSIGNED, term)
    running = run_in_state(database, RunState.RUNNING, term)
    assert start(database, assigned, OTHER) is None
    with database.write() as connection:
        assert not moves.hand_back(connection, worker_id=OTHER, runs=[assigned])
    ending = RunEnd(run=started(running, term), state=RunState.SUCCEEDED)
    assert not finish(database, ending, OTHER)
    assert ref(database, assigned.id) == assigned
    assert ref(database, running.id) == running


@pytest.mark.parametrize("difference", [-1, 1])
def test_an_end_under_another_epoch_than_the_start_is_lost(
    database: Database, difference: int
) -> None:
    term = take_lead(database)
    add_worker(database)
    run = run_in_state(database, RunState.RUNNING, term)
    wrong = StartedRun(id=run.id, version=run.version, epoch=term.epoch + difference)
    assert not finish(database, RunEnd(run=wrong, state=RunState.SUCCEEDED))
    assert finish(database, RunEnd(run=started(run, term), state=RunState.SUCCEEDED)) == {run.id}


def test_a_worker_ends_what_it_started_under_an_earlier_leader(database: Database) -> None:
    term = take_lead(database)
    add_worker(database)
    run = run_in_state(database, RunState.RUNNING, term)
    depose_and_take(database)
    assert finish(database, RunEnd(run=started(run, term), state=RunState.SUCCEEDED)) == {run.id}


def test_a_start_names_the_epoch_of_its_own_moment(database: Database) -> None:
    term = take_lead(database)
    add_worker(database)
    run = run_in_state(database, RunState.ASSIGNED, term)
    later = depose_and_take(database)
    ours = start(database, run)
    assert ours == StartedRun(id=run.id, version=run.version + 1, epoch=later.epoch)
    assert read_run(database, run.id).leader_epoch == later.epoch


@pytest.mark.parametrize("state", sorted(set(WorkerState) - {WorkerState.ATTACHED}))
def test_runs_are_assigned_only_to_an_attached_worker(
    database: Database, state: WorkerState
) -> None:
    term = take_lead(database)
    bring_to(database, add_worker(database), state)
    run = create_run(database, add_job(database))
    assert not assign(database, term, run)
    assert not assign(database, term, run, "unknown")
    assert assign(database, term, run, add_worker(database, OTHER)) == {run.id}


@pytest.mark.parametrize("state", WorkerState)
def test_a_detached_worker_starts_nothing(database: Database, state: WorkerState) -> None:
    term = take_lead(database)
    add_worker(database)
    run = run_in_state(database, RunState.ASSIGNED, term)
    bring_to(database, WORKER, state)
    may_begin = state in {WorkerState.ATTACHED, WorkerState.DRAINING}
    assert (start(database, run) is not None) is may_begin


# --- batches --------------------------------------------------------------------------------------


def test_a_batch_answers_exactly_the_rows_that_took(database: Database) -> None:
    term = take_lead(database)
    add_worker(database)
    job_id = add_job(database)
    right = [create_run(database, job_id) for _ in range(3)]
    stale = RunRef(id=create_run(database, job_id).id, version=7)
    finished = run_in_state(database, RunState.SUCCEEDED, term)
    missing = RunRef(id=4711, version=1)
    badly_placed = create_run(database, job_id)
    chosen = [
        Assignment(run=run, worker_id=WORKER)
        for run in (missing, right[2], stale, right[0], finished, right[1])
    ]
    chosen.append(Assignment(run=badly_placed, worker_id="unknown"))
    with database.write() as connection:
        took = moves.assign(connection, term=term, assignments=chosen)
    assert took == {run.id for run in right}
    assert read_run(database, stale.id).state is RunState.PENDING
    assert ref(database, finished.id) == finished
    assert ref(database, badly_placed.id) == badly_placed


def test_a_run_named_twice_in_a_batch_moves_once(database: Database) -> None:
    term = take_lead(database)
    both = [add_worker(database), add_worker(database, OTHER)]
    run = create_run(database, add_job(database))
    with database.write() as connection:
        chosen = [Assignment(run=run, worker_id=worker_id) for worker_id in both]
        assert moves.assign(connection, term=term, assignments=chosen) == {run.id}
    assert read_run(database, run.id).version == 2
    with database.read() as connection:
        assert len(runs.history(connection, run.id)) == 1


def test_a_thousand_runs_make_their_way_in_three_statements(database: Database) -> None:
    term = take_lead(database)
    add_worker(database)
    job_id = add_job(database)
    with database.write() as connection:
        created = runs.create(connection, [new_run(database, job_id) for _ in range(1000)])
    with database.write() as connection:
        chosen = [Assignment(run=RunRef(id=i or 0, version=1), worker_id=WORKER) for i in created]
        assert len(moves.assign(connection, term=term, assignments=chosen)) == 1000
        refs = [RunRef(id=i or 0, version=2) for i in created]
        ours = moves.start(connection, worker_id=WORKER, runs=refs)
        ends = [
            RunEnd(run=run.started, state=RunState.SUCCEEDED, result=run.id)
            for run in ours.values()
        ]
        assert len(moves.finish(connection, worker_id=WORKER, ends=ends)) == 1000
    with database.read() as connection:
        assert count_by_state(connection)[RunState.SUCCEEDED] == 1000
        for run in runs.get_many(connection, [i for i in created if i])[::250]:
            assert run.result == run.id
            assert [line.version for line in runs.history(connection, run.id)] == [2, 3, 4]


def test_an_empty_batch_asks_the_database_nothing(database: Database) -> None:
    term = take_lead(database)
    asked: list[str] = []

    def note(*call: Any) -> None:
        asked.append(call[2])

    with database.write() as connection:
        event.listen(connection, "before_cursor_execute", note)
        assert moves.assign(connection, term=term, assignments=[]) == frozenset()
        assert moves.start(connection, worker_id=WORKER, runs=[]) == {}
        assert moves.finish(connection, worker_id=WORKER, ends=[]) == frozenset()
        assert moves.hand_back(connection, worker_id=WORKER, runs=[]) == frozenset()
        assert moves.cancel(connection, operator="me", runs=[]) == frozenset()
        assert moves.replace(connection, term=term, runs=[]) == frozenset()
        assert moves.skip(connection, term=term, runs=[], reason=Reason.LATE) == frozenset()
        assert moves.fail_orphaned(connection, term=term, runs=[], max_orphans=1) == frozenset()
        assert (
            moves.fail_lost(connection, term=term, runs=[], silent_after_seconds=1) == frozenset()
        )
        assert (
            moves.orphan(
                connection,
                term=term,
                runs=[],
                reassign_after_seconds=1,
                silent_after_seconds=1,
                lost_alone=(),
            )
            == frozenset()
        )
        assert runs.create(connection, []) == []
    assert asked == []


# --- what a move leaves behind --------------------------------------------------------------------


def test_only_a_second_assignment_counts_as_another_attempt(database: Database) -> None:
    term = take_lead(database)
    add_worker(database)
    add_worker(database, OTHER)
    run = run_in_state(database, RunState.ORPHANED, term)
    before = read_run(database, run.id)
    assert (before.attempt, before.orphan_count, before.reason) == (1, 1, Reason.WORKER_SHUTDOWN)
    assert assign(database, term, run, OTHER) == {run.id}
    after = read_run(database, run.id)
    assert (after.attempt, after.orphan_count, after.reason) == (2, 1, None)
    assert after.assigned_worker_id == OTHER
    assert after.retries_used == before.retries_used


@pytest.mark.parametrize("state", sorted(FINAL_STATES))
def test_an_end_is_stored_as_the_worker_says_it(
    database: Database, clock: MovingClock, state: RunState
) -> None:
    term = take_lead(database)
    add_worker(database)
    run = run_in_state(database, RunState.RUNNING, term)
    clock.advance(5)
    reason = None if state is RunState.SUCCEEDED else Reason.TIMEOUT
    said = RunEnd(
        run=started(run, term), state=state, reason=reason, error="it broke", result={"rows": [1]}
    )
    assert finish(database, said) == {run.id}
    after = read_run(database, run.id)
    assert (after.state, after.reason, after.error) == (state, reason, "it broke")
    assert after.result == {"rows": [1]}
    assert after.finished_at == clock.now()


@pytest.mark.parametrize("state", sorted(set(RunState) - FINAL_STATES))
def test_an_ending_that_is_no_end_is_refused_by_the_database(
    database: Database, state: RunState
) -> None:
    term = take_lead(database)
    add_worker(database)
    run = run_in_state(database, RunState.RUNNING, term)
    with pytest.raises(IntegrityError):
        finish(database, RunEnd(run=started(run, term), state=state))
    assert ref(database, run.id) == run


def test_a_failure_without_a_reason_is_refused_and_takes_its_batch_with_it(
    database: Database,
) -> None:
    term = take_lead(database)
    add_worker(database)
    good, bad = (run_in_state(database, RunState.RUNNING, term) for _ in range(2))
    ends = [
        RunEnd(run=started(good, term), state=RunState.SUCCEEDED),
        RunEnd(run=started(bad, term), state=RunState.FAILED),
    ]
    with pytest.raises(IntegrityError), database.write() as connection:
        moves.finish(connection, worker_id=WORKER, ends=ends)
    assert ref(database, good.id) == good


@pytest.mark.parametrize("name", ["finish", "cancel", "replace"])
def test_an_end_answers_the_question_whether_to_continue(database: Database, name: str) -> None:
    term = take_lead(database)
    add_worker(database)
    run = run_in_state(database, RunState.RUNNING, term)
    with database.write() as connection:
        workers.request_confirmation(connection, worker_id=WORKER, deadline_seconds=10)
        assert MOVERS[name](connection, term, run)
    after = read_run(database, run.id)
    assert after.continuation_state is ContinuationState.NONE
    assert after.continuation_check_deadline_at is None


def test_of_a_cancel_and_an_end_the_first_wins(database: Database) -> None:
    term = take_lead(database)
    add_worker(database)
    canceled, ended = (run_in_state(database, RunState.RUNNING, term) for _ in range(2))
    with database.write() as connection:
        assert moves.cancel(connection, operator="me", runs=[canceled]) == {canceled.id}
    assert not finish(database, RunEnd(run=started(canceled, term), state=RunState.SUCCEEDED))
    assert finish(database, RunEnd(run=started(ended, term), state=RunState.SUCCEEDED))
    with database.write() as connection:
        assert not moves.cancel(connection, operator="me", runs=[ended])
    assert read_run(database, canceled.id).state is RunState.CANCELED
    assert read_run(database, ended.id).state is RunState.SUCCEEDED
