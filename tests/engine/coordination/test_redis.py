"""Coordination through a real Redis that works: heartbeats, leases and wake-ups."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from support.coordination import (
    LONG_SECONDS,
    is_heard,
    listening,
    next_heard,
    use_long_timeouts,
)
from support.moving_clock import MovingClock
from support.redis_server import RedisServer
from support.threads import at_once, in_background
from support.waiting import wait_until
from tsuzuki.engine.coordination.protocol import Coordination, connect
from tsuzuki.engine.coordination.redis import PING_AFTER_SECONDS
from tsuzuki.model.clock import SystemClock
from tsuzuki.store.wakeups.channels import ALL_CHANNELS, WakeupChannel


@pytest.fixture(autouse=True)
def _long_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    use_long_timeouts(monkeypatch)


@pytest.fixture
def other(server: RedisServer) -> Iterator[Coordination]:
    """The same Redis, as another process sees it."""
    with closing(connect(server.url, SystemClock())) as other:
        yield other


class TestHeartbeats:
    def test_workers_with_a_heartbeat_are_live_and_no_others(
        self, coordination: Coordination, other: Coordination
    ) -> None:
        coordination.heartbeat("w-1", ttl_seconds=LONG_SECONDS)
        coordination.heartbeat("w-2", ttl_seconds=LONG_SECONDS)
        assert coordination.live_workers(["w-1", "w-2", "w-3"]) == {"w-1", "w-2"}
        assert other.live_workers({"w-2", "w-3"}) == {"w-2"}

    def test_a_heartbeat_expires(self, coordination: Coordination) -> None:
        coordination.heartbeat("w-1", ttl_seconds=0.2)
        assert coordination.live_workers(["w-1"]) == {"w-1"}
        wait_until(lambda: not coordination.live_workers(["w-1"]), "the heartbeat has expired")

    def test_a_later_heartbeat_counts_longer(
        self, coordination: Coordination, server: RedisServer
    ) -> None:
        coordination.heartbeat("w-1", ttl_seconds=1.0)
        assert coordination.live_workers(["w-1"]) == {"w-1"}
        assert is_heard(coordination)
        with server.client() as client:
            assert client.pttl("tsuzuki:worker:beat:w-1") > 1_000

    @pytest.mark.parametrize("left_milliseconds", [None, 60_000])
    def test_under_clock_skew_a_heartbeat_that_outlives_its_ttl_does_not_count(
        self, coordination: Coordination, server: RedisServer, left_milliseconds: int | None
    ) -> None:
        """As after the server's clock was put back: it would keep a dead worker attached."""
        with server.client() as client:
            client.set("tsuzuki:worker:beat:w-1", "4000", px=left_milliseconds)
        assert coordination.live_workers(["w-1"]) == frozenset()
        assert is_heard(coordination), "the next heartbeat puts it right"

    def test_a_foreign_value_is_no_heartbeat_and_hides_no_other(
        self, coordination: Coordination, server: RedisServer
    ) -> None:
        coordination.heartbeat("w-1", ttl_seconds=LONG_SECONDS)
        with server.client() as client:
            client.set("tsuzuki:worker:beat:w-2", "not ours", px=60_000)
            client.set("tsuzuki:worker:beat:w-3", "-5", px=60_000)
        assert coordination.live_workers(["w-1", "w-2", "w-3"]) == {"w-1"}
        assert is_heard(coordination)


class TestLeases:
    def test_the_first_worker_has_it_and_another_one_is_refused(
        self, coordination: Coordination, other: Coordination
    ) -> None:
        first = coordination.reserve({1: "w-1", 2: "w-1"}, ttl_seconds=LONG_SECONDS)
        assert first == frozenset()
        assert other.reserve({2: "w-2", 3: "w-2"}, ttl_seconds=LONG_SECONDS) == {2}

    def test_the_same_worker_may_have_it_again(self, coordination: Coordination) -> None:
        for _ in range(2):
            assert coordination.reserve({1: "w-1"}, ttl_seconds=LONG_SECONDS) == frozenset()

    def test_of_many_that_want_it_at_once_one_gets_it(self, coordination: Coordination) -> None:
        def want(number: int) -> bool:
            return not coordination.reserve({1: f"w-{number}"}, ttl_seconds=LONG_SECONDS)

        assert sum(at_once(8, want)) == 1

    def test_it_is_over_when_released(self, coordination: Coordination) -> None:
        coordination.reserve({1: "w-1", 2: "w-1"}, ttl_seconds=LONG_SECONDS)
        coordination.release([1])
        assert coordination.reserve({1: "w-2", 2: "w-2"}, ttl_seconds=LONG_SECONDS) == {2}

    def test_it_ends_by_itself(self, coordination: Coordination) -> None:
        coordination.reserve({1: "w-1"}, ttl_seconds=0.2)
        wait_until(lambda: not coordination.reserve({1: "w-2"}, ttl_seconds=0.2), "it has ended")

    @pytest.mark.parametrize("left_milliseconds", [None, 3_600_000])
    def test_a_lease_that_outlives_its_ttl_does_not_count(
        self, coordination: Coordination, server: RedisServer, left_milliseconds: int | None
    ) -> None:
        with server.client() as client:
            client.set("tsuzuki:jobrun:lease:1", "w-1", px=left_milliseconds)
        assert coordination.reserve({1: "w-2"}, ttl_seconds=2.0) == frozenset()
        assert coordination.reserve({1: "w-3"}, ttl_seconds=2.0) == {1}, "it is w-2's now"

    def test_a_full_round_fits_into_one_call(self, coordination: Coordination) -> None:
        wanted = {run_id: f"w-{run_id % 7}" for run_id in range(500)}
        by_another = dict.fromkeys(wanted, "w-other")
        assert coordination.reserve(wanted, ttl_seconds=LONG_SECONDS) == frozenset()
        assert coordination.reserve(by_another, ttl_seconds=LONG_SECONDS) == frozenset(wanted)


class TestWakeUps:
    def test_a_wake_up_reaches_a_listener_of_another_process(
        self, coordination: Coordination, other: Coordination
    ) -> None:
        with listening(other) as listener:
            waiting = in_background(lambda: next_heard(listener))
            coordination.wake({WakeupChannel.LEADER})
            assert waiting.result(10.0) == {WakeupChannel.LEADER}
            coordination.wake({WakeupChannel.WORKERS})
            assert next_heard(listener) == {WakeupChannel.WORKERS}

    def test_all_channels_can_be_woken_at_once(
        self, coordination: Coordination, other: Coordination
    ) -> None:
        with listening(other) as listener:
            coordination.wake(ALL_CHANNELS)
            heard = {name for _ in range(2) for name in next_heard(listener)}
        assert heard == ALL_CHANNELS

    def test_a_last_wake_up_is_sent_before_closing(
        self, server: RedisServer, other: Coordination
    ) -> None:
        """A command that asks for a run and exits at once."""
        with listening(other) as listener:
            with closing(connect(server.url, SystemClock())) as short_lived:
                short_lived.wake({WakeupChannel.LEADER})
            assert next_heard(listener) == {WakeupChannel.LEADER}

    def test_a_silent_server_is_pinged_and_a_pong_is_enough(
        self, coordination: Coordination, clock: MovingClock
    ) -> None:
        with listening(coordination) as listener:
            for _ in range(5):
                clock.advance(PING_AFTER_SECONDS)
                assert listener.wait(0) == ()
                assert listener.wait(LONG_SECONDS) == (), "the answer ends the wait"
            coordination.wake({WakeupChannel.LEADER})
            assert next_heard(listener) == {WakeupChannel.LEADER}
