"""A bulk cancel is carried out by the leader, and from its confirmation on nothing that it covers is assigned."""

import pytest
from sqlalchemy import text

from support.dialects import only_on_postgresql
from support.factories import (
    WORKER,
    add_job,
    add_worker,
    create_run,
    depose_and_take,
    new_run,
    read_run,
    run_in_state,
    spec,
    take_lead,
)
from support.history_checker import check_history
from support.threads import in_background
from support.waiting import wait_until_blocked
from tsuzuki.engine.leader import bulk_canceler
from tsuzuki.engine.leader.assigner import Assigner
from tsuzuki.engine.leader.bulk_canceler import BulkCanceler, KnownCancels
from tsuzuki.model.bulk import BulkResult, BulkState, BulkVerb
from tsuzuki.model.errors import Conflict
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.states import LIVE_STATES, RunState
from tsuzuki.services.bulk import BulkActions
from tsuzuki.services.runs import RunFilter, Runs
from tsuzuki.store import audit, leader_poll
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import cancel_requests, moves, queue, runs
from tsuzuki.store.runs.moves import Assignment
from tsuzuki.store.sql.database import Connection, Database

PENDING, RUNNING, CANCELED = RunState.PENDING, RunState.RUNNING, RunState.CANCELED
ANY = RunFilter()
ONLY_PENDING = RunFilter(states=frozenset({PENDING}))


@pytest.fixture
def term(database: Database) -> Term:
    add_worker(database, capacity=100)
    return take_lead(database, lease_seconds=100_000)


@pytest.fixture
def bulk(database: Database) -> BulkActions:
    return BulkActions(database=database, actor="ada", runs=Runs(database=database, actor="ada"))


@pytest.fixture
def canceler(database: Database) -> BulkCanceler:
    return BulkCanceler(database=database)


@pytest.fixture
def job_id(database: Database) -> int:
    return add_job(database, spec("many", concurrency_policy=ConcurrencyPolicy.ALLOW))


def confirmed(bulk: BulkActions, wanted: RunFilter = ANY) -> int:
    return bulk.confirm(bulk.preview(BulkVerb.CANCEL, wanted).action.id).action.id


def results(bulk: BulkActions, bulk_id: int) -> dict[int, BulkResult]:
    return {one.run_id: one.result for one in bulk.results(bulk_id, limit=1000)}


def pending(database: Database, job_id: int, count: int) -> list[int]:
    with database.write() as connection:
        created = runs.create(connection, [new_run(database, job_id) for _ in range(count)])
    return [run_id or 0 for run_id in created]


def states(database: Database, run_ids: list[int]) -> set[RunState]:
    return {read_run(database, run_id).state for run_id in run_ids}


def known(database: Database, canceler: BulkCanceler) -> KnownCancels:
    """As the leader learns of them."""
    with database.read() as connection:
        polled = leader_poll.poll(connection, silent_after_seconds=6.0, max_orphans=5)
    return KnownCancels(polled.bulk_cancels, canceler.active())


# --- nothing that it covers is assigned -----------------------------------------------------------


def test_what_was_chosen_before_the_confirmation_is_not_assigned_after_it(
    database: Database, bulk: BulkActions, term: Term, job_id: int
) -> None:
    (run_id,) = pending(database, job_id, 1)
    with database.read() as connection:
        (due,) = queue.due_runs(connection, limit=10)
    confirmed(bulk)
    with database.write() as connection:
        chosen = [Assignment(due.ref, WORKER)]
        assert not moves.assign(connection, term=term, assignments=chosen)
        assert not moves.assign_and_start(connection, term=term, worker_id=WORKER, runs=[due.ref])
    assert states(database, [run_id]) == {PENDING}


@only_on_postgresql
def test_a_confirmation_waits_for_the_assignment_under_way_and_cancels_what_it_assigned(
    database: Database, bulk: BulkActions, term: Term, job_id: int
) -> None:
    run_ids = pending(database, job_id, 3)
    with database.write() as connection:
        due = queue.due_runs(connection, limit=2)
        chosen = [Assignment(run.ref, WORKER) for run in due]
        assert len(moves.assign(connection, term=term, assignments=chosen)) == 2
        confirmation = in_background(lambda: confirmed(bulk))
        wait_until_blocked(database)
    bulk_id = confirmation.result(30)
    assert states(database, run_ids[:2]) == {CANCELED}
    assert results(bulk, bulk_id) == dict.fromkeys(run_ids[:2], BulkResult.CANCELED)
    check_history(database)


@only_on_postgresql
def test_an_assignment_that_meets_a_confirmation_is_refused_when_that_commits(
    database: Database, bulk: BulkActions, term: Term, job_id: int
) -> None:
    (run_id,) = pending(database, job_id, 1)
    with database.read() as connection:
        (due,) = queue.due_runs(connection, limit=1)

    def assign() -> frozenset[int]:
        with database.write() as connection:
            chosen = [Assignment(due.ref, WORKER)]
            return moves.assign(connection, term=term, assignments=chosen)

    with database.engine.connect() as confirming:
        confirming.execute(text("UPDATE tsuzuki_leadership SET bulk_cancels = bulk_cancels + 1"))
        late = in_background(assign)
        wait_until_blocked(database)
        confirming.commit()
    assert late.result(30) == frozenset()
    assert states(database, [run_id]) == {PENDING}


def test_the_assigner_leaves_out_what_is_covered_and_assigns_the_rest(
    database: Database, bulk: BulkActions, canceler: BulkCanceler, term: Term, job_id: int
) -> None:
    covered = pending(database, job_id, 5)
    other = create_run(database, add_job(database, spec("other"))).id
    wanted = RunFilter(job_name="many", states=frozenset({PENDING}))
    bulk_id = confirmed(bulk, wanted)
    (newer,) = pending(database, job_id, 1)
    assigner = Assigner(database=database)
    assert assigner.tick(term) == 0, "it does not know of the action yet"
    assigner.know_cancels(known(database, canceler))
    assert assigner.assign_first(term) == 0
    assert assigner.tick(term) == 2
    assert states(database, [other, newer]) == {RunState.ASSIGNED}
    assert states(database, covered) == {PENDING}
    bulk.stop(bulk_id)
    assigner.know_cancels(known(database, canceler))
    assert assigner.tick(term) == 5


def test_a_filter_that_says_nothing_of_a_run_with_no_value_does_not_cover_it(
    database: Database, bulk: BulkActions, canceler: BulkCanceler, term: Term, job_id: int
) -> None:
    pending(database, job_id, 1)
    confirmed(bulk, RunFilter(worker_id=WORKER))
    assigner = Assigner(database=database)
    assigner.know_cancels(known(database, canceler))
    assert assigner.tick(term) == 1


# --- carried out ----------------------------------------------------------------------------------


def test_it_is_carried_out_page_by_page_without_a_run_or_a_slot(
    database: Database,
    bulk: BulkActions,
    canceler: BulkCanceler,
    term: Term,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bulk_canceler, "PAGE", 3)
    live = [run_in_state(database, state, term).id for state in sorted(LIVE_STATES) * 2]
    ended = run_in_state(database, RunState.SUCCEEDED, term).id
    bulk_id = confirmed(bulk)
    assert bulk.get(bulk_id).action.run_id is None
    canceler.tick(term)
    assert states(database, live) == {CANCELED}
    assert results(bulk, bulk_id) == dict.fromkeys(live, BulkResult.CANCELED)
    view = bulk.get(bulk_id)
    assert (view.state, view.action.done) == (BulkState.DONE, len(live))
    assert read_run(database, ended).state is RunState.SUCCEEDED
    assert canceler.active() == []
    check_history(database)


def test_another_leader_goes_on_where_the_last_one_was(
    database: Database,
    bulk: BulkActions,
    canceler: BulkCanceler,
    term: Term,
    job_id: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bulk_canceler, "PAGE", 2)
    monkeypatch.setattr(bulk_canceler, "TICK_SECONDS_MAX", 0.0)
    run_ids = pending(database, job_id, 5)
    bulk_id = confirmed(bulk)
    assert canceler.tick(term) == 2
    new = depose_and_take(database)
    assert canceler.tick(term) == 0
    assert bulk.get(bulk_id).action.done == 2
    for expected in (2, 1, 0):
        assert canceler.tick(new) == expected
    assert results(bulk, bulk_id) == dict.fromkeys(run_ids, BulkResult.CANCELED)
    assert bulk.get(bulk_id).state is BulkState.DONE


def test_a_stopped_cancel_goes_no_further_and_keeps_what_it_did(
    database: Database,
    bulk: BulkActions,
    canceler: BulkCanceler,
    term: Term,
    job_id: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bulk_canceler, "PAGE", 2)
    monkeypatch.setattr(bulk_canceler, "TICK_SECONDS_MAX", 0.0)
    run_ids = pending(database, job_id, 5)
    bulk_id = confirmed(bulk)
    canceler.tick(term)
    assert bulk.stop(bulk_id).state is BulkState.STOPPED
    assert canceler.tick(term) == 0
    assert states(database, run_ids[:2]) == {CANCELED}
    assert states(database, run_ids[2:]) == {PENDING}
    with pytest.raises(Conflict):
        bulk.stop(bulk_id)


def test_a_filter_by_pending_covers_what_has_not_started_and_nothing_else(
    database: Database, bulk: BulkActions, canceler: BulkCanceler, term: Term
) -> None:
    of_state = {state: run_in_state(database, state, term).id for state in LIVE_STATES}
    running = of_state.pop(RUNNING)
    view = bulk.preview(BulkVerb.CANCEL, ONLY_PENDING)
    assert view.action.matched == len(of_state)
    bulk.confirm(view.action.id)
    canceler.tick(term)
    assert states(database, list(of_state.values())) == {CANCELED}
    assert states(database, [running]) == {RUNNING}


def test_a_run_that_starts_at_the_same_moment_is_not_touched_by_a_filter_by_pending(
    database: Database,
    bulk: BulkActions,
    canceler: BulkCanceler,
    term: Term,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waiting, starting = (run_in_state(database, PENDING, term) for _ in range(2))
    bulk_id = confirmed(bulk, ONLY_PENDING)
    real, was_started = moves.cancel, []

    def cancel(connection: Connection, **options: object) -> frozenset[int]:
        if not was_started:
            was_started.append(True)
            chosen = [Assignment(starting, WORKER)]
            moves.assign(connection, term=term, assignments=chosen, bulk_cancels=1)
            assigned = starting._replace(version=starting.version + 1)
            assert moves.start(connection, worker_id=WORKER, runs=[assigned])
        return real(connection, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(moves, "cancel", cancel)
    canceler.tick(term)
    assert states(database, [waiting.id]) == {CANCELED}
    assert states(database, [starting.id]) == {RUNNING}
    assert results(bulk, bulk_id) == {waiting.id: BulkResult.CANCELED}


def test_the_audit_log_has_the_state_in_which_each_run_was_canceled(
    database: Database,
    bulk: BulkActions,
    canceler: BulkCanceler,
    term: Term,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = run_in_state(database, PENDING, term)
    bulk_id = confirmed(bulk)
    real, was_assigned = moves.cancel, []

    def cancel(connection: Connection, **options: object) -> frozenset[int]:
        if not was_assigned:
            was_assigned.append(True)
            chosen = [Assignment(run, WORKER)]
            moves.assign(connection, term=term, assignments=chosen, bulk_cancels=1)
        return real(connection, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(moves, "cancel", cancel)
    canceler.tick(term)
    with database.read() as connection:
        (entry,) = audit.find(connection, object_type="run", object_id=str(run.id))
    assert (entry.actor, entry.action, entry.before) == ("ada", "run.cancel", {"state": "ASSIGNED"})
    assert entry.after == {"state": "CANCELED", "bulk": bulk_id}


# --- rows that others hold ------------------------------------------------------------------------


@only_on_postgresql
def test_a_run_that_its_handler_holds_is_requested_to_be_canceled(
    database: Database, bulk: BulkActions, canceler: BulkCanceler, term: Term
) -> None:
    held, other = (run_in_state(database, RUNNING, term).id for _ in range(2))
    bulk_id = confirmed(bulk)
    with database.engine.connect() as handler:
        handler.execute(text(f"SELECT 1 FROM tsuzuki_job_runs WHERE id = {held} FOR UPDATE"))
        canceler.tick(term)
        assert bulk.get(bulk_id).state is BulkState.DONE
    assert results(bulk, bulk_id) == {held: BulkResult.REQUESTED, other: BulkResult.CANCELED}
    with database.read() as connection:
        assert list(cancel_requests.of_runs(connection, [held])) == [held]
        (entry,) = audit.find(connection, object_type="run", object_id=str(held))
    assert entry.after == {"state": "RUNNING", "cancel": "requested", "bulk": bulk_id}


@only_on_postgresql
def test_a_waiting_run_whose_row_is_locked_is_canceled_when_it_is_free(
    database: Database, bulk: BulkActions, canceler: BulkCanceler, term: Term, job_id: int
) -> None:
    run_ids = pending(database, job_id, 3)
    bulk_id = confirmed(bulk, ONLY_PENDING)
    with database.engine.connect() as worker:
        worker.execute(text(f"SELECT 1 FROM tsuzuki_job_runs WHERE id = {run_ids[1]} FOR UPDATE"))
        assert canceler.tick(term) == 2
        assert bulk.get(bulk_id).state is BulkState.CONFIRMED
    assert canceler.tick(term) == 1
    assert results(bulk, bulk_id) == dict.fromkeys(run_ids, BulkResult.CANCELED)
    assert bulk.get(bulk_id).action.done == 3


@only_on_postgresql
def test_a_run_that_is_held_behind_a_locked_one_has_one_result(
    database: Database, bulk: BulkActions, canceler: BulkCanceler, term: Term
) -> None:
    locked = run_in_state(database, PENDING, term).id
    held = run_in_state(database, RUNNING, term).id
    bulk_id = confirmed(bulk)
    with database.engine.connect() as handler:
        handler.execute(text(f"SELECT 1 FROM tsuzuki_job_runs WHERE id = {held} FOR UPDATE"))
        with database.engine.connect() as other:
            other.execute(text(f"SELECT 1 FROM tsuzuki_job_runs WHERE id = {locked} FOR UPDATE"))
            assert [canceler.tick(term) for _ in range(2)] == [0, 0]
        canceler.tick(term)
    assert results(bulk, bulk_id) == {locked: BulkResult.CANCELED, held: BulkResult.REQUESTED}
    view = bulk.get(bulk_id)
    assert (view.state, view.action.done) == (BulkState.DONE, 2)
