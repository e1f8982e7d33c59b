"""Bulk actions: a frozen filter, looked at first, confirmed once, carried out once for each run."""

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta

import pytest

from support.dialects import only_on_postgresql
from support.factories import WORKER, add_job, create_run, read_run, run_in_state, spec
from support.handler_runs import HandlerRun, start_run
from support.history_checker import check_history
from support.moving_clock import MovingClock
from support.observed_run_io import Killed, ObservedRunIO, kill_at
from support.threads import at_once
from tsuzuki.engine.leader.bulk_canceler import BulkCanceler
from tsuzuki.model.built_in_jobs import BULK_ACTIONS
from tsuzuki.model.bulk import BulkResult, BulkState, BulkVerb
from tsuzuki.model.errors import Conflict, Fenced, NotFound, UsageError
from tsuzuki.model.states import FINAL_STATES, LIVE_STATES, RunState
from tsuzuki.services import bulk_handler
from tsuzuki.services.bulk import BulkActions, BulkActionView
from tsuzuki.services.runs import Request, RunFilter, Runs
from tsuzuki.store import audit, jobs
from tsuzuki.store import bulk as bulk_store
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import runs
from tsuzuki.store.sql.database import Database
from tsuzuki.store.wakeups import listeners
from tsuzuki.store.wakeups.channels import WakeupChannel

FAILED, PENDING = RunState.FAILED, RunState.PENDING
ANY = RunFilter()


@pytest.fixture(autouse=True)
def lawful(database: Database) -> Iterator[None]:
    yield
    check_history(database)


@pytest.fixture
def bulk(database: Database, run_service: Runs) -> BulkActions:
    return BulkActions(database=database, actor="ada", runs=run_service)


def confirmed(bulk: BulkActions, verb: BulkVerb, wanted: RunFilter = ANY) -> int:
    bulk_id = bulk.preview(verb, wanted).action.id
    bulk.confirm(bulk_id)
    return bulk_id


def start(database: Database, term: Term, bulk_id: int) -> HandlerRun[ObservedRunIO]:
    """A run that carries the action out, as the engine would start one."""
    with database.read() as connection:
        job = jobs.get_by_name(connection, BULK_ACTIONS)
    assert job is not None
    return start_run(database, term, job.id, arguments={"bulk": bulk_id}, run_io=ObservedRunIO)


def carry_out(database: Database, term: Term, bulk_id: int) -> None:
    """As the leader carries a cancel out, and a run a retry."""
    with database.read() as connection:
        action = bulk_store.get(connection, bulk_id)
    assert action is not None
    if action.verb is BulkVerb.CANCEL:
        BulkCanceler(database=database).tick(term)
        return
    run = start(database, term, bulk_id)
    bulk_handler.bulk_handler(database)(run.context)
    run.end(RunState.SUCCEEDED)


def results(bulk: BulkActions, bulk_id: int) -> dict[int, BulkResult]:
    return {one.run_id: one.result for one in bulk.results(bulk_id, limit=1000)}


def states(database: Database, run_ids: list[int]) -> list[RunState]:
    return [read_run(database, run_id).state for run_id in run_ids]


def some(database: Database, term: Term, state: RunState, count: int) -> list[int]:
    return [run_in_state(database, state, term).id for _ in range(count)]


# --- preview --------------------------------------------------------------------------------------


def test_a_preview_counts_shows_ten_and_changes_nothing(
    database: Database, bulk: BulkActions, term: Term
) -> None:
    ids = some(database, term, PENDING, 12)
    view = bulk.preview(BulkVerb.CANCEL, ANY)
    assert (view.state, view.action.matched) == (BulkState.PREVIEWED, 12)
    assert [run.id for run in view.samples] == ids[:10]
    assert set(states(database, ids)) == {PENDING}
    assert view.action.filter["states"] == sorted(LIVE_STATES)


@pytest.mark.parametrize(
    ("verb", "impossible"), [(BulkVerb.CANCEL, FINAL_STATES), (BulkVerb.RETRY, LIVE_STATES)]
)
def test_a_state_that_cannot_be_acted_on_is_refused(
    bulk: BulkActions, verb: BulkVerb, impossible: frozenset[RunState]
) -> None:
    for state in impossible:
        with pytest.raises(UsageError, match=state):
            bulk.preview(verb, RunFilter(states=frozenset({state})))


def test_an_unknown_job_is_refused(bulk: BulkActions) -> None:
    with pytest.raises(NotFound):
        bulk.preview(BulkVerb.CANCEL, RunFilter(job_name="nothing"))


def test_what_has_a_retry_already_is_not_matched(
    database: Database, bulk: BulkActions, run_service: Runs, term: Term
) -> None:
    first, second = some(database, term, FAILED, 2)
    run_service.retry(first)
    view = bulk.preview(BulkVerb.RETRY, ANY)
    assert [run.id for run in view.samples] == [second]


# --- confirm --------------------------------------------------------------------------------------


def test_a_preview_is_confirmed_once_however_many_try(
    database: Database, bulk: BulkActions, term: Term
) -> None:
    some(database, term, FAILED, 3)
    bulk_id = bulk.preview(BulkVerb.RETRY, ANY).action.id

    def confirm(_number: int) -> BulkActionView | str:
        try:
            return bulk.confirm(bulk_id)
        except Conflict as problem:
            return problem.specific_code

    answers = at_once(4, confirm)
    assert sorted(map(str, [a for a in answers if isinstance(a, str)])) == ["bulk_confirmed"] * 3
    with database.read() as connection:
        assert len(runs.find(connection, RunFilter(job_name=BULK_ACTIONS))) == 1


def test_no_key_of_a_caller_keeps_an_action_from_being_carried_out(
    database: Database, bulk: BulkActions, run_service: Runs, term: Term
) -> None:
    some(database, term, FAILED, 3)
    bulk_id = bulk.preview(BulkVerb.RETRY, ANY).action.id
    own = run_service.submit(Request(job="hello", idempotency_key=f"bulk:{bulk_id}"))
    view = bulk.confirm(bulk_id)
    assert view.action.run_id not in (None, own.run_id)
    assert view.state is BulkState.CONFIRMED
    with database.read() as connection:
        (run,) = runs.find(connection, RunFilter(job_name=BULK_ACTIONS))
    assert (run.id, run.arguments) == (view.action.run_id, {"bulk": bulk_id})


def test_a_preview_is_valid_for_an_hour(
    database: Database, bulk: BulkActions, clock: MovingClock, term: Term
) -> None:
    some(database, term, PENDING, 1)
    bulk_id = bulk.preview(BulkVerb.CANCEL, ANY).action.id
    clock.advance(timedelta(hours=1, seconds=1).total_seconds())
    with pytest.raises(Conflict) as refused:
        bulk.confirm(bulk_id)
    assert refused.value.specific_code == "bulk_expired"
    assert bulk.get(bulk_id).state is BulkState.PREVIEWED


def test_runs_that_came_after_the_preview_are_not_reached(
    database: Database, bulk: BulkActions, term: Term
) -> None:
    (early,) = some(database, term, PENDING, 1)
    bulk_id = bulk.preview(BulkVerb.CANCEL, ANY).action.id
    (late,) = some(database, term, PENDING, 1)
    bulk.confirm(bulk_id)
    carry_out(database, term, bulk_id)
    assert states(database, [early, late]) == [RunState.CANCELED, PENDING]


def test_a_set_that_grew_by_more_than_a_tenth_is_refused(
    database: Database, bulk: BulkActions, run_service: Runs, term: Term
) -> None:
    """Runs that were there before and match now: the preview did not show them."""
    some(database, term, RunState.CANCELED, 10)
    waiting = some(database, term, PENDING, 2)
    wanted = RunFilter(states=frozenset({RunState.CANCELED}))
    bulk_id = bulk.preview(BulkVerb.RETRY, wanted).action.id
    run_service.cancel(waiting[0])
    other_id = bulk.preview(BulkVerb.RETRY, wanted).action.id
    run_service.cancel(waiting[1])
    with pytest.raises(Conflict) as refused:
        bulk.confirm(bulk_id)
    assert refused.value.specific_code == "bulk_grew"
    assert bulk.confirm(other_id).state is BulkState.CONFIRMED


# --- carried out ----------------------------------------------------------------------------------


def test_every_matching_run_is_canceled_and_told_of(
    database: Database, bulk: BulkActions, term: Term
) -> None:
    ids = [run_in_state(database, state, term).id for state in sorted(LIVE_STATES)]
    ended = some(database, term, RunState.SUCCEEDED, 1)
    bulk_id = confirmed(bulk, BulkVerb.CANCEL)
    carry_out(database, term, bulk_id)
    assert set(states(database, ids)) == {RunState.CANCELED}
    assert states(database, ended) == [RunState.SUCCEEDED]
    assert results(bulk, bulk_id) == dict.fromkeys(ids, BulkResult.CANCELED)
    view = bulk.get(bulk_id)
    assert (view.state, view.action.done) == (BulkState.DONE, len(ids))


def test_failed_runs_are_retried_each_once(
    database: Database, bulk: BulkActions, run_service: Runs, term: Term
) -> None:
    ids = some(database, term, FAILED, 3)
    bulk_id = confirmed(bulk, BulkVerb.RETRY)
    run_service.retry(ids[0])  # between confirmation and its turn
    carry_out(database, term, bulk_id)
    found = bulk.results(bulk_id)
    assert [(one.run_id, one.result) for one in found] == [
        (ids[1], BulkResult.RETRIED),
        (ids[2], BulkResult.RETRIED),
    ]
    assert [read_run(database, one.new_run_id or 0).retry_of for one in found] == ids[1:]


def test_the_actor_of_each_change_is_who_confirmed(
    database: Database, bulk: BulkActions, term: Term
) -> None:
    (run_id,) = some(database, term, PENDING, 1)
    bulk_id = confirmed(bulk, BulkVerb.CANCEL)
    carry_out(database, term, bulk_id)
    with database.read() as connection:
        (entry,) = audit.find(connection, object_type="run", object_id=str(run_id))
        moved = runs.history(connection, run_id)[-1]
    assert (entry.actor, entry.action) == ("ada", "run.cancel")
    assert entry.after == {"state": "CANCELED", "bulk": bulk_id}
    assert moved.actor_id == "ada"


@pytest.mark.parametrize("number", [1, 2, 3])
def test_killed_at_any_commit_it_goes_on_and_changes_each_run_once(
    database: Database,
    bulk: BulkActions,
    term: Term,
    number: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bulk_handler, "PAGE", 2)
    ids = some(database, term, FAILED, 4)
    bulk_id = confirmed(bulk, BulkVerb.RETRY)
    run = start(database, term, bulk_id)
    run.run_io.before = kill_at(number)
    with pytest.raises(Killed):
        bulk_handler.bulk_handler(database)(run.context)
    run.end(FAILED)
    carry_out(database, term, bulk_id)
    assert results(bulk, bulk_id) == dict.fromkeys(ids, BulkResult.RETRIED)
    assert bulk.get(bulk_id).action.done == 4


def test_a_run_that_was_taken_away_changes_nothing_more(
    database: Database, bulk: BulkActions, term: Term
) -> None:
    some(database, term, FAILED, 2)
    bulk_id = confirmed(bulk, BulkVerb.RETRY)
    run = start(database, term, bulk_id)
    run.end(FAILED)
    with pytest.raises(Fenced):
        bulk_handler.bulk_handler(database)(run.context)
    assert bulk.results(bulk_id) == []


def test_a_stopped_action_goes_no_further_and_keeps_what_it_did(
    database: Database, bulk: BulkActions, term: Term, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_handler, "PAGE", 2)
    ids = some(database, term, FAILED, 5)
    bulk_id = confirmed(bulk, BulkVerb.RETRY)
    run = start(database, term, bulk_id)
    run.run_io.after = lambda number: bulk.stop(bulk_id) and None if number == 1 else None
    assert bulk_handler.bulk_handler(database)(run.context) == {"bulk": bulk_id, "done": 2}
    assert results(bulk, bulk_id) == dict.fromkeys(ids[:2], BulkResult.RETRIED)
    assert bulk.get(bulk_id).state is BulkState.STOPPED
    with pytest.raises(Conflict):
        bulk.stop(bulk_id)


def test_it_never_cancels_the_runs_that_carry_it_out(
    database: Database, bulk: BulkActions, term: Term
) -> None:
    some(database, term, FAILED, 1)
    first = confirmed(bulk, BulkVerb.RETRY)
    some(database, term, PENDING, 1)
    second = bulk.preview(BulkVerb.CANCEL, ANY)
    assert second.action.matched == 1
    own_run = bulk.get(first).action.run_id
    assert own_run is not None
    bulk.confirm(second.action.id)
    carry_out(database, term, second.action.id)
    assert read_run(database, own_run).state is PENDING


def test_a_run_that_an_earlier_version_left_of_a_cancel_retries_nothing(
    database: Database, bulk: BulkActions, term: Term
) -> None:
    """That version carried cancels out by a run too. By now the leader does."""
    confirmed(bulk, BulkVerb.RETRY)  # defines the job
    ids = some(database, term, PENDING, 3)
    cancel = bulk.preview(BulkVerb.CANCEL, ANY).action.id
    run = start(database, term, cancel)
    bulk.confirm(cancel)
    assert bulk_handler.bulk_handler(database)(run.context) == {"bulk": cancel, "done": 0}
    run.end(RunState.SUCCEEDED)
    assert bulk.get(cancel).state is BulkState.CONFIRMED
    carry_out(database, term, cancel)
    assert results(bulk, cancel) == dict.fromkeys(ids, BulkResult.CANCELED)
    with database.read() as connection:
        assert not [run for run in runs.find(connection, ANY) if run.retry_of]


def test_an_action_whose_run_failed_for_good_says_so(
    database: Database, bulk: BulkActions, run_service: Runs, term: Term
) -> None:
    some(database, term, FAILED, 1)
    bulk_id = confirmed(bulk, BulkVerb.RETRY)
    own_run = bulk.get(bulk_id).action.run_id
    assert own_run is not None
    run_service.cancel(own_run)
    assert bulk.get(bulk_id).state is BulkState.FAILED


def test_old_previews_are_deleted_and_old_actions_later(
    database: Database, bulk: BulkActions, clock: MovingClock, term: Term
) -> None:
    some(database, term, PENDING, 1)
    kept = confirmed(bulk, BulkVerb.CANCEL)
    carry_out(database, term, kept)
    forgotten = bulk.preview(BulkVerb.CANCEL, ANY).action.id
    clock.advance(timedelta(days=2).total_seconds())
    bulk.preview(BulkVerb.CANCEL, ANY)
    with pytest.raises(NotFound):
        bulk.get(forgotten)
    assert results(bulk, kept)
    clock.advance(timedelta(days=100).total_seconds())
    bulk.preview(BulkVerb.CANCEL, ANY)
    with pytest.raises(NotFound):
        bulk.get(kept)


def test_filters_by_job_and_reason_are_kept(
    database: Database, bulk: BulkActions, term: Term
) -> None:
    some(database, term, PENDING, 1)
    other = create_run(database, add_job(database, spec("other"))).id
    view = bulk.preview(BulkVerb.CANCEL, RunFilter(job_name="other"))
    assert [run.id for run in view.samples] == [other]
    bulk.confirm(view.action.id)
    carry_out(database, term, view.action.id)
    assert list(results(bulk, view.action.id)) == [other]


@only_on_postgresql
def test_a_bulk_cancel_wakes_who_holds_the_runs_and_the_leader_who_may_fill_their_slots(
    database: Database, term: Term, bulk: BulkActions
) -> None:
    run_in_state(database, RunState.RUNNING, term)
    bulk_id = confirmed(bulk, BulkVerb.CANCEL)
    woken: set[str] = set()
    with closing(listeners.listen(database)) as listener:
        carry_out(database, term, bulk_id)
        while len(woken) < 2 and (names := listener.wait(30.0)):
            woken |= set(names)
    assert woken == {WORKER, WakeupChannel.LEADER}
