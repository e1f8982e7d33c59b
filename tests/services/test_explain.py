"""Why a run is where it is: every cause, in a sentence that a person can act on."""

import dataclasses
import socket
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from support.dialects import only_on_sqlite
from support.factories import (
    WORKER,
    add_job,
    add_worker,
    create_run,
    read_run,
    run_in_state,
    spec,
    take_lead,
)
from support.moving_clock import NOON, MovingClock
from tsuzuki.model.abilities import Abilities
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.run import StartedRun
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import Reason, RunState, Trigger
from tsuzuki.services.explain import Cause, StatusReason
from tsuzuki.services.runs import Runs
from tsuzuki.store import jobs, leadership, workers
from tsuzuki.store.runs import cancel_requests, moves
from tsuzuki.store.schema import tables
from tsuzuki.store.sql.database import Database

ALLOW = ConcurrencyPolicy.ALLOW


class ExplainFixture:
    """A leader, a worker and a job; each test takes something away."""

    def __init__(self, database: Database, clock: MovingClock) -> None:
        self.database = database
        self.clock = clock
        self.term = take_lead(database, lease_seconds=1000)
        add_worker(database, capacity=2)
        self.job_id = add_job(database, spec())

    def why(self, run_id: int) -> list[StatusReason]:
        explanation = Runs(database=self.database, actor="ada").explain(run_id)
        assert explanation.run_id == run_id
        assert explanation.state is read_run(self.database, run_id).state
        return explanation.reasons

    def only(self, run_id: int) -> tuple[Cause, Mapping[str, Any]]:
        """The cause and the values in its sentence."""
        (reason,) = self.why(run_id)
        return reason.cause, reason.sentence.values

    def waiting(self, **changes: Any) -> int:
        return create_run(self.database, self.job_id, **changes).id

    def change(self, act: Callable[[Any], object]) -> None:
        with self.database.write() as connection:
            act(connection)

    def advance(self, seconds: float) -> None:
        """Let time pass; the worker is heard at its end."""
        self.clock.advance(seconds)
        self.change(lambda c: workers.heartbeat(c, WORKER))

    def change_job(self, **changes: Any) -> None:
        with self.database.write() as connection:
            job = jobs.get(connection, self.job_id)
            assert job is not None
            assert jobs.change(connection, job=job, spec=dataclasses.replace(job.spec, **changes))

    def hold(self, run_id: int, worker_id: str = WORKER) -> None:
        assignment = moves.Assignment(run=moves.RunRef(id=run_id, version=1), worker_id=worker_id)
        self.change(lambda c: moves.assign(c, term=self.term, assignments=[assignment]))

    def running(self) -> int:
        return run_in_state(self.database, RunState.RUNNING, self.term).id


@pytest.fixture
def fixture(database: Database, clock: MovingClock) -> ExplainFixture:
    return ExplainFixture(database, clock)


def test_skipped_ticks_are_explained_as_a_range(fixture: ExplainFixture) -> None:
    run_id = fixture.waiting(
        trigger=Trigger.TIME, covers_ticks=10, covers_until=NOON + timedelta(hours=9)
    )
    run = moves.RunRef(id=run_id, version=1)
    reason = Reason.SCHEDULE_CHANGED
    fixture.change(lambda c: moves.cancel(c, operator="ada", runs=[run], reason=reason))
    (told,) = fixture.why(run_id)
    assert told.cause is Cause.ENDED
    assert told.sentence.values == {
        "ticks": 10,
        "first": NOON,
        "last": NOON + timedelta(hours=9),
        "reason": reason,
    }


# --- waiting --------------------------------------------------------------------------------------


def test_next(fixture: ExplainFixture) -> None:
    assert fixture.only(fixture.waiting()) == (Cause.NEXT, {})


def test_an_orphan_waits_like_any_run(fixture: ExplainFixture) -> None:
    orphan = run_in_state(fixture.database, RunState.ORPHANED, fixture.term).id
    assert fixture.only(orphan)[0] is Cause.NEXT


def test_not_due(fixture: ExplainFixture) -> None:
    run_id = fixture.waiting(scheduled_for=NOON + timedelta(minutes=5))
    assert fixture.only(run_id) == (Cause.NOT_DUE, {"when": NOON + timedelta(minutes=5)})
    fixture.advance(300)
    assert fixture.only(run_id)[0] is Cause.NEXT


def test_waiting_for_retry(fixture: ExplainFixture) -> None:
    run_id = fixture.waiting(
        scheduled_for=NOON + timedelta(seconds=30), trigger=Trigger.RETRY, retry_of=7, attempt=3
    )
    assert fixture.only(run_id) == (
        Cause.WAITING_FOR_RETRY,
        {"run": 7, "attempt": 3, "when": NOON + timedelta(seconds=30)},
    )


def test_paused(fixture: ExplainFixture) -> None:
    run_id = fixture.waiting()
    fixture.change_job(enabled=False)
    (reason,) = fixture.why(run_id)
    assert (reason.cause, reason.sentence.values) == (Cause.PAUSED, {"job": "hello"})
    assert reason.hint is not None
    assert reason.hint.values == {"command": "tsuzuki job enable hello"}


def test_job_removed(fixture: ExplainFixture) -> None:
    run_id = fixture.waiting()
    with fixture.database.write() as connection:
        job = jobs.get(connection, fixture.job_id)
        assert job is not None
        jobs.remove(connection, job=job)
    assert fixture.only(run_id) == (Cause.JOB_REMOVED, {"job": "hello"})


def test_job_limit(fixture: ExplainFixture) -> None:
    running, run_id = fixture.running(), fixture.waiting()
    assert fixture.only(run_id) == (
        Cause.JOB_LIMIT,
        {"limit": 1, "held": 1, "runs": (f"run {running} (RUNNING)",)},
    )


def test_key_limit(fixture: ExplainFixture) -> None:
    fixture.change_job(concurrency_policy=ALLOW, concurrency_key="k", max_concurrent_per_key=1)
    first, second = (fixture.waiting(concurrency_key="same") for _ in range(2))
    free = fixture.waiting(concurrency_key="another")
    fixture.hold(first)
    assert fixture.only(second) == (
        Cause.KEY_LIMIT,
        {"limit": 1, "held": 1, "key": "'same'"},
    )
    assert fixture.only(free)[0] is Cause.NEXT


@pytest.mark.parametrize("how", ["the lease ran out", "it stepped down"])
def test_no_leader(fixture: ExplainFixture, how: str) -> None:
    run_id = fixture.waiting()
    if how == "it stepped down":
        fixture.change(lambda c: leadership.release(c, term=fixture.term))
        since = NOON
    else:
        fixture.advance(1000)
        since = NOON + timedelta(seconds=1000)
    assert fixture.only(run_id) == (Cause.NO_LEADER, {"since": since})


@only_on_sqlite
def test_database_locked(fixture: ExplainFixture, database: Database) -> None:
    run_id = fixture.waiting()
    fixture.advance(1000)
    with closing(sqlite3.connect(str(database.path), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        first, second = fixture.why(run_id)
    assert (first.cause, second.cause) == (Cause.DATABASE_LOCKED, Cause.NO_LEADER)
    assert first.sentence.values == {"leader": fixture.term.holder, "file": str(database.path)}
    assert fixture.only(run_id)[0] is Cause.NO_LEADER


def test_no_process_ever_led(database: Database) -> None:
    add_worker(database)
    run_id = create_run(database, add_job(database)).id
    (reason,) = Runs(database=database, actor="ada").explain(run_id).reasons
    assert (reason.cause, reason.sentence.values) == (Cause.NO_LEADER, {})
    assert reason.hint is not None
    assert reason.hint.values == {"command": "tsuzuki up"}


@pytest.mark.parametrize("left", ["drain", "detach", "leave"])
def test_no_worker(fixture: ExplainFixture, left: str) -> None:
    run_id = fixture.waiting()
    match left:
        case "drain":
            fixture.change(lambda c: workers.drain(c, [WORKER]))
        case "detach":
            fixture.change(lambda c: workers.detach(c, [WORKER]))
        case "leave":
            fixture.change(lambda c: workers.deregister(c, WORKER))
    assert fixture.only(run_id) == (Cause.NO_WORKER, {})


@pytest.mark.parametrize(
    ("seconds", "silence"),
    [(8.0, {"seconds": "8"}), (-3600.0, {})],
    ids=["silent", "clock_skew"],
)
def test_a_dead_worker_is_no_worker(
    fixture: ExplainFixture, seconds: float, silence: dict[str, str]
) -> None:
    fixture.clock.step(seconds)
    reasons = {reason.cause: reason.sentence for reason in fixture.why(fixture.waiting())}
    (dead,) = reasons[Cause.NO_WORKER].values["workers"]
    assert dead.values["worker"] == WORKER
    assert dead.values["why"].values == silence


def test_a_leader_that_died_here_leads_nothing(fixture: ExplainFixture) -> None:
    fixture.change(lambda c: leadership.release(c, term=fixture.term))
    take_lead(fixture.database, WORKER)
    with fixture.database.write() as connection:
        dead_here = {"host": socket.gethostname(), "pid": 2**22}
        connection.execute(update(tables.workers).values(**dead_here))
    no_leader, no_worker = fixture.why(fixture.waiting())
    assert no_leader.cause is Cause.NO_LEADER
    assert no_leader.sentence.values["leader"] == WORKER
    (dead,) = no_worker.sentence.values["workers"]
    assert (dead.values["worker"], dead.values["why"].values) == (WORKER, {})


def test_a_worker_of_another_job_is_no_worker(fixture: ExplainFixture) -> None:
    fixture.change(lambda c: workers.deregister(c, WORKER))
    add_worker(fixture.database, "foreground", only_job="another")
    (reason,) = fixture.why(fixture.waiting())
    assert reason.cause is Cause.NO_WORKER
    assert "another" in reason.sentence


def test_a_worker_of_another_run_is_no_worker(fixture: ExplainFixture) -> None:
    fixture.change(lambda c: workers.deregister(c, WORKER))
    waiting = fixture.waiting()
    add_worker(fixture.database, "foreground", only_job="hello", only_run=waiting + 1)
    (reason,) = fixture.why(waiting)
    assert reason.cause is Cause.NO_WORKER
    add_worker(fixture.database, "for it", only_job="hello", only_run=waiting)
    assert Cause.NO_WORKER not in {reason.cause for reason in fixture.why(waiting)}


def test_no_worker_with_its_tags(fixture: ExplainFixture) -> None:
    add_worker(fixture.database, "half", tags=frozenset({"gpu"}))
    fixture.change_job(tags=frozenset({"gpu", "eu"}))
    (reason,) = fixture.why(fixture.waiting())
    assert (reason.cause, reason.sentence.values) == (Cause.NO_TAGS, {"tags": ("eu", "gpu")})
    assert reason.hint is not None
    assert reason.hint.values == {"command": "tsuzuki worker --tag eu --tag gpu"}


@pytest.mark.parametrize(
    ("handler", "options", "named"),
    [
        ("books", {}, "books"),
        ("python", {"function": "webapp.jobs:work"}, "webapp"),
        ("python", {"function": "shop:gone"}, "shop:gone"),
        ("python", {"function": "__main__:work", "program": "/srv/work.py"}, "/srv/work.py"),
        ("python", {"function": "__main__:work"}, "__main__:work"),
    ],
)
def test_no_worker_with_its_handler(
    fixture: ExplainFixture, handler: str, options: dict[str, str], named: str
) -> None:
    fixture.change(lambda c: workers.deregister(c, WORKER))
    able = Abilities(
        kinds=frozenset({"python"}),
        packages=frozenset({"shop"}),
        program="/home/work.py",
        missing=frozenset({"shop:gone"}),
    )
    add_worker(fixture.database, "able", abilities=able)
    fixture.change_job(handler=handler, options=options)
    (reason,) = fixture.why(fixture.waiting())
    assert reason.cause is Cause.NO_HANDLER
    assert named in reason.sentence
    assert reason.hint


def test_workers_that_cannot_execute_it_do_not_count_as_full(fixture: ExplainFixture) -> None:
    fixture.change_job(handler="python", options={"function": "shop:work"}, max_concurrent=9)
    for _ in range(2):
        fixture.hold(fixture.waiting())
    able = Abilities(kinds=frozenset({"python"}), packages=frozenset({"shop"}))
    add_worker(fixture.database, "unable", abilities=Abilities(kinds=frozenset()))
    assert fixture.only(fixture.waiting())[0] is Cause.CAPACITY
    add_worker(fixture.database, "able", abilities=able)
    assert fixture.only(fixture.waiting())[0] is Cause.NEXT


def test_capacity(fixture: ExplainFixture) -> None:
    fixture.change_job(concurrency_policy=ALLOW)
    add_worker(fixture.database, "small", capacity=1)
    add_worker(fixture.database, "of no use", capacity=0)
    for worker_id in (WORKER, WORKER, "small"):
        fixture.hold(fixture.waiting(), worker_id)
    assert fixture.only(fixture.waiting()) == (
        Cause.CAPACITY,
        {"count": 3, "held": 3, "capacity": 3},
    )


def test_all_reasons_that_hold_are_told_together(fixture: ExplainFixture) -> None:
    fixture.running()
    run_id = fixture.waiting(scheduled_for=NOON + timedelta(hours=1))
    fixture.change_job(enabled=False)
    fixture.change(lambda c: workers.detach(c, [WORKER]))
    fixture.change(lambda c: leadership.release(c, term=fixture.term))
    assert [reason.cause for reason in fixture.why(run_id)] == [
        Cause.NOT_DUE,
        Cause.PAUSED,
        Cause.JOB_LIMIT,
        Cause.NO_LEADER,
        Cause.NO_WORKER,
    ]


# --- held -----------------------------------------------------------------------------------------


def test_assigned(fixture: ExplainFixture) -> None:
    run_id = fixture.waiting()
    fixture.hold(run_id)
    assert fixture.only(run_id) == (
        Cause.ASSIGNED,
        {"worker": WORKER, "at": NOON},
    )


def test_running(fixture: ExplainFixture) -> None:
    run_id = fixture.running()
    (reason,) = fixture.why(run_id)
    assert (reason.cause, reason.sentence.values) == (
        Cause.RUNNING,
        {"worker": WORKER, "since": NOON},
    )
    assert reason.hint is not None
    assert reason.hint.values == {"command": f"tsuzuki run logs {run_id} --follow"}


def test_worker_silent(fixture: ExplainFixture) -> None:
    run_id = fixture.running()
    fixture.clock.advance(5)
    assert fixture.only(run_id)[0] is Cause.RUNNING
    fixture.clock.advance(3)
    silent, running = fixture.why(run_id)
    assert (silent.cause, running.cause) == (Cause.WORKER_SILENT, Cause.RUNNING)
    assert (silent.sentence.values["worker"], silent.sentence.values["seconds"]) == (WORKER, "10")
    assert silent.sentence.values["why"].values == {"seconds": "8"}


def test_a_heartbeat_from_before_the_clock_was_put_back_does_not_count(
    fixture: ExplainFixture,
) -> None:
    run_id = fixture.running()
    fixture.clock.step(-3600)
    silent, running = fixture.why(run_id)
    assert (silent.cause, running.cause) == (Cause.WORKER_SILENT, Cause.RUNNING)
    assert "clock skew" in silent.sentence.values["why"]


@pytest.mark.parametrize("left", ["detach", "leave"])
def test_worker_not_attached_any_more(fixture: ExplainFixture, left: str) -> None:
    run_id = fixture.running()
    if left == "detach":
        fixture.change(lambda c: workers.detach(c, [WORKER]))
    else:
        fixture.change(lambda c: workers.deregister(c, WORKER))
    silent = fixture.why(run_id)[0]
    assert silent.cause is Cause.WORKER_SILENT
    assert "attached" in silent.sentence.values["why"]


def test_cancel_requested(fixture: ExplainFixture) -> None:
    run_id = fixture.running()
    fixture.change(
        lambda c: cancel_requests.add(c, [run_id], reason=Reason.OPERATOR, requested_by="ada")
    )
    requested, running = fixture.why(run_id)
    assert (requested.cause, running.cause) == (Cause.CANCEL_REQUESTED, Cause.RUNNING)


def test_confirming(fixture: ExplainFixture) -> None:
    run_id = fixture.running()
    fixture.change(
        lambda c: workers.request_confirmation(c, worker_id=WORKER, deadline_seconds=1.0)
    )
    confirming, running = fixture.why(run_id)
    assert (confirming.cause, running.cause) == (Cause.CONFIRMING, Cause.RUNNING)


# --- ended ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "reasons"),
    [
        (RunState.SUCCEEDED, {}),
        (RunState.FAILED, {"reason": Reason.HANDLER_FAILED}),
        (RunState.CANCELED, {"reason": Reason.OPERATOR}),
    ],
)
def test_ended(fixture: ExplainFixture, state: RunState, reasons: dict[str, Reason]) -> None:
    run_id = run_in_state(fixture.database, state, fixture.term).id
    (reason,) = fixture.why(run_id)
    assert (reason.cause, reason.sentence.values) == (
        Cause.ENDED,
        {"at": NOON, "state": state, **reasons},
    )
    if state is RunState.SUCCEEDED:
        assert reason.hint is None
    else:
        assert reason.hint is not None
        assert reason.hint.values == {"command": f"tsuzuki run retry {run_id}"}


def test_a_retried_run_leads_to_its_newest_attempt(
    fixture: ExplainFixture, run_service: Runs
) -> None:
    first = run_in_state(fixture.database, RunState.FAILED, fixture.term).id
    second = run_service.retry(first).run_id
    run_service.cancel(second)
    third = run_service.retry(second).run_id
    for run_id in (first, second):
        (reason,) = fixture.why(run_id)
        assert reason.hint is not None
        assert (reason.hint.values["run"], reason.hint.values["state"]) == (
            third,
            RunState.PENDING,
        )


def test_a_skipped_run_names_the_run_that_was_in_the_way(fixture: ExplainFixture) -> None:
    live = fixture.running()
    run_id = fixture.waiting(trigger=Trigger.TIME, blocked_by=live)
    run = moves.RunRef(id=run_id, version=1)
    fixture.change(lambda c: moves.skip(c, term=fixture.term, runs=[run], reason=Reason.OVERLAP))
    (told,) = fixture.why(run_id)
    assert (told.sentence.values["run"], told.hint) == (live, None)


def test_waiting_runs_of_a_list_have_the_reason_that_explain_gives_first(
    fixture: ExplainFixture, run_service: Runs
) -> None:
    fixture.change_job(max_concurrent=1)
    running, waits = fixture.running(), fixture.waiting()
    later = fixture.waiting(scheduled_for=NOON + timedelta(minutes=5))
    found = run_service.find(RunFilter())
    reasons = run_service.waiting_reasons(found)
    assert {run_id: reason.cause for run_id, reason in reasons.items()} == {
        waits: Cause.JOB_LIMIT,
        later: Cause.NOT_DUE,
    }
    assert running not in reasons
    for run_id, reason in reasons.items():
        assert fixture.why(run_id)[0] == reason


def test_ended_with_what_went_wrong(fixture: ExplainFixture) -> None:
    run_id = fixture.running()
    ending = moves.RunEnd(
        run=StartedRun(id=run_id, version=3, epoch=fixture.term.epoch),
        state=RunState.FAILED,
        reason=moves.Reason.HANDLER_FAILED,
        error="exit code 3",
    )
    fixture.change(lambda c: moves.finish(c, worker_id=WORKER, ends=[ending]))
    assert fixture.only(run_id)[1] == {
        "at": NOON,
        "state": RunState.FAILED,
        "reason": Reason.HANDLER_FAILED,
        "error": "exit code 3",
    }


def test_every_cause_is_proven_here() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert [cause for cause in Cause if f"Cause.{cause.name}" not in text] == []
