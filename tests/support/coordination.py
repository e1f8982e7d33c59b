"""Steps with a `Coordination` that its tests share, with and without faults."""

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager

import pytest

from support.waiting import wait_until
from tsuzuki.engine.coordination import circuit_breaker, redis
from tsuzuki.engine.coordination.circuit_breaker import PROBE_INTERVAL_SECONDS
from tsuzuki.engine.coordination.protocol import Coordination
from tsuzuki.model.clock import ManualClock
from tsuzuki.store.wakeups.channels import ALL_CHANNELS
from tsuzuki.store.wakeups.listeners import Listener

LONG_SECONDS = 60.0


def is_heard(coordination: Coordination) -> bool:
    """Whether a stored heartbeat can be read back."""
    coordination.heartbeat("w-1", ttl_seconds=LONG_SECONDS)
    return coordination.live_workers(["w-1"]) == {"w-1"}


def use_long_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long timeouts, for tests that measure nothing: a busy machine is not an outage."""
    monkeypatch.setattr(circuit_breaker, "CALL_TIMEOUT_SECONDS", 10.0)
    monkeypatch.setattr(redis, "SOCKET_TIMEOUT_SECONDS", 10.0)


def detect_outage(coordination: Coordination) -> None:
    """Make the call that detects the outage."""
    assert coordination.live_workers(["w-1"]) == frozenset()


def reach(coordination: Coordination, clock: ManualClock) -> None:
    """Advance the clock until the server is used again."""

    def helps() -> bool:
        clock.advance(PROBE_INTERVAL_SECONDS)
        return is_heard(coordination)

    wait_until(helps, "the server is used again")


def everything(coordination: Coordination) -> None:
    """Every call once; the answers are those without a server."""
    coordination.heartbeat("w-1", ttl_seconds=LONG_SECONDS)
    assert coordination.live_workers(["w-1", "w-2"]) == frozenset()
    assert coordination.reserve({1: "w-1", 2: "w-2"}, ttl_seconds=LONG_SECONDS) == frozenset()
    coordination.release([1, 2])
    coordination.wake(ALL_CHANNELS)


@contextmanager
def listening(coordination: Coordination) -> Iterator[Listener]:
    listener = coordination.listener()
    assert listener is not None
    with closing(listener):
        assert listener.wait(0) == ALL_CHANNELS
        yield listener


def next_heard(listener: Listener) -> Collection[str]:
    heard: Collection[str] = ()
    while not heard:
        heard = listener.wait(LONG_SECONDS)
    return heard


def seconds_of(call: Callable[[], object]) -> float:
    started = time.monotonic()
    call()
    return time.monotonic() - started
