"""Submitting runs: stored once, whole or not at all, as a caller sees it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import product
from typing import Any

import pytest

from support.factories import (
    add_job,
    read_run,
    run_in_state,
    spec,
)
from support.history_checker import check_history
from support.moving_clock import NOON, MovingClock
from support.planning import change_job, job_of
from support.statement_recorder import recorded, writes
from support.threads import at_once
from support.unreliable_database import UnreliableDatabase
from tsuzuki.model.errors import Conflict, NotFound, Unreachable, UsageError
from tsuzuki.model.idempotency_key import KEY_LENGTH_MAX
from tsuzuki.model.job import JobSource
from tsuzuki.model.run import Run
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import RunState, Trigger
from tsuzuki.services.runs import Request, Runs, StartRequest
from tsuzuki.store import audit, jobs
from tsuzuki.store.audit import AuditEntry
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import runs
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


def test_a_run_is_asked_for_with_what_the_job_says_and_the_caller_changes(
    database: Database,
) -> None:
    woken: list[bool] = []
    run_service = Runs(database=database, actor="ada")
    run_service.wake_by(lambda: woken.append(True))
    job_id = add_job(database, spec(arguments={"a": 1, "b": 2}, priority=5, concurrency_key="b"))
    submission = run_service.submit(Request(job="hello", arguments={"b": 3}))
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
    database: Database, run_service: Runs, clock: MovingClock
) -> None:
    add_job(database, spec(arguments={"a": 1}, priority=5))
    run_service.submit(Request(job="hello"))
    clock.advance(7)
    with recorded(database) as statements:
        submission = run_service.submit(
            Request(job="hello", arguments={"b": 2}, idempotency_key="k")
        )
    assert len(writes(statements, "tsuzuki_job_runs")) == 1
    assert [s for s in statements if "FROM tsuzuki_job_definitions" in s] == writes(
        statements, "tsuzuki_job_runs"
    )
    run = read_run(database, submission.run_id)
    assert (submission.is_new, run.arguments, run.priority) == (True, {"a": 1, "b": 2}, 5)
    assert run.scheduled_for == run.created_at == NOON + timedelta(seconds=7)
    again = run_service.submit(Request(job="hello", arguments={"b": 2}, idempotency_key="k"))
    assert (again.run_id, again.is_new) == (submission.run_id, False)


def test_a_job_that_has_changed_since_it_was_seen_is_asked_for_as_it_is_now(
    database: Database, run_service: Runs
) -> None:
    job_id = add_job(database, spec(arguments={"a": 1}, concurrency_key="a"))
    run_service.submit(Request(job="hello"))
    with database.write() as connection:
        job = jobs.get(connection, job_id)
        assert job is not None
        new = replace(job.spec, arguments={"a": 2}, concurrency_key=None)
        assert jobs.change(connection, job=job, spec=new)
    run = read_run(database, run_service.submit(Request(job="hello")).run_id)
    assert (run.arguments, run.concurrency_key) == ({"a": 2}, None)


def test_a_job_that_was_removed_since_it_was_seen_is_unknown(
    database: Database, run_service: Runs
) -> None:
    job_id = add_job(database)
    run_service.submit(Request(job="hello"))
    with database.write() as connection:
        job = jobs.get(connection, job_id)
        assert job is not None
        assert jobs.remove(connection, job=job)
    with pytest.raises(NotFound, match="no job 'hello'"):
        run_service.submit(Request(job="hello"))
    assert count(database) == 1
    add_job(database, spec(arguments={"new": True}))
    assert read_run(database, run_service.submit(Request(job="hello")).run_id).arguments == {
        "new": True
    }


@pytest.mark.parametrize("length", [0, KEY_LENGTH_MAX + 1, 6000])
def test_an_empty_or_too_long_key_is_refused(
    database: Database, run_service: Runs, length: int
) -> None:
    add_job(database)
    run_service.submit(Request(job="hello", idempotency_key="k" * KEY_LENGTH_MAX))
    wanted = Request(job="hello", idempotency_key="k" * length)
    with database.write() as connection, pytest.raises(UsageError) as in_transaction:
        run_service.submit(wanted, connection=connection)
    for ask in (run_service.submit, partial(run_service.submit, audited=True)):
        with pytest.raises(UsageError) as refused:
            ask(wanted)
        assert refused.value.specific_code == "key_length"
    assert in_transaction.value.specific_code == "key_length"
    assert count(database) == 1


def test_delay_priority_and_group_are_the_callers_to_choose(
    database: Database, run_service: Runs
) -> None:
    add_job(database, spec(priority=5))
    request = Request(job="hello", delay_seconds=90.5, priority=-7, concurrency_key="mine")
    run = read_run(database, run_service.submit(request).run_id)
    assert run.scheduled_for == NOON + timedelta(seconds=90.5)
    assert (run.priority, run.concurrency_key) == (-7, "mine")
    assert (
        read_run(database, run_service.submit(Request(job="hello", priority=0)).run_id).priority
        == 0
    )


def test_without_a_key_asking_twice_makes_two_runs(database: Database, run_service: Runs) -> None:
    add_job(database)
    answers = [run_service.submit(Request(job="hello")) for _ in range(2)]
    assert len({answer.run_id for answer in answers}) == 2


def test_with_a_key_asking_again_gives_the_same_run_also_when_it_has_ended(
    database: Database, run_service: Runs
) -> None:
    add_job(database)
    first = run_service.submit(Request(job="hello", idempotency_key="k"))
    run_service.cancel(first.run_id)
    again = run_service.submit(Request(job="hello", idempotency_key="k"))
    assert (again.run_id, again.is_new) == (first.run_id, False)
    assert count(database) == 1


def test_a_key_that_was_used_with_other_arguments_is_refused_and_nothing_is_stored(
    database: Database, run_service: Runs
) -> None:
    add_job(database, spec(arguments={"a": 1}))
    first = run_service.submit(Request(job="hello", arguments={"b": (2,)}, idempotency_key="k"))
    same = Request(job="hello", arguments={"b": [2], "a": 1}, idempotency_key="k")
    assert run_service.submit(same) == (first.run_id, False)
    ways: list[Callable[[Request], object]] = [
        run_service.submit,
        partial(run_service.submit, audited=True),
        lambda request: run_service.submit_many([Request(job="hello"), request]),
    ]
    others: list[dict[str, Any]] = [{}, {"b": [3]}, {"b": [2], "c": 1}, {"b": [2], "a": True}]
    for arguments, ask in product(others, ways):
        with pytest.raises(Conflict) as refused:
            ask(replace(same, arguments=arguments))
        assert refused.value.specific_code == "run_key_used"
    assert count(database) == 1


@pytest.mark.parametrize("given", [{}, {"b": 2}, {"a": 1}, {"a": 1, "b": 2, "c": 3}])
def test_a_request_gives_its_run_again_after_the_defaults_of_the_job_were_edited(
    database: Database, run_service: Runs, given: dict[str, Any]
) -> None:
    job_id = add_job(database, spec(arguments={"a": 1, "c": 3}))
    request = Request(job="hello", arguments=given, idempotency_key="k")
    first = run_service.submit(request)
    for defaults in ({"a": 2}, {}, {"a": 1, "b": 7, "d": [4]}):
        _edit_defaults(database, job_id, defaults)
        assert run_service.submit(request) == (first.run_id, False)
        assert run_service.submit(request, audited=True) == (first.run_id, False)
        for other in ({**given, "a": 9}, {**given, "d": 1}, {"c": 4}):
            with pytest.raises(Conflict) as refused:
                run_service.submit(replace(request, arguments=other))
            assert refused.value.specific_code == "run_key_used"
    assert count(database) == 1


def test_a_request_that_leaves_out_what_the_first_gave_is_another_one(
    database: Database, run_service: Runs
) -> None:
    add_job(database, spec(arguments={"a": 1}))
    run_service.submit(Request(job="hello", arguments={"a": 5}, idempotency_key="k"))
    with pytest.raises(Conflict) as refused:
        run_service.submit(Request(job="hello", idempotency_key="k"))
    assert refused.value.specific_code == "run_key_used"


def _edit_defaults(database: Database, job_id: int, defaults: dict[str, Any]) -> None:
    change_job(database, job_id, replace(job_of(database, job_id).spec, arguments=defaults))


def test_a_caller_whose_answer_was_lost_asks_again_with_its_key_and_gets_the_run(
    database: Database,
) -> None:
    add_job(database)
    unreliable = UnreliableDatabase(database)
    run_service = Runs(database=unreliable, actor="ada")
    unreliable.replies_to_lose = 1
    with pytest.raises(Unreachable):
        run_service.submit(Request(job="hello", idempotency_key="k"))
    assert not run_service.submit(Request(job="hello", idempotency_key="k")).is_new
    assert count(database) == 1


def test_of_ten_who_ask_at_once_with_one_key_all_get_the_same_run(
    database: Database, run_service: Runs
) -> None:
    add_job(database)
    answers = at_once(10, lambda _: run_service.submit(Request(job="hello", idempotency_key="k")))
    assert len({answer.run_id for answer in answers}) == 1
    assert sum(answer.is_new for answer in answers) == 1


def test_a_key_that_was_used_for_another_job_is_refused_and_nothing_is_stored(
    database: Database, run_service: Runs
) -> None:
    add_job(database, spec(name="hello"))
    add_job(database, spec(name="other"))
    first = run_service.submit(Request(job="hello", idempotency_key="k"))
    used, good = Request(job="other", idempotency_key="k"), Request(job="other")
    for ask in (
        lambda: run_service.submit(used),
        lambda: run_service.submit(used, audited=True),
        lambda: run_service.submit_many([good, used]),
        lambda: run_service.submit_many(
            [Request(job=name, idempotency_key="both") for name in ("hello", "other")]
        ),
    ):
        for _ in range(2):  # the second time both jobs are known
            with pytest.raises(Conflict) as refused:
                ask()
            assert refused.value.specific_code == "run_key_used"
    assert count(database) == 1
    answers = run_service.submit_each(
        [StartRequest(one, "ada") for one in (used, good, replace(used, job="hello"))]
    )
    assert isinstance(answers[0], Conflict)
    assert [one.job_name for one in answers[1:] if isinstance(one, Run)] == ["other", "hello"]
    assert isinstance(answers[2], Run)
    assert answers[2].id == first.run_id


def test_a_callers_key_cannot_be_taken_for_one_of_ours(
    database: Database, run_service: Runs, term: Term
) -> None:
    ended = run_in_state(database, RunState.FAILED, term)
    run_service.submit(Request(job="hello", idempotency_key=f"retry:{ended.id}"))
    assert run_service.get(ended.id).retried_as is None
    assert run_service.retry(ended.id).is_new


def test_many_are_stored_together_with_their_answers_in_order(
    database: Database, run_service: Runs
) -> None:
    add_job(database)
    known = run_service.submit(Request(job="hello", idempotency_key="b", arguments={"n": 1}))
    wanted = [("a", 0), ("b", 1), (None, 2), ("a", 0)]
    answers = run_service.submit_many(
        [Request(job="hello", idempotency_key=key, arguments={"n": n}) for key, n in wanted]
    )
    assert [answer.is_new for answer in answers] == [True, False, True, False]
    assert answers[1].run_id == known.run_id
    assert answers[3].run_id == answers[0].run_id
    assert read_run(database, answers[2].run_id).arguments == {"n": 2}
    assert run_service.submit_many([]) == []


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


def test_one_bad_request_among_many_stores_none_of_them(
    database: Database, run_service: Runs
) -> None:
    add_job(database)
    good = Request(job="hello")
    for bad, error in BAD_REQUESTS:
        with pytest.raises(error):
            run_service.submit_many([good, replace(good, **bad), good])
    assert count(database) == 0


def test_an_unknown_job_is_answered_with_the_nearest_one(
    database: Database, run_service: Runs
) -> None:
    add_job(database)
    with pytest.raises(NotFound) as caught:
        run_service.submit(Request(job="helo"))
    assert 'Did you mean "hello"?' in str(caught.value.hint)


def test_a_removed_job_cannot_be_asked_for(database: Database, run_service: Runs) -> None:
    job_id = add_job(database)
    with database.write() as connection:
        job = jobs.get(connection, job_id)
        assert job is not None
        jobs.remove(connection, job=job)
    with pytest.raises(NotFound):
        run_service.submit(Request(job="hello"))


def test_in_the_callers_transaction_the_run_exists_exactly_if_its_rows_do(
    database: Database,
) -> None:
    woken: list[bool] = []
    run_service = Runs(database=database, actor="ada")
    run_service.wake_by(lambda: woken.append(True))
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
            run_service.submit(
                Request(job="hello", idempotency_key=str(number)), connection=connection
            )
            if number == 1:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        order(1)
    assert (count(database), audited(database)) == (0, [])
    order(2)
    assert (count(database), len(audited(database))) == (1, 1)
    assert woken == []


def test_a_job_that_was_rolled_back_is_forgotten_when_another_has_its_id(
    database: Database, run_service: Runs
) -> None:
    rolled_back: list[int] = []

    def roll_back(name: str) -> None:
        job = spec(name, arguments={"of": "rolled back"})
        with database.write() as connection:
            rolled_back.append(jobs.add(connection, job, source=JobSource.DATABASE))
            run_service.submit(Request(job=name), connection=connection)
            raise ZeroDivisionError

    for name in ("harmless", "delete_everything"):
        with pytest.raises(ZeroDivisionError):
            roll_back(name)
    job_id = add_job(database, spec("delete_everything"))
    assert not database.is_sqlite or rolled_back == [job_id, job_id]
    with pytest.raises(NotFound):
        run_service.submit(Request(job="harmless"))
    assert count(database) == 0
    submission = run_service.submit(Request(job="delete_everything"))
    assert read_run(database, submission.run_id).arguments == {}


def test_who_started_a_run_is_recorded_with_it_and_once_for_a_key(database: Database) -> None:
    run_service = Runs(database=database, actor="token:ci")
    add_job(database)
    started = [run_service.submit(Request(job="hello"), audited=True) for _ in range(3)]
    keyed = [
        run_service.submit(Request(job="hello", idempotency_key="a"), audited=True)
        for _ in range(2)
    ]
    assert [one.is_new for one in keyed] == [True, False]
    wanted = {str(one.run_id) for one in [*started, keyed[0]]}
    entries = [(one.object_id, one.action, one.actor, one.after) for one in audited(database)]
    assert {entry[0] for entry in entries} == wanted
    assert {entry[1:3] for entry in entries} == {("run.start", "token:ci")}
    assert all(entry[3] == {"job": "hello"} for entry in entries)
    assert len(entries) == count(database) == len(wanted)


def test_a_run_whose_start_cannot_be_recorded_is_not_stored(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_service = Runs(database=database, actor="token:ci")
    add_job(database)
    run_service.submit(Request(job="hello"), audited=True)

    def fail(*_: Any, **__: Any) -> None:
        raise Unreachable("gone")

    monkeypatch.setattr(audit, "record_many", fail)
    for _ in range(2):
        with pytest.raises(Unreachable):
            run_service.submit(Request(job="hello"), audited=True)
    run_service._jobs.clear()  # the job is not known, and is looked up
    with pytest.raises(Unreachable):
        run_service.submit(Request(job="hello"), audited=True)
    assert count(database) == 1
    monkeypatch.undo()
    assert run_service.submit(Request(job="hello"), audited=True).is_new
