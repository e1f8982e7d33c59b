"""Heartbeats, and a worker out of reach: it stops what it runs before the leader may take it."""

from collections.abc import Iterator
from typing import Any

import pytest

from support.factories import (
    WORKER,
    read_run,
)
from support.heartbeat_fixture import DEADLINE, SETTINGS, HeartbeatFixture
from support.history_checker import check_history
from support.moving_clock import NOON, MovingClock
from support.statement_recorder import recorded
from support.unreliable_database import UnreliableDatabase
from tsuzuki.engine.worker.heartbeat import Heartbeat, HeartbeatResult
from tsuzuki.model.states import RunState
from tsuzuki.store import workers
from tsuzuki.store.sql.database import Database


@pytest.fixture
def fixture(database: Database, clock: MovingClock) -> Iterator[HeartbeatFixture]:
    yield HeartbeatFixture(database, clock)
    check_history(database)


# --- each heartbeat -------------------------------------------------------------------------------


def test_a_heartbeat_is_one_write_whatever_the_worker_runs(fixture: HeartbeatFixture) -> None:
    for _ in range(3):
        fixture.running()
    fixture.clock.advance(2.0)
    with recorded(fixture.database) as sent:
        assert fixture.heartbeat.tick() is HeartbeatResult.OK
    assert len(sent) == 1
    with fixture.database.read() as connection:
        worker = workers.get(connection, WORKER)
    assert worker is not None
    assert (worker.heartbeat_at - NOON).total_seconds() == 2.0
    assert fixture.heartbeat.seconds_to_next(HeartbeatResult.OK) == 2.0


def test_heartbeats_are_as_frequent_when_answers_are_slow(fixture: HeartbeatFixture) -> None:
    for slow_seconds, wait_seconds in ((0.5, 1.5), (1.9, 0.5), (30.0, 0.5)):
        fixture.heartbeat.tick()
        fixture.clock.advance(slow_seconds)
        assert fixture.heartbeat.seconds_to_next(HeartbeatResult.OK) == wait_seconds


def test_a_draining_worker_is_told_so(fixture: HeartbeatFixture) -> None:
    with fixture.database.write() as connection:
        workers.drain(connection, [WORKER])
    assert fixture.heartbeat.tick() is HeartbeatResult.DRAINING
    assert fixture.heartbeat.seconds_to_next(HeartbeatResult.DRAINING) == 2.0


@pytest.mark.parametrize("why", ["gone", "unknown"])
def test_a_worker_that_is_not_registered_any_more_is_lost(
    fixture: HeartbeatFixture, why: str
) -> None:
    if why == "gone":
        with fixture.database.write() as connection:
            workers.deregister(connection, WORKER)
    else:
        fixture.worker_id = "never-was"
    assert fixture.heartbeat.tick() is HeartbeatResult.LOST


def test_a_heartbeat_without_a_reply_is_unreachable(fixture: HeartbeatFixture) -> None:
    fixture.faulty_database.is_away = True
    assert fixture.heartbeat.tick() is HeartbeatResult.UNREACHABLE
    fixture.faulty_database.is_away = False
    fixture.faulty_database.replies_to_lose = 1
    assert fixture.heartbeat.tick() is HeartbeatResult.UNREACHABLE
    assert fixture.heartbeat.tick() is HeartbeatResult.OK


def test_an_error_that_is_not_an_outage_is_not_taken_for_one(fixture: HeartbeatFixture) -> None:
    class Broken(UnreliableDatabase):
        def statement(self) -> Any:
            raise ZeroDivisionError

    heartbeat = Heartbeat(
        database=Broken(fixture.database),
        clock=fixture.clock,
        settings=lambda: SETTINGS,
        worker_id=lambda: WORKER,
    )
    with pytest.raises(ZeroDivisionError):
        heartbeat.tick()


# --- out of reach ---------------------------------------------------------------------------------


def test_out_of_reach_there_is_time_until_the_deadline_and_not_longer(
    fixture: HeartbeatFixture,
) -> None:
    fixture.heartbeat.tick()
    fixture.faulty_database.is_away = True
    fixture.clock.advance(DEADLINE - 0.001)
    assert fixture.heartbeat.tick() is HeartbeatResult.UNREACHABLE
    assert fixture.heartbeat.seconds_to_next(HeartbeatResult.UNREACHABLE) == pytest.approx(0.001)
    fixture.clock.advance(0.001)
    assert fixture.heartbeat.tick() is HeartbeatResult.LOST


def test_back_before_the_deadline_all_is_well_and_the_time_counts_anew(
    fixture: HeartbeatFixture,
) -> None:
    fixture.faulty_database.is_away = True
    fixture.clock.advance(DEADLINE - 0.001)
    assert fixture.heartbeat.tick() is HeartbeatResult.UNREACHABLE
    fixture.faulty_database.is_away = False
    assert fixture.heartbeat.tick() is HeartbeatResult.OK
    fixture.faulty_database.is_away = True
    fixture.clock.advance(DEADLINE - 0.001)
    assert fixture.heartbeat.tick() is HeartbeatResult.UNREACHABLE


def test_the_deadline_counts_from_before_the_request(fixture: HeartbeatFixture) -> None:
    """The database may have stored it at any moment between the request and its reply."""
    fixture.faulty_database.after_commit.append(lambda: fixture.clock.advance(3.0))
    assert fixture.heartbeat.tick() is HeartbeatResult.OK
    fixture.faulty_database.is_away = True
    fixture.clock.advance(DEADLINE - 3.0)
    assert fixture.heartbeat.tick() is HeartbeatResult.LOST


@pytest.mark.parametrize("step_seconds", [3600.0, -3600.0])
def test_a_step_of_the_wall_clock_neither_shortens_nor_lengthens_the_deadline(
    fixture: HeartbeatFixture, step_seconds: float
) -> None:
    fixture.heartbeat.tick()
    fixture.faulty_database.is_away = True
    fixture.clock.advance(DEADLINE - 0.001)
    fixture.clock.step(step_seconds)
    assert fixture.heartbeat.tick() is HeartbeatResult.UNREACHABLE
    fixture.clock.advance(0.001)
    assert fixture.heartbeat.tick() is HeartbeatResult.LOST


def test_a_worker_that_was_paused_without_a_leader_is_ok(fixture: HeartbeatFixture) -> None:
    run_id = fixture.running()
    fixture.clock.advance(3600)
    assert fixture.heartbeat.tick() is HeartbeatResult.OK
    fixture.lead()
    assert read_run(fixture.database, run_id).state is RunState.RUNNING


def test_a_worker_that_was_paused_until_its_runs_were_failed_is_lost(
    fixture: HeartbeatFixture,
) -> None:
    run_id = fixture.running()
    fixture.clock.advance(3600)
    fixture.lead()
    assert fixture.heartbeat.tick() is HeartbeatResult.LOST
    assert read_run(fixture.database, run_id).state is RunState.FAILED
