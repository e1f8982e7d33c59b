"""The steps of coordination: a live worker sends heartbeats; wake-ups of other processes wake this one."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pytest

from support.coordination import detect_outage, reach, use_long_timeouts
from support.moving_clock import MovingClock
from support.redis_server import RedisServer
from tsuzuki.engine.coordination.protocol import (
    Coordination,
    NoCoordination,
    connect,
    heartbeat_ttl_seconds,
)
from tsuzuki.engine.coordination.steps import WAIT_SECONDS, CoordinationSteps
from tsuzuki.engine.wakeups import ProcessWakeUps
from tsuzuki.model.settings import EngineSettings
from tsuzuki.store.wakeups.channels import WakeupChannel

SETTINGS = EngineSettings()


@dataclass(kw_only=True)
class StepsFixture:
    """One process's steps, over a real Redis."""

    server: RedisServer
    coordination: Coordination
    clock: MovingClock
    wakeups: ProcessWakeUps
    steps: CoordinationSteps
    live_worker_id: str | None = "w-1"


@pytest.fixture
def fixture(clock: MovingClock, monkeypatch: pytest.MonkeyPatch) -> Iterator[StepsFixture]:
    use_long_timeouts(monkeypatch)
    wakeups = ProcessWakeUps(clock, worker_id=lambda: "w-1")
    with RedisServer() as server, closing(connect(server.url, clock)) as coordination:
        steps = CoordinationSteps(
            coordination=coordination,
            wakeups=wakeups,
            settings=lambda: SETTINGS,
            live_worker_id=lambda: fixture.live_worker_id,
        )
        fixture = StepsFixture(
            server=server, coordination=coordination, clock=clock, wakeups=wakeups, steps=steps
        )
        with closing(steps):
            yield fixture


def test_a_live_worker_is_heard_and_sends_two_heartbeats_within_one_ttl(
    fixture: StepsFixture,
) -> None:
    assert fixture.steps.heartbeat_step() * 2 <= heartbeat_ttl_seconds(SETTINGS)
    assert fixture.coordination.live_workers(["w-1"]) == {"w-1"}


def test_a_worker_that_may_not_go_on_sends_no_heartbeat(fixture: StepsFixture) -> None:
    fixture.live_worker_id = None
    fixture.steps.heartbeat_step()
    assert fixture.coordination.live_workers(["w-1"]) == frozenset()


@pytest.mark.parametrize("interval_seconds", [0.1, 2.0, 3.0])
def test_the_ttl_of_a_heartbeat_is_shorter_than_a_worker_may_be_silent(
    interval_seconds: float,
) -> None:
    settings = EngineSettings(heartbeat_interval_seconds=interval_seconds).checked()
    assert interval_seconds <= heartbeat_ttl_seconds(settings) < settings.worker_ttl_seconds


def test_a_new_listener_wakes_every_loop_and_then_the_ones_that_are_named(
    fixture: StepsFixture,
) -> None:
    assert fixture.steps.listen_step() == 0.0
    assert fixture.wakeups.leader.wait(0)
    assert fixture.wakeups.worker.wait(0)
    fixture.coordination.wake({WakeupChannel.WORKERS})
    fixture.steps.listen_step()
    assert fixture.wakeups.worker.wait(0)
    assert not fixture.wakeups.leader.wait(0)


def test_a_worker_that_is_named_by_its_id_wakes_and_another_does_not(
    fixture: StepsFixture,
) -> None:
    fixture.steps.listen_step()
    fixture.wakeups.worker.wait(0)
    fixture.coordination.wake({"w-2", "w-3"})
    fixture.steps.listen_step()
    assert not fixture.wakeups.worker.wait(0)
    fixture.coordination.wake({"w-1", "w-2"})
    fixture.steps.listen_step()
    assert fixture.wakeups.worker.wait(0)


def test_a_server_that_went_away_is_listened_to_again_when_it_is_back(
    fixture: StepsFixture,
) -> None:
    fixture.steps.listen_step()
    fixture.server.kill()
    assert fixture.steps.listen_step() == WAIT_SECONDS
    detect_outage(fixture.coordination)
    assert fixture.steps.listen_step() == WAIT_SECONDS
    fixture.server.start()
    reach(fixture.coordination, fixture.clock)
    assert fixture.wakeups.leader.wait(0), "from the first listener"
    assert fixture.steps.listen_step() == 0.0
    assert fixture.wakeups.leader.wait(0)


def test_without_coordination_there_is_nothing_to_hear(clock: MovingClock) -> None:
    steps = CoordinationSteps(
        coordination=NoCoordination(),
        wakeups=ProcessWakeUps(clock, worker_id=lambda: "w-1"),
        settings=lambda: SETTINGS,
        live_worker_id=lambda: "w-1",
    )
    steps.heartbeat_step()
    assert steps.listen_step() == WAIT_SECONDS
    steps.close()
