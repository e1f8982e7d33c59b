"""Connecting to a coordination server by its URL, and doing without one."""

import os
import socket
import sys
from contextlib import closing

import pytest

from support.coordination import (
    LONG_SECONDS,
    everything,
    is_heard,
    listening,
    next_heard,
    use_long_timeouts,
)
from support.moving_clock import MovingClock
from support.redis_server import RedisServer
from tsuzuki.engine.coordination.protocol import Coordination, NoCoordination, connect
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.store.wakeups.channels import ALL_CHANNELS, WakeupChannel

SECRET = "not-for-the-log"


@pytest.fixture(autouse=True)
def _long_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    use_long_timeouts(monkeypatch)


def test_installations_with_different_prefixes_do_not_meet(
    server: RedisServer, clock: MovingClock
) -> None:
    with (
        closing(connect(f"{server.url}?prefix=green", clock)) as green,
        closing(connect(f"{server.url}?prefix=blue&db=0", clock)) as blue,
        listening(blue) as listener,
    ):
        assert is_heard(green)
        green.wake({WakeupChannel.LEADER})
        green.reserve({1: "w-1"}, ttl_seconds=LONG_SECONDS)
        assert blue.live_workers(["w-1"]) == frozenset()
        assert blue.reserve({1: "w-2"}, ttl_seconds=LONG_SECONDS) == frozenset()
        blue.wake({WakeupChannel.WORKERS})
        assert next_heard(listener) == {WakeupChannel.WORKERS}
        with server.client() as client:
            keys = {"green:worker:beat:w-1", "green:jobrun:lease:1", "blue:jobrun:lease:1"}
            assert set(client.keys()) == keys


def test_a_socket_file_will_do(server: RedisServer, clock: MovingClock) -> None:
    with closing(connect(f"{server.unix_url}?prefix=a.b:c-d_1", clock)) as coordination:
        assert is_heard(coordination)


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_process_is_helped_too(coordination: Coordination) -> None:
    assert is_heard(coordination)
    child = os.fork()
    if child == 0:
        os._exit(0 if is_heard(coordination) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert is_heard(coordination)


def test_rediss_speaks_tls(clock: MovingClock) -> None:
    """The server does not answer, so it is an outage; what counts is what is sent."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"rediss://127.0.0.1:{server.getsockname()[1]}"
        with closing(connect(url, clock)) as coordination:
            coordination.wake(ALL_CHANNELS)
            client, _ = server.accept()
            with client:
                handshake_record = b"\x16\x03"
                assert client.recv(2) == handshake_record


@pytest.mark.parametrize(
    "url",
    [
        "redis://127.0.0.1/0?prefix=",
        "redis://127.0.0.1/0?prefix=a%20b",
        "redis://127.0.0.1/0?prefix=a*",
        "redis://127.0.0.1/0?socket_timeout=soon",
        "redis://127.0.0.1/0?no_such_option=1",
        f"redis://:{SECRET}/1@127.0.0.1:6379",
        "http://127.0.0.1",
    ],
)
def test_a_url_that_cannot_be_meant_is_refused(url: str, clock: MovingClock) -> None:
    with pytest.raises(ConfigurationError) as refused:
        connect(url, clock)
    assert refused.value.hint
    assert SECRET not in f"{refused.value} {refused.value.hint}"
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


def test_a_missing_library_is_named(clock: MovingClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "tsuzuki.engine.coordination.redis")
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(ConfigurationError) as missing:
        connect("redis://127.0.0.1", clock)
    assert missing.value.hint is not None
    assert "pip install 'tsuzuki[redis]'" in missing.value.hint


def test_without_coordination_nothing_happens() -> None:
    coordination = NoCoordination()
    assert not coordination.is_configured
    everything(coordination)
    assert coordination.listener() is None
    coordination.close()
