"""A Redis that is killed, paused, emptied, full or locked: it costs a moment, and never raises."""

import logging
import socket
import threading
from contextlib import closing
from functools import partial
from typing import Any

import pytest

from support.coordination import (
    LONG_SECONDS,
    detect_outage,
    everything,
    is_heard,
    listening,
    next_heard,
    reach,
    seconds_of,
    use_long_timeouts,
)
from support.moving_clock import MovingClock
from support.redis_server import RedisServer
from support.threads import at_once, in_background
from support.waiting import wait_until
from tsuzuki.engine.coordination.circuit_breaker import CALL_TIMEOUT_SECONDS, PROBE_INTERVAL_SECONDS
from tsuzuki.engine.coordination.protocol import Coordination, connect
from tsuzuki.engine.coordination.redis import PING_AFTER_SECONDS, PONG_WITHIN_SECONDS
from tsuzuki.model.errors import Unreachable
from tsuzuki.store.wakeups.channels import ALL_CHANNELS, WakeupChannel

SECRET = "not-for-the-log"
SLACK_SECONDS = 0.75
"""What a busy machine may add to a wait."""


@pytest.fixture
def long_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    use_long_timeouts(monkeypatch)


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger="tsuzuki")
    return caplog


def use_in_vain(coordination: Coordination, clock: MovingClock, *, rounds: int) -> None:
    """Everything, again and again, for much longer than the interval between two probes."""
    for _ in range(rounds):
        clock.advance(PROBE_INTERVAL_SECONDS)
        everything(coordination)
        assert coordination.listener() is None


class TestWaiting:
    def test_no_call_waits_for_a_server_that_was_killed(
        self, coordination: Coordination, clock: MovingClock, server: RedisServer
    ) -> None:
        reach(coordination, clock)
        server.kill()
        detect_outage(coordination)
        spent = seconds_of(lambda: use_in_vain(coordination, clock, rounds=20))
        assert spent < CALL_TIMEOUT_SECONDS + SLACK_SECONDS

    def test_a_paused_server_keeps_one_caller_for_a_moment_and_the_others_not_at_all(
        self, coordination: Coordination, clock: MovingClock, server: RedisServer
    ) -> None:
        reach(coordination, clock)
        server.pause()
        assert (
            seconds_of(lambda: detect_outage(coordination)) < CALL_TIMEOUT_SECONDS + SLACK_SECONDS
        )
        spent = seconds_of(lambda: use_in_vain(coordination, clock, rounds=20))
        assert spent < CALL_TIMEOUT_SECONDS + SLACK_SECONDS
        server.resume()
        reach(coordination, clock)

    def test_many_callers_of_a_paused_server_wait_together_not_in_turn(
        self, coordination: Coordination, clock: MovingClock, server: RedisServer
    ) -> None:
        reach(coordination, clock)
        server.pause()
        spent = at_once(16, lambda _: seconds_of(lambda: detect_outage(coordination)))
        assert max(spent) < CALL_TIMEOUT_SECONDS + SLACK_SECONDS

    def test_a_host_name_that_is_never_resolved_holds_no_call_up(
        self, clock: MovingClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """No timeout of a socket covers the lookup of its address."""
        has_asked, may_answer = threading.Event(), threading.Event()

        def look_up(*_: object) -> list[Any]:
            has_asked.set()
            may_answer.wait(LONG_SECONDS)
            raise socket.gaierror

        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        coordination = connect("redis://nowhere.invalid", clock)
        spent = seconds_of(lambda: everything(coordination))
        assert has_asked.is_set()
        assert spent < CALL_TIMEOUT_SECONDS + SLACK_SECONDS
        assert seconds_of(coordination.close) < CALL_TIMEOUT_SECONDS + SLACK_SECONDS
        may_answer.set()

    def test_a_call_about_nothing_is_not_sent(
        self, coordination: Coordination, server: RedisServer
    ) -> None:
        server.pause()
        assert coordination.live_workers([]) == frozenset()
        assert coordination.reserve({}, ttl_seconds=LONG_SECONDS) == frozenset()
        coordination.release([])
        assert coordination.listener() is not None, "no call has found out that it is paused"


@pytest.mark.usefixtures("long_timeouts")
class TestComingBack:
    def test_a_server_that_was_killed_is_used_again_when_it_is_back(
        self, coordination: Coordination, clock: MovingClock, server: RedisServer
    ) -> None:
        for _ in range(3):
            server.kill()
            detect_outage(coordination)
            server.start()
            reach(coordination, clock)

    def test_it_is_not_tried_before_its_time(
        self, coordination: Coordination, server: RedisServer
    ) -> None:
        server.kill()
        detect_outage(coordination)
        server.start()
        everything(coordination)
        with server.client() as client:
            assert client.keys() == []

    def test_a_server_that_is_not_there_at_the_start_is_used_when_it_is(
        self, server: RedisServer, clock: MovingClock
    ) -> None:
        server.kill()
        with closing(connect(server.url, clock)) as coordination:
            everything(coordination)
            server.start()
            reach(coordination, clock)

    def test_an_emptied_server_has_only_forgotten(
        self, coordination: Coordination, server: RedisServer
    ) -> None:
        coordination.reserve({1: "w-1"}, ttl_seconds=LONG_SECONDS)
        assert is_heard(coordination)
        with listening(coordination) as listener:
            server.flush()
            assert coordination.live_workers(["w-1"]) == frozenset()
            assert coordination.reserve({1: "w-2"}, ttl_seconds=LONG_SECONDS) == frozenset()
            assert is_heard(coordination)
            coordination.wake({WakeupChannel.LEADER})
            assert next_heard(listener) == {WakeupChannel.LEADER}


class TestListening:
    def test_a_server_that_stops_answering_is_abandoned(
        self, coordination: Coordination, clock: MovingClock, server: RedisServer
    ) -> None:
        with listening(coordination) as listener:
            server.pause()
            clock.advance(PING_AFTER_SECONDS)
            assert listener.wait(0) == ()
            clock.advance(PONG_WITHIN_SECONDS)
            with pytest.raises(Unreachable):
                listener.wait(0)

    def test_a_listener_that_cannot_start_raises(
        self, coordination: Coordination, server: RedisServer
    ) -> None:
        server.pause()
        listener = coordination.listener()
        assert listener is not None
        with closing(listener), pytest.raises(Unreachable):
            listener.wait(LONG_SECONDS)
        assert coordination.listener() is None

    def test_a_crash_is_noticed_at_once_and_a_new_listener_hears_again(
        self, coordination: Coordination, clock: MovingClock, server: RedisServer
    ) -> None:
        with listening(coordination) as listener:
            waiting = in_background(lambda: next_heard(listener))
            server.kill()
            with pytest.raises(Unreachable):
                waiting.result(10.0)
        assert coordination.listener() is None, "there is nothing to listen to"
        server.start()
        reach(coordination, clock)
        with listening(coordination) as listener:
            coordination.wake({WakeupChannel.LEADER})
            assert next_heard(listener) == {WakeupChannel.LEADER}


@pytest.mark.usefixtures("long_timeouts")
class TestLog:
    def test_an_outage_is_logged_once_and_so_is_its_end(
        self,
        coordination: Coordination,
        clock: MovingClock,
        server: RedisServer,
        logged: pytest.LogCaptureFixture,
    ) -> None:
        assert is_heard(coordination)
        server.kill()
        detect_outage(coordination)
        use_in_vain(coordination, clock, rounds=5)
        server.start()
        reach(coordination, clock)
        assert [record.levelname for record in logged.records] == ["WARNING", "INFO"]
        assert all(str(server.port) in record.getMessage() for record in logged.records)

    def test_a_server_that_cannot_be_written_is_one_outage_and_not_many(
        self,
        coordination: Coordination,
        clock: MovingClock,
        server: RedisServer,
        logged: pytest.LogCaptureFixture,
    ) -> None:
        """It answers all the time, and yet it is of no help."""
        with server.client() as client:
            client.config_set("maxmemory", 1)
            assert coordination.reserve({1: "w-1"}, ttl_seconds=LONG_SECONDS) == frozenset()
            use_in_vain(coordination, clock, rounds=5)
            client.config_set("maxmemory", 0)
        reach(coordination, clock)
        assert [record.levelname for record in logged.records] == ["WARNING", "INFO"]

    def test_a_wrong_password_is_an_outage_and_is_not_logged(
        self, clock: MovingClock, logged: pytest.LogCaptureFixture
    ) -> None:
        with RedisServer(password="the-right-one") as server:
            wrong = server.url.replace("the-right-one", SECRET)
            with closing(connect(wrong, clock)) as coordination:
                everything(coordination)
                use_in_vain(coordination, clock, rounds=5)
            assert len(logged.records) == 1
            assert SECRET not in str([vars(record) for record in logged.records])
            with closing(connect(server.url, clock)) as coordination:
                assert is_heard(coordination)

    def test_nothing_is_logged_and_nothing_sent_after_closing(
        self, coordination: Coordination, server: RedisServer, logged: pytest.LogCaptureFixture
    ) -> None:
        coordination.close()
        server.kill()
        everything(coordination)
        assert coordination.listener() is None
        coordination.close()
        assert logged.records == []


def test_nothing_is_raised_while_it_comes_and_goes(
    server: RedisServer, coordination: Coordination, clock: MovingClock
) -> None:
    is_over = threading.Event()

    def use(number: int) -> int:
        rounds = 0
        while not is_over.is_set():
            coordination.heartbeat(f"w-{number}", ttl_seconds=1.0)
            coordination.live_workers([f"w-{number}", "w-1"])
            coordination.reserve({rounds: f"w-{number}"}, ttl_seconds=1.0)
            coordination.release([rounds])
            coordination.wake(ALL_CHANNELS)
            clock.advance(0.01)
            rounds += 1
        return rounds

    users = [in_background(partial(use, number)) for number in range(2, 6)]
    for _ in range(3):
        server.kill()
        wait_until(lambda: coordination.listener() is None, "the crash was noticed")
        server.start()
        reach(coordination, clock)
        server.pause()
        wait_until(lambda: coordination.listener() is None, "the pause was noticed")
        server.resume()
        server.flush()
        reach(coordination, clock)
    is_over.set()
    assert all(user.result(10.0) for user in users)
