"""Why a run is where it is: every cause, in a sentence that a person can act on."""

import dataclasses
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

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
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.run import Started
from tsuzuki.model.states import RunState, Trigger
from tsuzuki.services.explain import Cause, StatusReason
from tsuzuki.services.runs import Runs
from tsuzuki.store import jobs, leadership, workers
from tsuzuki.store.runs import moves
from tsuzuki.store.sql.database import Database

ALLOW = ConcurrencyPolicy.ALLOW


class Stage:
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
        return explanation.grounds

    def only(self, run_id: int) -> tuple[Cause, str]:
        (reason,) = self.why(run_id)
        return reason.cause, reason.sentence

    def waiting(self, **changes: Any) -> int:
        return create_run(self.database, self.job_id, **changes).id

    def change(self, act: Callable[[Any], object]) -> None:
        with self.database.write() as connection:
            act(connection)

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
def stage(database: Database, clock: MovingClock) -> Stage:
    return Stage(database, clock)


# --- waiting --------------------------------------------------------------------------------------


def test_next(stage: Stage) -> None:
    assert stage.only(stage.waiting()) == (
        Cause.NEXT,
        "It is due and nothing is in its way: it is next.",
    )


def test_an_orphan_waits_like_anybody(stage: Stage) -> None:
    orphan = run_in_state(stage.database, RunState.ORPHANED, stage.term).id
    assert stage.only(orphan)[0] is Cause.NEXT


def test_not_due(stage: Stage) -> None:
    run_id = stage.waiting(scheduled_for=NOON + timedelta(minutes=5))
    assert stage.only(run_id) == (Cause.NOT_DUE, "It is not due before 2026-03-01 12:05:00Z.")
    stage.clock.advance(300)
    assert stage.only(run_id)[0] is Cause.NEXT


def test_waiting_for_retry(stage: Stage) -> None:
    run_id = stage.waiting(
        scheduled_for=NOON + timedelta(seconds=30), trigger=Trigger.RETRY, retry_of=7, attempt=3
    )
    assert stage.only(run_id) == (
        Cause.WAITING_FOR_RETRY,
        "It retries run 7 and waits for 2026-03-01 12:00:30Z (attempt 3).",
    )


def test_paused(stage: Stage) -> None:
    run_id = stage.waiting()
    stage.change_job(enabled=False)
    (reason,) = stage.why(run_id)
    assert (reason.cause, reason.sentence) == (Cause.PAUSED, "Its job hello is switched off.")
    assert reason.hint == "Switch it on with: tsuzuki job enable hello"


def test_job_removed(stage: Stage) -> None:
    run_id = stage.waiting()
    with stage.database.write() as connection:
        job = jobs.get(connection, stage.job_id)
        assert job is not None
        jobs.remove(connection, job=job)
    assert stage.only(run_id) == (
        Cause.JOB_REMOVED,
        "Its job hello was removed; it will be canceled.",
    )


def test_job_limit(stage: Stage) -> None:
    running, run_id = stage.running(), stage.waiting()
    assert stage.only(run_id) == (
        Cause.JOB_LIMIT,
        f"Its job allows 1 at once, and 1 are under way: run {running} (RUNNING).",
    )


def test_key_limit(stage: Stage) -> None:
    stage.change_job(concurrency_policy=ALLOW, concurrency_key="k", max_concurrent_per_key=1)
    first, second = (stage.waiting(concurrency_key="same") for _ in range(2))
    free = stage.waiting(concurrency_key="another")
    stage.hold(first)
    assert stage.only(second) == (
        Cause.KEY_LIMIT,
        "Its job allows 1 at once for the key 'same', and 1 are under way.",
    )
    assert stage.only(free)[0] is Cause.NEXT


@pytest.mark.parametrize("how", ["the lease ran out", "it stepped down"])
def test_no_leader(stage: Stage, how: str) -> None:
    run_id = stage.waiting()
    if how == "it stepped down":
        stage.change(lambda c: leadership.release(c, term=stage.term))
        since = "12:00:00"
    else:
        stage.clock.advance(1000)
        since = "12:16:40"
    assert stage.only(run_id) == (
        Cause.NO_LEADER,
        f"No process leads, since 2026-03-01 {since}Z: nothing is assigned.",
    )


def test_nobody_ever_led(database: Database) -> None:
    add_worker(database)
    run_id = create_run(database, add_job(database)).id
    (reason,) = Runs(database=database, actor="ada").explain(run_id).grounds
    assert reason.sentence == "No process leads, and none ever did: nothing is assigned."
    assert reason.hint == "Start one with: tsuzuki up"


@pytest.mark.parametrize("left", ["drain", "expel", "leave"])
def test_no_worker(stage: Stage, left: str) -> None:
    run_id = stage.waiting()
    match left:
        case "drain":
            stage.change(lambda c: workers.drain(c, [WORKER]))
        case "expel":
            stage.change(lambda c: workers.detach(c, [WORKER]))
        case "leave":
            stage.change(lambda c: workers.deregister(c, WORKER))
    assert stage.only(run_id) == (Cause.NO_WORKER, "No worker is attached.")


def test_no_worker_with_its_tags(stage: Stage) -> None:
    add_worker(stage.database, "half", tags=frozenset({"gpu"}))
    stage.change_job(tags=frozenset({"gpu", "eu"}))
    (reason,) = stage.why(stage.waiting())
    assert (reason.cause, reason.sentence) == (
        Cause.NO_TAGS,
        "No attached worker has all of its tags: eu, gpu.",
    )
    assert reason.hint == "Start one with: tsuzuki worker --tag eu --tag gpu"


def test_capacity(stage: Stage) -> None:
    stage.change_job(concurrency_policy=ALLOW)
    add_worker(stage.database, "small", capacity=1)
    add_worker(stage.database, "of no use", capacity=0)
    for worker_id in (WORKER, WORKER, "small"):
        stage.hold(stage.waiting(), worker_id)
    assert stage.only(stage.waiting()) == (
        Cause.CAPACITY,
        "All 3 workers that may run it are full: 3 of 3 slots.",
    )


def test_all_reasons_that_hold_are_told_together(stage: Stage) -> None:
    stage.running()
    run_id = stage.waiting(scheduled_for=NOON + timedelta(hours=1))
    stage.change_job(enabled=False)
    stage.change(lambda c: workers.detach(c, [WORKER]))
    stage.change(lambda c: leadership.release(c, term=stage.term))
    assert [reason.cause for reason in stage.why(run_id)] == [
        Cause.NOT_DUE,
        Cause.PAUSED,
        Cause.JOB_LIMIT,
        Cause.NO_LEADER,
        Cause.NO_WORKER,
    ]


# --- held -----------------------------------------------------------------------------------------


def test_assigned(stage: Stage) -> None:
    run_id = stage.waiting()
    stage.hold(run_id)
    assert stage.only(run_id) == (
        Cause.ASSIGNED,
        "It was assigned to host-1-aaaa at 2026-03-01 12:00:00Z and has not started.",
    )


def test_running(stage: Stage) -> None:
    run_id = stage.running()
    (reason,) = stage.why(run_id)
    assert (reason.cause, reason.sentence) == (
        Cause.RUNNING,
        "It has been running on host-1-aaaa since 2026-03-01 12:00:00Z.",
    )
    assert reason.hint == f"Follow it with: tsuzuki run logs {run_id} --follow"


def test_worker_silent(stage: Stage) -> None:
    run_id = stage.running()
    stage.clock.advance(5)
    assert stage.only(run_id)[0] is Cause.RUNNING
    stage.clock.advance(3)
    silent, running = stage.why(run_id)
    assert (silent.cause, running.cause) == (Cause.WORKER_SILENT, Cause.RUNNING)
    assert silent.sentence == (
        "Its worker host-1-aaaa has been silent for 8 s; "
        "after 10 s of silence the run is taken from it."
    )


def test_a_heartbeat_from_before_the_clock_was_put_back_does_not_count(stage: Stage) -> None:
    run_id = stage.running()
    stage.clock.step(-3600)
    silent, running = stage.why(run_id)
    assert (silent.cause, running.cause) == (Cause.WORKER_SILENT, Cause.RUNNING)
    assert silent.sentence.startswith(
        "Its worker host-1-aaaa sent its last heartbeat before the database's clock was put back;"
    )


@pytest.mark.parametrize("left", ["expel", "leave"])
def test_worker_not_attached_any_more(stage: Stage, left: str) -> None:
    run_id = stage.running()
    if left == "expel":
        stage.change(lambda c: workers.detach(c, [WORKER]))
    else:
        stage.change(lambda c: workers.deregister(c, WORKER))
    silent = stage.why(run_id)[0]
    assert silent.cause is Cause.WORKER_SILENT
    assert silent.sentence.startswith("Its worker host-1-aaaa is not attached any more;")


def test_confirming(stage: Stage) -> None:
    run_id = stage.running()
    stage.change(lambda c: workers.request_confirmation(c, worker_id=WORKER, deadline_seconds=1.0))
    confirming, running = stage.why(run_id)
    assert (confirming.cause, running.cause) == (Cause.CONFIRMING, Cause.RUNNING)
    assert confirming.sentence == "Its worker asks to be confirmed before it goes on."


# --- ended ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "tail"),
    [
        (RunState.SUCCEEDED, "SUCCEEDED."),
        (RunState.FAILED, "FAILED, handler_failed."),
        (RunState.CANCELED, "CANCELED, operator."),
    ],
)
def test_ended(stage: Stage, state: RunState, tail: str) -> None:
    run_id = run_in_state(stage.database, state, stage.term).id
    (reason,) = stage.why(run_id)
    assert (reason.cause, reason.sentence) == (
        Cause.ENDED,
        f"It ended at 2026-03-01 12:00:00Z: {tail}",
    )
    succeeded = state is RunState.SUCCEEDED
    assert reason.hint == (None if succeeded else f"Retry it with: tsuzuki run retry {run_id}")


def test_ended_with_what_went_wrong(stage: Stage) -> None:
    run_id = stage.running()
    ending = moves.RunEnd(
        run=Started(id=run_id, version=3, epoch=stage.term.epoch),
        state=RunState.FAILED,
        reason=moves.Reason.HANDLER_FAILED,
        error="exit code 3",
    )
    stage.change(lambda c: moves.finish(c, worker_id=WORKER, ends=[ending]))
    assert stage.only(run_id)[1].endswith("FAILED, handler_failed: exit code 3")


def test_every_cause_is_proven_here() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert [cause for cause in Cause if f"Cause.{cause.name}" not in text] == []
