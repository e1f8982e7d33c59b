"""Whether a run is still ours: asked before every write that belongs to it."""

from datetime import timedelta

import pytest

from support.dialects import only_on_postgresql
from support.factories import (
    WORKER,
    add_job,
    add_worker,
    create_run,
    read_run,
    run_in_state,
    take_lead,
)
from support.moving_clock import MovingClock
from support.run_counts import count_by_state, count_live
from support.threads import in_background
from tsuzuki.model.run import RunRef, StartedRun
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import LIVE_STATES, RunState
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import moves, ownership, progress, queue, runs
from tsuzuki.store.runs.progress import ProgressReport
from tsuzuki.store.sql.database import Database


@pytest.fixture
def term(database: Database) -> Term:
    add_worker(database)
    return take_lead(database)


def running(database: Database, term: Term, state: RunState = RunState.RUNNING) -> StartedRun:
    run = run_in_state(database, state, term)
    return StartedRun(id=run.id, version=run.version, epoch=term.epoch)


def is_ours(database: Database, run: StartedRun, worker_id: str = WORKER) -> bool:
    """What all four questions say; they must say the same."""
    with database.write() as connection:
        report = ProgressReport(run=run, processed=1, total=2, number=1)
        answers = {
            ownership.lock_if_owned(connection, worker_id=worker_id, run=run),
            bool(ownership.still_owned(connection, worker_id=worker_id, runs=[run])),
            ownership.owns_exactly(connection, worker_id=worker_id, runs=[run]),
            bool(progress.report_progress(connection, worker_id=worker_id, reports=[report])),
        }
    (answer,) = answers
    return answer


def test_a_run_is_ours_while_nothing_about_it_changed(database: Database, term: Term) -> None:
    run = running(database, term)
    assert is_ours(database, run)
    assert not is_ours(database, run, "ada")
    assert not is_ours(database, StartedRun(id=run.id, version=run.version + 1, epoch=run.epoch))
    assert not is_ours(database, StartedRun(id=run.id, version=run.version - 1, epoch=run.epoch))
    assert not is_ours(database, StartedRun(id=run.id, version=run.version, epoch=run.epoch + 1))
    assert not is_ours(database, StartedRun(id=4711, version=1, epoch=1))


@pytest.mark.parametrize("state", sorted(set(RunState) - {RunState.RUNNING}))
def test_only_a_running_run_is_ours(database: Database, term: Term, state: RunState) -> None:
    before = running(database, term, state)
    assert not is_ours(database, before)
    after = read_run(database, before.id)
    assert (after.progress_processed, after.version) == (0, before.version)


def test_progress_is_noted_without_being_a_move(
    database: Database, clock: MovingClock, term: Term
) -> None:
    one, two = running(database, term), running(database, term)
    clock.advance(5)
    reports = [
        ProgressReport(run=two, processed=2**40, total=None, number=1),
        ProgressReport(run=one, processed=0, total=0, number=1),
    ]
    with database.write() as connection:
        took = progress.report_progress(connection, worker_id=WORKER, reports=reports)
        assert took == {one.id, two.id}
        assert progress.report_progress(connection, worker_id=WORKER, reports=[]) == frozenset()
    first, second = read_run(database, one.id), read_run(database, two.id)
    assert (first.progress_processed, first.progress_total) == (0, 0)
    assert (second.progress_processed, second.progress_total) == (2**40, None)
    assert first.progress_at == second.progress_at == clock.now()
    assert (first.version, second.version) == (one.version, two.version)


@only_on_postgresql
def test_what_was_locked_as_ours_is_not_taken_until_the_transaction_ends(
    database: Database, term: Term
) -> None:
    run = running(database, term)

    def cancel() -> frozenset[int]:
        with database.write() as connection:
            ref = RunRef(id=run.id, version=run.version)
            return moves.cancel(connection, operator="me", runs=[ref])

    with database.write() as connection:
        assert ownership.lock_if_owned(connection, worker_id=WORKER, run=run)
        assert in_background(cancel).result(30) == frozenset()
    assert cancel() == {run.id}
    assert not is_ours(database, run)


# --- reading --------------------------------------------------------------------------------------


def test_runs_are_listed_newest_first_by_pages_and_filters(database: Database, term: Term) -> None:
    ids = {state: run_in_state(database, state, term).id for state in RunState}
    newest_first = sorted(ids.values(), reverse=True)

    def find(**wanted: object) -> list[int]:
        with database.read() as connection:
            return [run.id for run in runs.find(connection, RunFilter(**wanted))]  # type: ignore[arg-type]

    assert find() == newest_first
    assert find(limit=3) == newest_first[:3]
    assert find(limit=3, before_id=newest_first[2]) == newest_first[3:6]
    assert find(states=frozenset({RunState.FAILED})) == [ids[RunState.FAILED]]
    assert find(states=LIVE_STATES, worker_id=WORKER) == sorted(
        (ids[state] for state in LIVE_STATES - {RunState.PENDING}), reverse=True
    )
    assert find(reason=moves.Reason.OPERATOR) == [ids[RunState.CANCELED]]
    assert find(job_name="hello") == newest_first
    assert find(job_name="unknown") == find(worker_id="unknown") == []


def test_runs_are_counted_by_state_and_the_unfinished_by_job(
    database: Database, term: Term
) -> None:
    for state in [*RunState, RunState.RUNNING]:
        run = run_in_state(database, state, term)
    with database.read() as connection:
        counts = count_by_state(connection)
        live = count_live(connection)
    assert counts == {state: 2 if state is RunState.RUNNING else 1 for state in RunState}
    assert live == {read_run(database, run.id).job_definition_id: len(LIVE_STATES) + 1}


def test_many_runs_are_read_in_the_order_of_their_ids(database: Database, term: Term) -> None:
    ids = [run_in_state(database, RunState.PENDING, term).id for _ in range(4)]
    with database.read() as connection:
        assert [run.id for run in runs.get_many(connection, [*ids[::-1], 4711])] == ids
        assert runs.get_many(connection, []) == []
        assert runs.get(connection, 4711) is None
        assert runs.get_by_key(connection, "unknown") is None


def test_what_is_due_comes_by_priority_then_time_then_age(
    database: Database, clock: MovingClock
) -> None:
    job_id = add_job(database)

    def created(priority: int, minutes: int) -> int:
        moment = clock.now() + timedelta(minutes=minutes)
        return create_run(database, job_id, priority=priority, scheduled_for=moment).id

    late, urgent, early, twin = created(0, -1), created(5, 0), created(0, -9), created(0, -1)
    future = created(9, 1)
    with database.read() as connection:
        due = [run.ref.id for run in queue.due_runs(connection, limit=10)]
        assert queue.next_due_at(connection) == clock.now() + timedelta(minutes=1)
    assert due == [urgent, early, late, twin]
    clock.advance(60)
    with database.read() as connection:
        assert [run.ref.id for run in queue.due_runs(connection, limit=1)] == [future]
