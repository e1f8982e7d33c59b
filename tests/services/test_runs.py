"""Canceling, retrying, listing and waiting for runs, as a caller sees it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from support.factories import (
    WORKER,
    add_job,
    depose_and_take,
    read_run,
    run_in_state,
    spec,
)
from support.history_checker import check_history
from support.moving_clock import NOON, MovingClock
from support.threads import at_once
from tsuzuki.model.errors import Conflict, NotFound, WaitTimedOut
from tsuzuki.model.run import Run, StartedRun
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import FINAL_STATES, LIVE_STATES, Actor, Reason, RunState, Trigger
from tsuzuki.services import runs as service
from tsuzuki.services.runs import Request, Runs
from tsuzuki.store import audit
from tsuzuki.store.audit import AuditEntry
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import moves, runs
from tsuzuki.store.sql.database import Database


@pytest.fixture(autouse=True)
def lawful(database: Database) -> Iterator[None]:
    yield
    check_history(database)


def count(database: Database) -> int:
    with database.read() as connection:
        return len(runs.find(connection, RunFilter(limit=10_000)))


def audited(database: Database) -> list[AuditEntry]:
    with database.read() as connection:
        return audit.find(connection)


# --- cancel ---------------------------------------------------------------------------------------


def test_a_live_run_is_canceled_in_every_state_and_the_act_is_recorded(
    database: Database, clock: MovingClock, run_service: Runs, term: Term
) -> None:
    for state in sorted(LIVE_STATES):
        run = run_in_state(database, state, term)
        clock.advance(1)
        canceled = run_service.cancel(run.id)
        assert (canceled.state, canceled.reason) == (RunState.CANCELED, Reason.OPERATOR)
        assert canceled.finished_at == clock.now()
        move = run_service.get(run.id).history[-1]
        assert (move.actor, move.actor_id, move.from_state) == (Actor.OPERATOR, "ada", state)
        entry = audited(database)[0]
        assert (entry.actor, entry.action, entry.object_id) == ("ada", "run.cancel", str(run.id))
        assert entry.before == {"state": state}
        assert entry.after == {"state": "CANCELED"}
    assert len(audited(database)) == len(LIVE_STATES)


def test_a_run_that_has_ended_cannot_be_canceled(
    database: Database, run_service: Runs, term: Term
) -> None:
    for state in sorted(FINAL_STATES):
        run = run_in_state(database, state, term)
        with pytest.raises(Conflict, match=f"has already ended: {state}") as caught:
            run_service.cancel(run.id)
        assert caught.value.specific_code == "run_ended"
    assert audited(database) == []


def test_a_run_that_moves_while_it_is_canceled_is_canceled_where_it_is(
    database: Database, run_service: Runs, term: Term, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    read, looks = runs.get, []

    def outdated(connection: Any, run_id: int) -> Run | None:
        looks.append(run_id)
        found = read(connection, run_id)
        stale = len(looks) == 1 and found is not None
        return replace(found, version=2, state=RunState.ASSIGNED) if stale and found else found

    monkeypatch.setattr(service.runs, "get", outdated)
    assert run_service.cancel(run.id).state is RunState.CANCELED
    (entry,) = audited(database)
    assert entry.before == {"state": "RUNNING"}


def test_a_canceled_run_cannot_be_ended_by_its_worker(
    database: Database, run_service: Runs, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    run_service.cancel(run.id)
    with database.write() as connection:
        started = StartedRun(id=run.id, version=run.version, epoch=term.epoch)
        ending = moves.RunEnd(run=started, state=RunState.SUCCEEDED)
        assert not moves.finish(connection, worker_id=WORKER, ends=[ending])
    assert run_service.get(run.id).run.state is RunState.CANCELED


# --- retry ----------------------------------------------------------------------------------------


def test_a_run_that_ended_is_retried_as_a_new_one_with_a_fresh_set_of_retries(
    database: Database, clock: MovingClock, run_service: Runs, term: Term
) -> None:
    for state in sorted(FINAL_STATES):
        run = run_in_state(database, state, term)
        clock.advance(5)
        answer = run_service.retry(run.id)
        new = read_run(database, answer.run_id)
        assert (new.state, new.trigger, new.retry_of) == (RunState.PENDING, Trigger.RETRY, run.id)
        assert (new.attempt, new.retries_used, new.origin_id) == (2, 0, run.id)
        assert new.scheduled_for == clock.now()
        assert run_service.get(run.id).retried_as == answer.run_id
        entry = audited(database)[0]
        assert (entry.action, entry.object_id) == ("run.retry", str(run.id))
        assert entry.after == {"state": state, "retried_as": answer.run_id}


def test_a_run_that_has_not_ended_cannot_be_retried(
    database: Database, run_service: Runs, term: Term
) -> None:
    for state in sorted(LIVE_STATES):
        run = run_in_state(database, state, term)
        with pytest.raises(Conflict, match=f"has not ended; it is {state}") as caught:
            run_service.retry(run.id)
        assert caught.value.specific_code == "run_not_ended"
    assert count(database) == len(LIVE_STATES)


def test_a_run_is_retried_once_and_the_next_request_is_told_as_what(
    database: Database, run_service: Runs, term: Term
) -> None:
    run = run_in_state(database, RunState.FAILED, term)
    first = run_service.retry(run.id)
    with pytest.raises(Conflict, match=f"already retried as run {first.run_id}") as caught:
        run_service.retry(run.id)
    assert caught.value.specific_code == "run_retried"
    assert len(audited(database)) == 1


def test_of_ten_that_retry_a_run_at_once_one_does(
    database: Database, run_service: Runs, term: Term
) -> None:
    run = run_in_state(database, RunState.FAILED, term)

    def retry(_number: int) -> bool:
        try:
            return run_service.retry(run.id).is_new
        except Conflict:
            return False

    assert sum(at_once(10, retry)) == 1
    assert count(database) == 2


# --- look and wait --------------------------------------------------------------------------------


def test_a_run_that_never_was_is_unknown(run_service: Runs) -> None:
    for ask in (
        run_service.get,
        run_service.cancel,
        run_service.retry,
        run_service.explain,
        run_service.wait,
    ):
        with pytest.raises(NotFound, match="there is no run 404"):
            ask(404)


def test_runs_are_found_newest_first_by_what_is_asked(
    database: Database, run_service: Runs, term: Term
) -> None:
    ids = [run_in_state(database, state, term).id for state in sorted(RunState)]
    other = run_service.submit(Request(job=spec_name(database))).run_id
    assert [run.id for run in run_service.find(RunFilter())] == [other, *reversed(ids)]
    live = run_service.find(RunFilter(job_name="hello", states=LIVE_STATES))
    assert {run.state for run in live} == LIVE_STATES
    assert [run.id for run in run_service.find(RunFilter(before_id=ids[2], limit=2))] == [
        ids[1],
        ids[0],
    ]
    canceled = run_service.find(RunFilter(reason=Reason.OPERATOR))
    assert [run.state for run in canceled] == [RunState.CANCELED]
    assert {run.assigned_worker_id for run in run_service.find(RunFilter(worker_id=WORKER))} == {
        WORKER
    }
    newest = run_service.newest_live("hello")
    assert newest is not None
    assert newest.id == max(run.id for run in live)
    with pytest.raises(NotFound):
        run_service.find(RunFilter(job_name="never"))


def spec_name(database: Database) -> str:
    add_job(database, spec("second"))
    return "second"


def test_a_run_is_shown_with_its_whole_history(
    database: Database, run_service: Runs, term: Term
) -> None:
    run = run_in_state(database, RunState.SUCCEEDED, term)
    view = run_service.get(run.id)
    assert [(move.version, move.to_state) for move in view.history] == [
        (2, RunState.ASSIGNED),
        (3, RunState.RUNNING),
        (4, RunState.SUCCEEDED),
    ]
    shown = view.as_dict()
    assert (shown["id"], shown["retried_as"], len(shown["history"])) == (run.id, None, 3)


def test_waiting_for_a_run_that_has_ended_takes_no_time(
    database: Database, clock: MovingClock, run_service: Runs, term: Term
) -> None:
    run = run_in_state(database, RunState.FAILED, term)
    assert run_service.wait(run.id, timeout_seconds=0).state is RunState.FAILED
    assert clock.now() == NOON


def test_waiting_ends_at_its_timeout_with_the_run_where_it_is(
    database: Database, clock: MovingClock, run_service: Runs, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    with pytest.raises(WaitTimedOut, match=r"still RUNNING after 3 s") as caught:
        run_service.wait(run.id, timeout_seconds=3)
    assert not caught.value.permanent
    assert 3 <= (clock.now() - NOON).total_seconds() < 3.3
    assert read_run(database, run.id).state is RunState.RUNNING


def test_waiting_sees_every_change_and_the_end(
    database: Database, run_service: Runs, term: Term
) -> None:
    run = run_in_state(database, RunState.ASSIGNED, term)
    seen: list[tuple[RunState, int]] = []

    def go_on(now: Run) -> None:
        """Each time the run was seen it goes one step further."""
        seen.append((now.state, now.progress_processed))
        with database.write() as connection:
            if now.state is RunState.ASSIGNED:
                moves.start(connection, worker_id=WORKER, runs=[moves.RunRef(id=run.id, version=2)])
            elif now.state is RunState.RUNNING:
                started = StartedRun(id=run.id, version=3, epoch=term.epoch)
                ending = moves.RunEnd(run=started, state=RunState.SUCCEEDED, result=42)
                moves.finish(connection, worker_id=WORKER, ends=[ending])

    assert run_service.wait(run.id, timeout_seconds=60, on_change=go_on).result == 42
    assert seen == [(RunState.ASSIGNED, 0), (RunState.RUNNING, 0), (RunState.SUCCEEDED, 0)]


def test_a_change_of_leader_means_nothing_to_an_operator(
    database: Database, run_service: Runs, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    depose_and_take(database)
    assert run_service.cancel(run.id).state is RunState.CANCELED
