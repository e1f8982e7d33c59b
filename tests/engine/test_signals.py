"""Signals: a worker that may go on says so; what others ring wakes this process."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pytest

from support.coordination import be_patient, lose_touch, reach
from support.moving_clock import MovingClock
from support.redis_server import RedisServer
from tsuzuki.engine.bell import Bells
from tsuzuki.engine.coordination import Coordination, NoCoordination, connect, vouched_seconds
from tsuzuki.engine.signals import WAIT_SECONDS, Signals
from tsuzuki.model.settings import EngineSettings
from tsuzuki.store.notices import Audience

SETTINGS = EngineSettings()


@dataclass(kw_only=True)
class Bench:
    """One process's signals, over a real Redis."""

    server: RedisServer
    coordination: Coordination
    clock: MovingClock
    bells: Bells
    signals: Signals
    living: str | None = "w-1"


@pytest.fixture
def bench(clock: MovingClock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    be_patient(monkeypatch)
    bells = Bells(clock, worker_id=lambda: "w-1")
    with RedisServer() as server, closing(connect(server.url, clock)) as coordination:
        signals = Signals(
            coordination=coordination,
            bells=bells,
            settings=lambda: SETTINGS,
            living=lambda: bench.living,
        )
        bench = Bench(
            server=server, coordination=coordination, clock=clock, bells=bells, signals=signals
        )
        with closing(signals):
            yield bench


def test_a_worker_that_lives_is_heard_and_two_beats_fit_into_one_ones_time(bench: Bench) -> None:
    assert bench.signals.beat() * 2 <= vouched_seconds(SETTINGS)
    assert bench.coordination.heard(["w-1"]) == {"w-1"}


def test_a_worker_that_may_not_go_on_says_nothing(bench: Bench) -> None:
    bench.living = None
    bench.signals.beat()
    assert bench.coordination.heard(["w-1"]) == frozenset()


@pytest.mark.parametrize("interval_seconds", [0.1, 2.0, 3.0])
def test_a_sign_never_counts_as_long_as_a_worker_may_be_silent(interval_seconds: float) -> None:
    settings = EngineSettings(heartbeat_interval_seconds=interval_seconds).checked()
    assert interval_seconds <= vouched_seconds(settings) < settings.worker_ttl_seconds


def test_a_new_listener_wakes_everybody_and_then_whom_others_ring_for(bench: Bench) -> None:
    assert bench.signals.hear() == 0.0
    assert bench.bells.leader.wait(0)
    assert bench.bells.worker.wait(0)
    bench.coordination.ring({Audience.WORKERS})
    bench.signals.hear()
    assert bench.bells.worker.wait(0)
    assert not bench.bells.leader.wait(0)


def test_a_worker_that_is_called_by_its_name_wakes_and_another_does_not(bench: Bench) -> None:
    bench.signals.hear()
    bench.bells.worker.wait(0)
    bench.coordination.ring({"w-2", "w-3"})
    bench.signals.hear()
    assert not bench.bells.worker.wait(0)
    bench.coordination.ring({"w-1", "w-2"})
    bench.signals.hear()
    assert bench.bells.worker.wait(0)


def test_a_server_that_went_away_is_listened_to_again_when_it_is_back(bench: Bench) -> None:
    bench.signals.hear()
    bench.server.kill()
    assert bench.signals.hear() == WAIT_SECONDS
    lose_touch(bench.coordination)
    assert bench.signals.hear() == WAIT_SECONDS
    bench.server.start()
    reach(bench.coordination, bench.clock)
    assert bench.bells.leader.wait(0), "from the first listener"
    assert bench.signals.hear() == 0.0
    assert bench.bells.leader.wait(0)


def test_without_coordination_there_is_nothing_to_hear(clock: MovingClock) -> None:
    signals = Signals(
        coordination=NoCoordination(),
        bells=Bells(clock, worker_id=lambda: "w-1"),
        settings=lambda: SETTINGS,
        living=lambda: "w-1",
    )
    signals.beat()
    assert signals.hear() == WAIT_SECONDS
    signals.close()
