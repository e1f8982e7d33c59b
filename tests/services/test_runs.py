"""Asking for runs, waiting for them, stopping and repeating them, as a caller sees it."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from support.factories import (
    WORKER,
    add_job,
    add_worker,
    depose_and_take,
    read_run,
    run_in_state,
    spec,
    take_lead,
)
from support.history_checker import check_history
from support.moving_clock import NOON, MovingClock
from support.statement_recorder import recorded, writes
from support.threads import at_once
from support.unreliable_database import UnreliableDatabase
from tsuzuki.model.errors import Conflict, NotFound, Unreachable, UsageError, WaitTimedOut
from tsuzuki.model.run import Run, Started
from tsuzuki.model.states import FINAL_STATES, LIVE_STATES, Actor, Reason, RunState, Trigger
from tsuzuki.services import runs as service
from tsuzuki.services.runs import Request, Runs
from tsuzuki.store import audit, jobs
from tsuzuki.store.audit import AuditEntry
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import moves, runs
from tsuzuki.store.runs.runs import RunFilter
from tsuzuki.store.sql.database import Database


@pytest.fixture
def door(database: Database) -> Runs:
    return Runs(database=database, actor="ada")


@pytest.fixture
def term(database: Database) -> Term:
    add_worker(database)
    return take_lead(database)


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


# --- submit ---------------------------------------------------------------------------------------


def test_a_run_is_asked_for_with_what_the_job_says_and_the_caller_changes(
    database: Database,
) -> None:
    woken: list[bool] = []
    door = Runs(database=database, actor="ada")
    door.wake_by(lambda: woken.append(True))
    job_id = add_job(database, spec(arguments={"a": 1, "b": 2}, priority=5, concurrency_key="b"))
    submission = door.submit(Request(job="hello", arguments={"b": 3}))
    assert submission.is_new
    assert woken == [True]
    run = read_run(database, submission.run_id)
    assert (run.job_definition_id, run.state, run.trigger) == (
        job_id,
        RunState.PENDING,
        Trigger.MANUAL,
    )
    assert (run.arguments, run.priority, run.concurrency_key) == ({"a": 1, "b": 3}, 5, "3")
    assert (run.scheduled_for, run.idempotency_key) == (NOON, None)


def test_a_job_that_was_seen_before_is_asked_for_in_one_statement(
    database: Database, door: Runs, clock: MovingClock
) -> None:
    add_job(database, spec(arguments={"a": 1}, priority=5))
    door.submit(Request(job="hello"))
    clock.advance(7)
    with recorded(database) as statements:
        submission = door.submit(Request(job="hello", arguments={"b": 2}, idempotency_key="k"))
    assert len(writes(statements, "job_runs")) == 1
    assert [s for s in statements if "FROM job_definitions" in s] == writes(statements, "job_runs")
    run = read_run(database, submission.run_id)
    assert (submission.is_new, run.arguments, run.priority) == (True, {"a": 1, "b": 2}, 5)
    assert run.scheduled_for == run.created_at == NOON + timedelta(seconds=7)
    again = door.submit(Request(job="hello", idempotency_key="k"))
    assert (again.run_id, again.is_new) == (submission.run_id, False)


def test_a_job_that_has_changed_since_it_was_seen_is_asked_for_as_it_is_now(
    database: Database, door: Runs
) -> None:
    job_id = add_job(database, spec(arguments={"a": 1}, concurrency_key="a"))
    door.submit(Request(job="hello"))
    with database.write() as connection:
        job = jobs.get(connection, job_id)
        assert job is not None
        new = replace(job.spec, arguments={"a": 2}, concurrency_key=None)
        assert jobs.change(connection, job=job, spec=new)
    run = read_run(database, door.submit(Request(job="hello")).run_id)
    assert (run.arguments, run.concurrency_key) == ({"a": 2}, None)


def test_a_job_that_was_removed_since_it_was_seen_is_unknown(
    database: Database, door: Runs
) -> None:
    job_id = add_job(database)
    door.submit(Request(job="hello"))
    with database.write() as connection:
        job = jobs.get(connection, job_id)
        assert job is not None
        assert jobs.remove(connection, job=job)
    with pytest.raises(NotFound, match="no job 'hello'"):
        door.submit(Request(job="hello"))
    assert count(database) == 1
    add_job(database, spec(arguments={"new": True}))
    assert read_run(database, door.submit(Request(job="hello")).run_id).arguments == {"new": True}


def test_delay_priority_and_group_are_the_callers_to_choose(database: Database, door: Runs) -> None:
    add_job(database, spec(priority=5))
    request = Request(job="hello", delay_seconds=90.5, priority=-7, concurrency_key="mine")
    run = read_run(database, door.submit(request).run_id)
    assert run.scheduled_for == NOON + timedelta(seconds=90.5)
    assert (run.priority, run.concurrency_key) == (-7, "mine")
    assert read_run(database, door.submit(Request(job="hello", priority=0)).run_id).priority == 0


def test_without_a_key_asking_twice_makes_two_runs(database: Database, door: Runs) -> None:
    add_job(database)
    answers = [door.submit(Request(job="hello")) for _ in range(2)]
    assert len({answer.run_id for answer in answers}) == 2


def test_with_a_key_asking_again_gives_the_same_run_also_when_it_has_ended(
    database: Database, door: Runs
) -> None:
    add_job(database)
    add_job(database, spec("other"))
    first = door.submit(Request(job="hello", idempotency_key="k"))
    door.cancel(first.run_id)
    again = door.submit(Request(job="other", idempotency_key="k", arguments={"x": 1}))
    assert (again.run_id, again.is_new) == (first.run_id, False)
    assert count(database) == 1


def test_a_caller_whose_answer_was_lost_asks_again_with_its_key_and_gets_the_run(
    database: Database,
) -> None:
    add_job(database)
    unreliable = UnreliableDatabase(database)
    door = Runs(database=unreliable, actor="ada")
    unreliable.replies_to_lose = 1
    with pytest.raises(Unreachable):
        door.submit(Request(job="hello", idempotency_key="k"))
    assert not door.submit(Request(job="hello", idempotency_key="k")).is_new
    assert count(database) == 1


def test_of_ten_who_ask_at_once_with_one_key_all_get_the_same_run(
    database: Database, door: Runs
) -> None:
    add_job(database)
    answers = at_once(10, lambda _: door.submit(Request(job="hello", idempotency_key="k")))
    assert len({answer.run_id for answer in answers}) == 1
    assert sum(answer.is_new for answer in answers) == 1


def test_a_callers_key_cannot_be_taken_for_one_of_ours(
    database: Database, door: Runs, term: Term
) -> None:
    ended = run_in_state(database, RunState.FAILED, term)
    door.submit(Request(job="hello", idempotency_key=f"retry:{ended.id}"))
    assert door.get(ended.id).retried_as is None
    assert door.retry(ended.id).is_new


def test_many_are_stored_together_with_their_answers_in_order(
    database: Database, door: Runs
) -> None:
    add_job(database)
    known = door.submit(Request(job="hello", idempotency_key="b"))
    keys = ["a", "b", None, "a"]
    answers = door.submit_many(
        [
            Request(job="hello", idempotency_key=key, arguments={"n": n})
            for n, key in enumerate(keys)
        ]
    )
    assert [answer.is_new for answer in answers] == [True, False, True, False]
    assert answers[1].run_id == known.run_id
    assert answers[3].run_id == answers[0].run_id
    assert read_run(database, answers[2].run_id).arguments == {"n": 2}
    assert door.submit_many([]) == []


BAD_REQUESTS: list[tuple[dict[str, Any], type[Exception]]] = [
    ({"job": "helo"}, NotFound),
    ({"arguments": {"when": NOON}}, UsageError),
    ({"arguments": {"n": float("nan")}}, UsageError),
    ({"arguments": {"text": "\ud800"}}, UsageError),
    ({"priority": 1001}, UsageError),
    ({"priority": -1001}, UsageError),
    ({"delay_seconds": -0.1}, UsageError),
    ({"delay_seconds": float("nan")}, UsageError),
    ({"delay_seconds": float("inf")}, UsageError),
    ({"delay_seconds": 1e12}, UsageError),
    ({"idempotency_key": "a\x00b"}, UsageError),
]


def test_one_bad_request_among_many_stores_none_of_them(database: Database, door: Runs) -> None:
    add_job(database)
    good = Request(job="hello")
    for bad, error in BAD_REQUESTS:
        with pytest.raises(error):
            door.submit_many([good, replace(good, **bad), good])
    assert count(database) == 0


def test_an_unknown_job_is_answered_with_the_nearest_one(database: Database, door: Runs) -> None:
    add_job(database)
    with pytest.raises(NotFound) as caught:
        door.submit(Request(job="helo"))
    assert 'Did you mean "hello"?' in str(caught.value.hint)


def test_a_removed_job_cannot_be_asked_for(database: Database, door: Runs) -> None:
    job_id = add_job(database)
    with database.write() as connection:
        job = jobs.get(connection, job_id)
        assert job is not None
        jobs.remove(connection, job=job)
    with pytest.raises(NotFound):
        door.submit(Request(job="hello"))


def test_in_the_callers_transaction_the_run_exists_exactly_if_its_rows_do(
    database: Database,
) -> None:
    woken: list[bool] = []
    door = Runs(database=database, actor="ada")
    door.wake_by(lambda: woken.append(True))
    add_job(database)

    def order(number: int) -> None:
        with database.write() as connection:
            audit.record(
                connection,
                actor="shop",
                action="order",
                object_type="order",
                object_id=str(number),
            )
            door.submit(Request(job="hello", idempotency_key=str(number)), connection=connection)
            if number == 1:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        order(1)
    assert (count(database), audited(database)) == (0, [])
    order(2)
    assert (count(database), len(audited(database))) == (1, 1)
    assert woken == []


# --- cancel ---------------------------------------------------------------------------------------


def test_a_live_run_is_canceled_in_every_state_and_the_act_is_recorded(
    database: Database, clock: MovingClock, door: Runs, term: Term
) -> None:
    for state in sorted(LIVE_STATES):
        run = run_in_state(database, state, term)
        clock.advance(1)
        canceled = door.cancel(run.id)
        assert (canceled.state, canceled.reason) == (RunState.CANCELED, Reason.OPERATOR)
        assert canceled.finished_at == clock.now()
        move = door.get(run.id).history[-1]
        assert (move.actor, move.actor_id, move.from_state) == (Actor.OPERATOR, "ada", state)
        entry = audited(database)[0]
        assert (entry.actor, entry.action, entry.object_id) == ("ada", "run.cancel", str(run.id))
        assert entry.before == {"state": state}
        assert entry.after == {"state": "CANCELED"}
    assert len(audited(database)) == len(LIVE_STATES)


def test_a_run_that_has_ended_cannot_be_canceled(
    database: Database, door: Runs, term: Term
) -> None:
    for state in sorted(FINAL_STATES):
        run = run_in_state(database, state, term)
        with pytest.raises(Conflict, match=f"has ended already: {state}") as caught:
            door.cancel(run.id)
        assert caught.value.specific_code == "run_ended"
    assert audited(database) == []


def test_a_run_that_moves_while_it_is_canceled_is_a_conflict_that_says_so(
    database: Database, door: Runs, term: Term, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    read, looks = runs.get, []

    def outdated(connection: Any, run_id: int) -> Run | None:
        looks.append(run_id)
        found = read(connection, run_id)
        stale = len(looks) == 1 and found is not None
        return replace(found, version=2, state=RunState.ASSIGNED) if stale and found else found

    monkeypatch.setattr(service.runs, "get", outdated)
    with pytest.raises(Conflict, match="moved to RUNNING at the same moment") as caught:
        door.cancel(run.id)
    assert caught.value.specific_code == "run_moved"
    assert not caught.value.permanent
    assert read_run(database, run.id).state is RunState.RUNNING


def test_a_canceled_run_cannot_be_ended_by_its_worker(
    database: Database, door: Runs, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    door.cancel(run.id)
    with database.write() as connection:
        started = Started(id=run.id, version=run.version, epoch=term.epoch)
        ending = moves.RunEnd(run=started, state=RunState.SUCCEEDED)
        assert not moves.finish(connection, worker_id=WORKER, ends=[ending])
    assert door.get(run.id).run.state is RunState.CANCELED


# --- retry ----------------------------------------------------------------------------------------


def test_a_run_that_ended_is_repeated_as_a_new_one_with_a_fresh_set_of_retries(
    database: Database, clock: MovingClock, door: Runs, term: Term
) -> None:
    for state in sorted(FINAL_STATES):
        run = run_in_state(database, state, term)
        clock.advance(5)
        answer = door.retry(run.id)
        new = read_run(database, answer.run_id)
        assert (new.state, new.trigger, new.retry_of) == (RunState.PENDING, Trigger.RETRY, run.id)
        assert (new.attempt, new.retries_used, new.origin_id) == (2, 0, run.id)
        assert new.scheduled_for == clock.now()
        assert door.get(run.id).retried_as == answer.run_id
        entry = audited(database)[0]
        assert (entry.action, entry.object_id) == ("run.retry", str(run.id))
        assert entry.after == {"state": state, "retried_as": answer.run_id}


def test_a_run_that_has_not_ended_cannot_be_repeated(
    database: Database, door: Runs, term: Term
) -> None:
    for state in sorted(LIVE_STATES):
        run = run_in_state(database, state, term)
        with pytest.raises(Conflict, match=f"has not ended yet; it is {state}") as caught:
            door.retry(run.id)
        assert caught.value.specific_code == "run_not_ended"
    assert count(database) == len(LIVE_STATES)


def test_a_run_is_repeated_once_and_the_next_one_hears_as_what(
    database: Database, door: Runs, term: Term
) -> None:
    run = run_in_state(database, RunState.FAILED, term)
    first = door.retry(run.id)
    with pytest.raises(Conflict, match=f"retried already, as run {first.run_id}") as caught:
        door.retry(run.id)
    assert caught.value.specific_code == "run_retried"
    assert len(audited(database)) == 1


def test_of_ten_who_repeat_a_run_at_once_one_does(
    database: Database, door: Runs, term: Term
) -> None:
    run = run_in_state(database, RunState.FAILED, term)

    def repeat(_number: int) -> bool:
        try:
            return door.retry(run.id).is_new
        except Conflict:
            return False

    assert sum(at_once(10, repeat)) == 1
    assert count(database) == 2


# --- look and wait --------------------------------------------------------------------------------


def test_nobody_knows_a_run_that_never_was(door: Runs) -> None:
    for ask in (door.get, door.cancel, door.retry, door.explain, door.wait):
        with pytest.raises(NotFound, match="there is no run 404"):
            ask(404)


def test_runs_are_found_newest_first_by_what_is_asked(
    database: Database, door: Runs, term: Term
) -> None:
    ids = [run_in_state(database, state, term).id for state in sorted(RunState)]
    other = door.submit(Request(job=spec_name(database))).run_id
    assert [run.id for run in door.find(RunFilter())] == [other, *reversed(ids)]
    live = door.find(RunFilter(job_name="hello", states=LIVE_STATES))
    assert {run.state for run in live} == LIVE_STATES
    assert [run.id for run in door.find(RunFilter(before_id=ids[2], limit=2))] == [ids[1], ids[0]]
    canceled = door.find(RunFilter(reason=Reason.OPERATOR))
    assert [run.state for run in canceled] == [RunState.CANCELED]
    assert {run.assigned_worker_id for run in door.find(RunFilter(worker_id=WORKER))} == {WORKER}
    newest = door.newest_live("hello")
    assert newest is not None
    assert newest.id == max(run.id for run in live)
    with pytest.raises(NotFound):
        door.find(RunFilter(job_name="never"))


def spec_name(database: Database) -> str:
    add_job(database, spec("second"))
    return "second"


def test_a_run_is_shown_with_its_whole_history(database: Database, door: Runs, term: Term) -> None:
    run = run_in_state(database, RunState.SUCCEEDED, term)
    view = door.get(run.id)
    assert [(move.version, move.to_state) for move in view.history] == [
        (2, RunState.ASSIGNED),
        (3, RunState.RUNNING),
        (4, RunState.SUCCEEDED),
    ]
    shown = view.as_dict()
    assert (shown["id"], shown["retried_as"], len(shown["history"])) == (run.id, None, 3)


def test_waiting_for_a_run_that_has_ended_takes_no_time(
    database: Database, clock: MovingClock, door: Runs, term: Term
) -> None:
    run = run_in_state(database, RunState.FAILED, term)
    assert door.wait(run.id, timeout_seconds=0).state is RunState.FAILED
    assert clock.now() == NOON


def test_waiting_ends_at_its_timeout_with_the_run_where_it_is(
    database: Database, clock: MovingClock, door: Runs, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    with pytest.raises(WaitTimedOut, match=r"still RUNNING after 3 s") as caught:
        door.wait(run.id, timeout_seconds=3)
    assert not caught.value.permanent
    assert 3 <= (clock.now() - NOON).total_seconds() < 3.3
    assert read_run(database, run.id).state is RunState.RUNNING


def test_whoever_waits_sees_every_change_and_the_end(
    database: Database, door: Runs, term: Term
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
                started = Started(id=run.id, version=3, epoch=term.epoch)
                ending = moves.RunEnd(run=started, state=RunState.SUCCEEDED, result=42)
                moves.finish(connection, worker_id=WORKER, ends=[ending])

    assert door.wait(run.id, timeout_seconds=60, on_change=go_on).result == 42
    assert seen == [(RunState.ASSIGNED, 0), (RunState.RUNNING, 0), (RunState.SUCCEEDED, 0)]


def test_a_change_of_leader_means_nothing_to_an_operator(
    database: Database, door: Runs, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    depose_and_take(database)
    assert door.cancel(run.id).state is RunState.CANCELED
