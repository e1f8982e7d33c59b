"""Coordination through a real Redis: what it does when all is well, and that it never hurts."""

import socket
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from support.redis_server import RedisServer
from support.threads import at_once, in_background
from tsuzuki.engine.coordination import Coordination, NoCoordination, connect
from tsuzuki.engine.errands import PATIENCE_SECONDS, RETRY_SECONDS
from tsuzuki.engine.redis_coordination import PING_AFTER_SECONDS, PONG_WITHIN_SECONDS
from tsuzuki.model.clock import ManualClock, SystemClock
from tsuzuki.model.errors import ConfigurationError, Unreachable
from tsuzuki.store.notices import EVERYBODY, Audience, Listener

from support.moving_clock import NOON  # isort: skip

SECRET = "not-for-the-log"
LONG_SECONDS = 60.0
SLACK_SECONDS = 0.5
"""What a busy machine may add to any wait."""


@pytest.fixture
def server() -> Iterator[RedisServer]:
    server = RedisServer()
    yield server
    server.stop()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOON)


@pytest.fixture
def coordination(server: RedisServer, clock: ManualClock) -> Iterator[Coordination]:
    with closing(connect(server.url, clock)) as coordination:
        yield coordination


@pytest.fixture
def other(server: RedisServer) -> Iterator[Coordination]:
    """The same Redis, as another process sees it."""
    with closing(connect(server.url, SystemClock())) as other:
        yield other


def eventually(condition: Callable[[], bool]) -> None:
    never = threading.Event()
    end = time.monotonic() + 10.0
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        never.wait(0.005)


def seconds_of(call: Callable[[], object]) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began


def is_heard(coordination: Coordination) -> bool:
    """Whether a sign of life goes there and comes back."""
    coordination.beat("w-1", ttl_seconds=LONG_SECONDS)
    return coordination.heard(["w-1"]) == {"w-1"}


def comes_back(coordination: Coordination, clock: ManualClock) -> None:
    """Let time pass until it helps again."""

    def once_more() -> bool:
        clock.advance(RETRY_SECONDS)
        return is_heard(coordination)

    eventually(once_more)


def lose_touch(coordination: Coordination) -> None:
    """Make the one call that finds out that the server is away."""
    assert coordination.heard(["w-1"]) == frozenset()


def everything(coordination: Coordination) -> None:
    """Every method once, with the answers that say nothing."""
    coordination.beat("w-1", ttl_seconds=LONG_SECONDS)
    assert coordination.heard(["w-1", "w-2"]) == frozenset()
    assert coordination.lease({1: "w-1", 2: "w-2"}, ttl_seconds=LONG_SECONDS) == frozenset()
    coordination.release([1, 2])
    coordination.ring(EVERYBODY)


@contextmanager
def listening(coordination: Coordination) -> Iterator[Listener]:
    listener = coordination.listener()
    assert listener is not None
    with closing(listener):
        assert listener.wait(0) == EVERYBODY
        yield listener


def next_heard(listener: Listener) -> Collection[Audience]:
    heard: Collection[Audience] = ()
    while not heard:
        heard = listener.wait(LONG_SECONDS)
    return heard


class TestSignsOfLife:
    def test_who_has_beaten_is_heard_and_nobody_else(
        self, coordination: Coordination, other: Coordination
    ) -> None:
        coordination.beat("w-1", ttl_seconds=LONG_SECONDS)
        coordination.beat("w-2", ttl_seconds=LONG_SECONDS)
        assert coordination.heard(["w-1", "w-2", "w-3"]) == {"w-1", "w-2"}
        assert other.heard({"w-2", "w-3"}) == {"w-2"}

    def test_a_beat_stops_counting_by_itself(self, coordination: Coordination) -> None:
        coordination.beat("w-1", ttl_seconds=0.2)
        assert coordination.heard(["w-1"]) == {"w-1"}
        eventually(lambda: coordination.heard(["w-1"]) == frozenset())

    def test_a_later_beat_counts_longer(
        self, coordination: Coordination, server: RedisServer
    ) -> None:
        coordination.beat("w-1", ttl_seconds=1.0)
        assert is_heard(coordination)
        with server.client() as client:
            assert client.pttl("tsuzuki:worker:beat:w-1") > 1_000

    @pytest.mark.parametrize("left_milliseconds", [None, 60_000])
    def test_a_beat_that_outlives_its_time_is_not_believed(
        self, coordination: Coordination, server: RedisServer, left_milliseconds: int | None
    ) -> None:
        """As after the server's clock was set back: it would keep a dead worker attached."""
        assert is_heard(coordination)
        with server.client() as client:
            client.set("tsuzuki:worker:beat:w-1", "4000", px=left_milliseconds)
        assert coordination.heard(["w-1"]) == frozenset()

    def test_asking_about_nobody_asks_nobody(
        self, coordination: Coordination, server: RedisServer
    ) -> None:
        server.pause()
        assert seconds_of(lambda: coordination.heard([])) < PATIENCE_SECONDS
        assert seconds_of(lambda: coordination.lease({}, ttl_seconds=1)) < PATIENCE_SECONDS
        assert seconds_of(lambda: coordination.release([])) < PATIENCE_SECONDS


class TestLeases:
    def test_the_first_worker_has_it_and_another_one_is_told(
        self, coordination: Coordination, other: Coordination
    ) -> None:
        first = coordination.lease({1: "w-1", 2: "w-1"}, ttl_seconds=LONG_SECONDS)
        assert first == frozenset()
        assert other.lease({2: "w-2", 3: "w-2"}, ttl_seconds=LONG_SECONDS) == {2}

    def test_the_same_worker_may_have_it_again(self, coordination: Coordination) -> None:
        for _ in range(2):
            assert coordination.lease({1: "w-1"}, ttl_seconds=LONG_SECONDS) == frozenset()

    def test_of_many_that_want_it_at_once_one_gets_it(self, coordination: Coordination) -> None:
        def want(number: int) -> bool:
            return not coordination.lease({1: f"w-{number}"}, ttl_seconds=LONG_SECONDS)

        assert sum(at_once(8, want)) == 1

    def test_it_is_over_when_released(self, coordination: Coordination) -> None:
        coordination.lease({1: "w-1", 2: "w-1"}, ttl_seconds=LONG_SECONDS)
        coordination.release([1])
        assert coordination.lease({1: "w-2", 2: "w-2"}, ttl_seconds=LONG_SECONDS) == {2}

    def test_it_ends_by_itself(self, coordination: Coordination) -> None:
        coordination.lease({1: "w-1"}, ttl_seconds=0.2)
        eventually(lambda: not coordination.lease({1: "w-2"}, ttl_seconds=LONG_SECONDS))

    @pytest.mark.parametrize("left_milliseconds", [None, 3_600_000])
    def test_one_that_outlives_its_time_holds_nothing_up(
        self, coordination: Coordination, server: RedisServer, left_milliseconds: int | None
    ) -> None:
        with server.client() as client:
            client.set("tsuzuki:jobrun:lease:1", "w-1", px=left_milliseconds)
        assert coordination.lease({1: "w-2"}, ttl_seconds=2.0) == frozenset()

    def test_a_full_round_is_well_within_the_bound(self, coordination: Coordination) -> None:
        round_ = {run_id: f"w-{run_id % 7}" for run_id in range(500)}
        others = dict.fromkeys(round_, "w-other")
        assert coordination.lease(round_, ttl_seconds=LONG_SECONDS) == frozenset()
        assert coordination.lease(others, ttl_seconds=LONG_SECONDS) == frozenset(round_)


class TestWakeUps:
    def test_a_ring_reaches_a_listener_that_waits_elsewhere(
        self, coordination: Coordination, other: Coordination
    ) -> None:
        with listening(other) as listener:
            waiting = in_background(lambda: next_heard(listener))
            coordination.ring({Audience.LEADER})
            assert waiting.result(10.0) == {Audience.LEADER}
            coordination.ring({Audience.WORKERS})
            assert next_heard(listener) == {Audience.WORKERS}

    def test_everybody_means_everybody(
        self, coordination: Coordination, other: Coordination
    ) -> None:
        with listening(other) as listener:
            coordination.ring(EVERYBODY)
            heard = {who for _ in range(2) for who in next_heard(listener)}
        assert heard == EVERYBODY

    def test_what_was_rung_before_somebody_listened_is_made_good(
        self, coordination: Coordination
    ) -> None:
        coordination.ring({Audience.WORKERS})
        with listening(coordination) as listener:
            assert listener.wait(0) == ()

    def test_a_last_ring_leaves_before_the_end(
        self, server: RedisServer, other: Coordination
    ) -> None:
        """A command that asks for a run and exits at once."""
        with listening(other) as listener:
            with closing(connect(server.url, SystemClock())) as short_lived:
                short_lived.ring({Audience.LEADER})
            assert next_heard(listener) == {Audience.LEADER}

    def test_silence_is_questioned_and_an_answer_is_enough(
        self, coordination: Coordination, clock: ManualClock
    ) -> None:
        with listening(coordination) as listener:
            for _ in range(5):
                clock.advance(PING_AFTER_SECONDS)
                assert listener.wait(0) == ()
                assert listener.wait(LONG_SECONDS) == (), "the pong ends the wait"

    def test_a_server_that_does_not_answer_is_given_up(
        self, coordination: Coordination, clock: ManualClock, server: RedisServer
    ) -> None:
        with listening(coordination) as listener:
            server.pause()
            clock.advance(PING_AFTER_SECONDS)
            assert listener.wait(0) == ()
            clock.advance(PONG_WITHIN_SECONDS)
            with pytest.raises(Unreachable):
                listener.wait(0)

    def test_a_crash_is_noticed_at_once_and_a_new_listener_hears_again(
        self, coordination: Coordination, clock: ManualClock, server: RedisServer
    ) -> None:
        with listening(coordination) as listener:
            waiting = in_background(lambda: next_heard(listener))
            server.kill()
            with pytest.raises(Unreachable):
                waiting.result(10.0)
        assert coordination.listener() is None, "nothing to listen to until it is back"
        server.start()
        comes_back(coordination, clock)
        with listening(coordination) as listener:
            coordination.ring({Audience.LEADER})
            assert next_heard(listener) == {Audience.LEADER}


class TestOutages:
    def test_an_emptied_server_is_only_forgetful(
        self, coordination: Coordination, server: RedisServer
    ) -> None:
        coordination.lease({1: "w-1"}, ttl_seconds=LONG_SECONDS)
        assert is_heard(coordination)
        with listening(coordination) as listener:
            server.flush()
            assert coordination.heard(["w-1"]) == frozenset()
            assert coordination.lease({1: "w-2"}, ttl_seconds=LONG_SECONDS) == frozenset()
            assert is_heard(coordination)
            coordination.ring({Audience.LEADER})
            assert next_heard(listener) == {Audience.LEADER}

    def test_nothing_waits_for_a_server_that_was_killed(
        self, coordination: Coordination, clock: ManualClock, server: RedisServer
    ) -> None:
        assert is_heard(coordination)
        server.kill()
        lose_touch(coordination)
        for _ in range(20):
            clock.advance(RETRY_SECONDS)
            assert seconds_of(lambda: everything(coordination)) < PATIENCE_SECONDS
            assert coordination.listener() is None

    def test_a_server_that_comes_back_is_used_again(
        self, coordination: Coordination, clock: ManualClock, server: RedisServer
    ) -> None:
        for _ in range(3):
            server.kill()
            lose_touch(coordination)
            server.start()
            comes_back(coordination, clock)

    def test_it_is_not_tried_before_its_time(
        self, coordination: Coordination, server: RedisServer
    ) -> None:
        server.kill()
        lose_touch(coordination)
        server.start()
        everything(coordination)
        with server.client() as client:
            assert client.keys() == []

    def test_a_paused_server_keeps_one_caller_for_a_moment_and_the_others_not_at_all(
        self, coordination: Coordination, clock: ManualClock, server: RedisServer
    ) -> None:
        assert is_heard(coordination)
        server.pause()
        assert seconds_of(lambda: lose_touch(coordination)) < PATIENCE_SECONDS + SLACK_SECONDS
        for _ in range(10):
            clock.advance(RETRY_SECONDS)
            assert seconds_of(lambda: everything(coordination)) < PATIENCE_SECONDS
        server.resume()
        comes_back(coordination, clock)

    def test_many_callers_of_a_paused_server_wait_together_not_in_turn(
        self, coordination: Coordination, server: RedisServer
    ) -> None:
        assert is_heard(coordination)
        server.pause()
        spent = at_once(16, lambda _: seconds_of(lambda: lose_touch(coordination)))
        assert max(spent) < PATIENCE_SECONDS + SLACK_SECONDS

    def test_signs_and_wake_ups_wait_for_nobody(
        self, coordination: Coordination, server: RedisServer
    ) -> None:
        server.pause()

        def say() -> None:
            coordination.beat("w-1", ttl_seconds=LONG_SECONDS)
            coordination.ring(EVERYBODY)

        assert seconds_of(say) < PATIENCE_SECONDS

    def test_a_server_that_is_not_there_at_the_start_is_used_when_it_is(
        self, server: RedisServer, clock: ManualClock
    ) -> None:
        server.kill()
        with closing(connect(server.url, clock)) as coordination:
            everything(coordination)
            server.start()
            comes_back(coordination, clock)

    def test_not_even_a_name_that_is_never_found_holds_anybody_up(
        self, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """No timeout of a socket covers the lookup of its address."""
        lookups, found = threading.Semaphore(0), threading.Event()

        def hang(*arguments: object) -> list[Any]:
            lookups.release()
            found.wait(LONG_SECONDS)
            raise socket.gaierror

        monkeypatch.setattr(socket, "getaddrinfo", hang)
        coordination = connect("redis://nowhere.invalid", clock)
        spent = seconds_of(lambda: everything(coordination))
        assert lookups.acquire(timeout=10.0), "the hazard was reached"
        assert spent < PATIENCE_SECONDS + SLACK_SECONDS
        assert seconds_of(coordination.close) < PATIENCE_SECONDS + SLACK_SECONDS
        found.set()

    def test_a_server_that_refuses_to_be_written_is_an_outage_like_any_other(
        self, coordination: Coordination, clock: ManualClock, server: RedisServer
    ) -> None:
        """It answers, and yet it cannot help: full, or a copy that may only be read."""
        with server.client() as client, capture_logs() as logs:
            client.config_set("maxmemory", 1)
            assert coordination.lease({1: "w-1"}, ttl_seconds=LONG_SECONDS) == frozenset()
            for _ in range(5):
                clock.advance(RETRY_SECONDS)
                everything(coordination)
            client.config_set("maxmemory", 0)
            comes_back(coordination, clock)
        assert [entry["log_level"] for entry in logs] == ["warning", "info"]

    def test_nothing_is_ever_raised_while_it_comes_and_goes(
        self, server: RedisServer, coordination: Coordination, clock: ManualClock
    ) -> None:
        is_over = threading.Event()

        def use(number: int) -> int:
            calls = 0
            while not is_over.is_set():
                coordination.beat(f"w-{number}", ttl_seconds=1.0)
                coordination.heard([f"w-{number}", "w-0"])
                coordination.lease({calls: f"w-{number}"}, ttl_seconds=1.0)
                coordination.release([calls])
                coordination.ring(EVERYBODY)
                clock.advance(0.01)
                calls += 1
            return calls

        users = [in_background(lambda number=number: use(number)) for number in range(4)]
        for _ in range(3):
            server.kill()
            server.start()
            comes_back(coordination, clock)
            server.pause()
            eventually(lambda: coordination.listener() is None)
            server.resume()
            server.flush()
            comes_back(coordination, clock)
        is_over.set()
        assert all(user.result(10.0) for user in users)


class TestWhatIsSaid:
    def test_an_outage_is_said_once_and_so_is_its_end(
        self, coordination: Coordination, clock: ManualClock, server: RedisServer
    ) -> None:
        with capture_logs() as logs:
            assert is_heard(coordination)
            server.kill()
            lose_touch(coordination)
            for _ in range(5):
                clock.advance(RETRY_SECONDS)
                everything(coordination)
            server.start()
            comes_back(coordination, clock)
        assert [entry["log_level"] for entry in logs] == ["warning", "info"]
        assert all(str(server.port) in entry["helper"] for entry in logs)
        assert logs[1]["away_seconds"] >= 5 * RETRY_SECONDS

    def test_a_wrong_password_is_an_outage_and_is_not_said(self, clock: ManualClock) -> None:
        with closing_server(RedisServer(password="the-right-one")) as server:
            wrong = server.url.replace("the-right-one", SECRET)
            with capture_logs() as logs, closing(connect(wrong, clock)) as coordination:
                everything(coordination)
                clock.advance(RETRY_SECONDS)
                everything(coordination)
            assert len(logs) == 1
            assert SECRET not in str(logs)
            with closing(connect(server.url, clock)) as coordination:
                assert is_heard(coordination)

    def test_nothing_is_said_and_nothing_done_after_the_end(
        self, coordination: Coordination, server: RedisServer
    ) -> None:
        coordination.close()
        server.kill()
        with capture_logs() as logs:
            everything(coordination)
            assert coordination.listener() is None
            coordination.close()
        assert logs == []


@contextmanager
def closing_server(server: RedisServer) -> Iterator[RedisServer]:
    try:
        yield server
    finally:
        server.stop()


class TestConnecting:
    def test_installations_with_different_prefixes_do_not_meet(
        self, server: RedisServer, clock: ManualClock
    ) -> None:
        with (
            closing(connect(f"{server.url}?prefix=green", clock)) as green,
            closing(connect(f"{server.url}?prefix=blue&db=0", clock)) as blue,
            listening(blue) as listener,
        ):
            assert is_heard(green)
            green.lease({1: "w-1"}, ttl_seconds=LONG_SECONDS)
            green.ring({Audience.LEADER})
            assert blue.heard(["w-1"]) == frozenset()
            assert blue.lease({1: "w-2"}, ttl_seconds=LONG_SECONDS) == frozenset()
            blue.ring({Audience.WORKERS})
            assert next_heard(listener) == {Audience.WORKERS}
            with server.client() as client:
                keys = {"green:worker:beat:w-1", "green:jobrun:lease:1", "blue:jobrun:lease:1"}
                assert set(client.keys()) == keys

    def test_a_socket_file_will_do(self, server: RedisServer, clock: ManualClock) -> None:
        with closing(connect(f"{server.unix_url}?prefix=a.b:c-d_1", clock)) as coordination:
            assert is_heard(coordination)

    def test_over_tls_it_speaks_tls(self, clock: ManualClock) -> None:
        """The server knows no TLS: what arrives there is seen on the wire."""
        with socket.create_server(("127.0.0.1", 0)) as listening_socket:
            url = f"rediss://127.0.0.1:{listening_socket.getsockname()[1]}"
            with closing(connect(url, clock)) as coordination:
                coordination.ring(EVERYBODY)
                connection, _ = listening_socket.accept()
                with connection:
                    handshake_record = b"\x16\x03"
                    assert connection.recv(2) == handshake_record

    @pytest.mark.parametrize(
        "url",
        [
            "redis://127.0.0.1/0?prefix=",
            "redis://127.0.0.1/0?prefix=a%20b",
            "redis://127.0.0.1/0?prefix=a*",
            "redis://127.0.0.1/0?socket_timeout=soon",
            "redis://127.0.0.1/0?nobody_knows_this=1",
            f"redis://:{SECRET}/1@127.0.0.1:6379",
            "http://127.0.0.1",
        ],
    )
    def test_a_url_that_cannot_be_meant_is_refused(self, url: str, clock: ManualClock) -> None:
        with pytest.raises(ConfigurationError) as refused:
            connect(url, clock)
        assert refused.value.hint
        assert SECRET not in str(refused.getrepr(chain=True))

    def test_a_missing_library_is_named(
        self, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delitem(sys.modules, "tsuzuki.engine.redis_coordination")
        monkeypatch.setitem(sys.modules, "redis", None)
        with pytest.raises(ConfigurationError) as missing:
            connect("redis://127.0.0.1", clock)
        assert missing.value.hint is not None
        assert "pip install 'tsuzuki[redis]'" in missing.value.hint

    def test_without_any_nothing_happens(self) -> None:
        nobody = NoCoordination()
        everything(nobody)
        assert nobody.listener() is None
        assert not nobody.is_configured
        nobody.close()
