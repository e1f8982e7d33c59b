"""A detached worker asks to be confirmed: it goes on when it is, and is lost when it is not in time."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from support.factories import (
    add_worker,
    read_run,
)
from support.heartbeat_fixture import DEADLINE, SETTINGS, HeartbeatFixture
from support.history_checker import check_history
from support.moving_clock import MovingClock
from tsuzuki.engine.worker.heartbeat import HeartbeatResult
from tsuzuki.model.states import ContinuationState, RunState
from tsuzuki.model.worker import WorkerState
from tsuzuki.store.sql.database import Database


@pytest.fixture
def fixture(database: Database, clock: MovingClock) -> Iterator[HeartbeatFixture]:
    yield HeartbeatFixture(database, clock)
    check_history(database)


def test_detached_for_silence_it_asks_and_is_confirmed(fixture: HeartbeatFixture) -> None:
    run_id = fixture.running()
    fixture.clock.advance(6.0)
    fixture.lead()
    assert fixture.heartbeat.tick() is HeartbeatResult.CONFIRMING
    assert fixture.confirmation(run_id) is ContinuationState.CONFIRMING
    deadline = read_run(fixture.database, run_id).continuation_check_deadline_at
    assert (deadline - fixture.clock.now()).total_seconds() == pytest.approx(0.9)
    fixture.clock.advance(fixture.heartbeat.seconds_to_next(HeartbeatResult.CONFIRMING))
    fixture.lead()
    assert fixture.heartbeat.tick() is HeartbeatResult.OK
    assert (fixture.state(), fixture.confirmation(run_id)) == (
        WorkerState.ATTACHED,
        ContinuationState.NONE,
    )
    assert read_run(fixture.database, run_id).state is RunState.RUNNING


def test_asking_is_never_too_late_while_the_runs_are_still_ours(fixture: HeartbeatFixture) -> None:
    """A process that was paused beyond its deadline asks before it stops anything."""
    run_id = fixture.running()
    fixture.clock.advance(8.0)
    fixture.lead()
    assert fixture.heartbeat.tick() is HeartbeatResult.CONFIRMING
    fixture.lead()
    assert fixture.heartbeat.tick() is HeartbeatResult.OK
    assert read_run(fixture.database, run_id).state is RunState.RUNNING


def test_detached_by_an_operator_it_asks_as_often_as_it_may_and_is_lost(
    fixture: HeartbeatFixture,
) -> None:
    run_id = fixture.running()
    fixture.detach()
    started = fixture.clock.now()
    results = []
    for _ in range(4):
        results.append(fixture.heartbeat.tick())
        fixture.lead()
        if results[-1] is HeartbeatResult.LOST:
            break
        fixture.clock.advance(fixture.heartbeat.seconds_to_next(results[-1]))
    assert results == [
        HeartbeatResult.CONFIRMING,
        HeartbeatResult.CONFIRMING,
        HeartbeatResult.CONFIRMING,
        HeartbeatResult.LOST,
    ]
    asked_seconds = (fixture.clock.now() - started).total_seconds()
    assert asked_seconds == pytest.approx(SETTINGS.continuation_seconds)
    assert read_run(fixture.database, run_id).state is RunState.RUNNING


def test_without_a_leader_it_is_not_confirmed_and_is_lost(fixture: HeartbeatFixture) -> None:
    fixture.running()
    fixture.clock.advance(6.0)
    fixture.lead()
    assert fixture.heartbeats(4) == [HeartbeatResult.CONFIRMING] * 3 + [HeartbeatResult.LOST]


def test_reattached_after_the_deadline_its_runs_stay_unconfirmed_and_it_is_lost(
    fixture: HeartbeatFixture,
) -> None:
    run_id = fixture.running()
    fixture.clock.advance(6.0)
    fixture.lead()
    assert fixture.heartbeat.tick() is HeartbeatResult.CONFIRMING
    fixture.clock.advance(SETTINGS.continuation_seconds)
    fixture.lead()
    assert fixture.state() is WorkerState.ATTACHED
    assert fixture.confirmation(run_id) is ContinuationState.CONFIRMING
    assert fixture.heartbeats(3) == [
        HeartbeatResult.CONFIRMING,
        HeartbeatResult.CONFIRMING,
        HeartbeatResult.LOST,
    ]


def test_once_confirmed_it_may_ask_as_often_again(fixture: HeartbeatFixture) -> None:
    fixture.running()
    for _ in range(3):
        fixture.clock.advance(6.0)
        fixture.lead()
        assert fixture.heartbeats(2) == [HeartbeatResult.CONFIRMING, HeartbeatResult.CONFIRMING]
        fixture.lead()
        assert fixture.heartbeat.tick() is HeartbeatResult.OK


def test_a_request_whose_reply_was_lost_was_made_and_is_confirmed(
    fixture: HeartbeatFixture,
) -> None:
    run_id = fixture.running()
    fixture.clock.advance(6.0)
    fixture.lead()
    with losing_the_second_reply(fixture):
        assert fixture.heartbeat.tick() is HeartbeatResult.UNREACHABLE
    assert fixture.confirmation(run_id) is ContinuationState.CONFIRMING
    fixture.clock.advance(0.3)
    fixture.lead()
    assert fixture.heartbeat.tick() is HeartbeatResult.OK
    assert fixture.confirmation(run_id) is ContinuationState.NONE


@contextmanager
def losing_the_second_reply(fixture: HeartbeatFixture) -> Iterator[None]:
    """Of a heartbeat and a request for confirmation, the reply to the request is lost."""
    write, calls = fixture.faulty_database.write, []

    def losing() -> Any:
        calls.append(1)
        fixture.faulty_database.replies_to_lose = 1
        return write()

    fixture.faulty_database.write = losing  # type: ignore[method-assign]
    yield
    fixture.faulty_database.write = write  # type: ignore[method-assign]
    assert len(calls) == 1


def test_detached_with_nothing_running_it_is_reattached(fixture: HeartbeatFixture) -> None:
    fixture.clock.advance(6.0)
    fixture.lead()
    assert fixture.heartbeat.tick() is HeartbeatResult.CONFIRMING
    fixture.lead()
    assert fixture.heartbeat.tick() is HeartbeatResult.OK


def test_out_of_reach_while_asking_the_deadline_of_the_last_good_heartbeat_counts(
    fixture: HeartbeatFixture,
) -> None:
    fixture.heartbeat.tick()
    fixture.clock.advance(1.0)
    fixture.detach()
    assert fixture.heartbeat.tick() is HeartbeatResult.CONFIRMING
    fixture.faulty_database.is_away = True
    fixture.clock.advance(DEADLINE - 1.001)
    assert fixture.heartbeat.tick() is HeartbeatResult.UNREACHABLE
    fixture.clock.advance(0.001)
    assert fixture.heartbeat.tick() is HeartbeatResult.LOST


def test_under_a_new_id_the_former_one_does_not_count(fixture: HeartbeatFixture) -> None:
    fixture.detach()
    fixture.heartbeats(2)
    fixture.worker_id = add_worker(fixture.database, "new")
    fixture.heartbeat.renew(fixture.clock.monotonic())
    assert fixture.heartbeat.tick() is HeartbeatResult.OK
