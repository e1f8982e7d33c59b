"""Heartbeats, and a worker out of reach: it stops what it runs before the leader may take it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.factories import (
    WORKER,
    add_worker,
    read_run,
    run_in_state,
    take_lead,
)
from support.history_checker import check_history
from support.moving_clock import NOON, MovingClock
from support.statement_recorder import recorded
from support.unreliable_database import UnreliableDatabase
from tsuzuki.engine.leader.rescuer import Rescuer
from tsuzuki.engine.worker.heartbeat import Heartbeat, HeartbeatResult
from tsuzuki.model.clock import ManualClock
from tsuzuki.model.errors import Unreachable, UsageError
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import ContinuationState, RunState
from tsuzuki.model.worker import WorkerState
from tsuzuki.store import workers
from tsuzuki.store.leadership import Term
from tsuzuki.store.sql.database import Database

SETTINGS = EngineSettings(
    heartbeat_interval_seconds=2.0,
    worker_ttl_seconds=6.0,
    worker_grace_seconds=4.0,
    continuation_retry_count=3,
    continuation_retry_interval_seconds=0.3,
).checked()
DEADLINE = SETTINGS.worker_ttl_seconds + SETTINGS.continuation_seconds


class HeartbeatFixture:
    def __init__(self, database: Database, clock: MovingClock) -> None:
        self.database = database
        self.clock = clock
        self.faulty_database = UnreliableDatabase(database)
        self.worker_id = add_worker(database)
        self.term: Term = take_lead(database, lease_seconds=1_000_000)
        self.heartbeat = Heartbeat(
            database=self.faulty_database,
            clock=clock,
            settings=lambda: SETTINGS,
            worker_id=lambda: self.worker_id,
        )

    def lead(self) -> None:
        """One tick of the leader's rescuer."""
        Rescuer(database=self.database, settings=lambda: SETTINGS, random=Random(1)).tick(self.term)

    def running(self) -> int:
        return run_in_state(self.database, RunState.RUNNING, self.term).id

    def confirmation(self, run_id: int) -> ContinuationState:
        state: ContinuationState = read_run(self.database, run_id).continuation_state
        return state

    def state(self) -> WorkerState:
        with self.database.read() as connection:
            worker = workers.get(connection, self.worker_id)
        assert worker is not None
        return worker.state

    def heartbeats(self, count: int) -> list[HeartbeatResult]:
        """So many heartbeats, each as late as the one before it says."""
        results = []
        for _ in range(count):
            results.append(self.heartbeat.tick())
            self.clock.advance(self.heartbeat.seconds_to_next(results[-1]))
        return results

    def detach(self) -> None:
        with self.database.write() as connection:
            workers.detach(connection, [self.worker_id])


@pytest.fixture
def fixture(database: Database, clock: MovingClock) -> Iterator[HeartbeatFixture]:
    yield HeartbeatFixture(database, clock)
    check_history(database)


# --- each heartbeat --------------------------------------------------------------------------------


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


# --- detached -------------------------------------------------------------------------------------


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


# --- the law --------------------------------------------------------------------------------------


class DeadDatabase:
    """Never replies; a request fails after `timeout_seconds`."""

    def __init__(self, clock: ManualClock, timeout_seconds: float) -> None:
        self._clock = clock
        self._timeout_seconds = timeout_seconds

    def write(self) -> Any:
        self._clock.advance(self._timeout_seconds)
        raise Unreachable("the database is unreachable")

    statement = write


def seconds(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high, allow_nan=False).map(lambda value: round(value, 3))


@st.composite
def safe_settings(draw: st.DrawFn) -> EngineSettings:
    """Whatever an operator may set about workers, up to the very edge of what is accepted."""
    count = draw(st.integers(1, 20))
    retry_interval = draw(seconds(0.05, 20))
    interval = draw(seconds(0.1, 30))
    grace_min = round(max(count * retry_interval * 2 + 0.01, 0.1), 3)
    ttl_min = max(interval * 2, 0.5)
    return EngineSettings(
        continuation_retry_count=count,
        continuation_retry_interval_seconds=retry_interval,
        worker_grace_seconds=draw(st.one_of(seconds(grace_min, 900), st.just(grace_min))),
        heartbeat_interval_seconds=interval,
        worker_ttl_seconds=draw(st.one_of(seconds(ttl_min, 100), st.just(ttl_min))),
    ).checked()


@given(chosen=safe_settings(), phase=st.floats(0, 1))
@settings(max_examples=150, deadline=None)
def test_a_worker_out_of_reach_stops_before_the_leader_can_take_its_runs(
    chosen: EngineSettings, phase: float
) -> None:
    """Under every set of settings that is accepted, wherever between two heartbeats the outage starts."""
    clock = ManualClock(NOON)
    heartbeat = Heartbeat(
        database=DeadDatabase(clock, timeout_seconds=0.0),  # type: ignore[arg-type]
        clock=clock,
        settings=lambda: chosen,
        worker_id=lambda: WORKER,
    )
    clock.advance(chosen.heartbeat_interval_seconds * phase)
    sent = 0
    while (result := heartbeat.tick()) is not HeartbeatResult.LOST:
        assert result is HeartbeatResult.UNREACHABLE
        clock.advance(heartbeat.seconds_to_next(result))
        sent += 1
        assert sent < 100_000
    assert clock.monotonic() < chosen.lost_after_seconds
    earliest = chosen.worker_ttl_seconds + chosen.continuation_seconds
    assert clock.monotonic() >= earliest - 1e-6, "it stopped too early"


@given(chosen=safe_settings())
@settings(max_examples=50, deadline=None)
def test_settings_that_would_let_the_leader_judge_first_are_refused(
    chosen: EngineSettings,
) -> None:
    hasty = replace(chosen, worker_grace_seconds=chosen.continuation_seconds * 2)
    with pytest.raises(UsageError, match="worker_grace_seconds"):
        hasty.checked()
