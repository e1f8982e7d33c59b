"""The circuit breaker: calls in order, with a timeout, and never a queue that grows."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from support.moving_clock import MovingClock
from support.threads import in_background
from support.waiting import wait_until
from tsuzuki.engine.coordination.circuit_breaker import (
    CALL_TIMEOUT_SECONDS,
    PROBE_INTERVAL_SECONDS,
    CircuitBreaker,
)


class Probe:
    """Succeeds when `is_good` is set."""

    def __init__(self) -> None:
        self.count = 0
        self.is_good = False

    def __call__(self) -> None:
        self.count += 1
        if not self.is_good:
            raise OSError("still away")


@pytest.fixture
def probe() -> Probe:
    return Probe()


@pytest.fixture
def breaker(clock: MovingClock, probe: Probe) -> Iterator[CircuitBreaker]:
    breaker = CircuitBreaker(service="a test", probe=probe, clock=clock)
    yield breaker
    breaker.shut_down(lambda: None)


@contextmanager
def held_up(breaker: CircuitBreaker) -> Iterator[None]:
    """While one call is under way and does not end."""
    has_started, may_end = threading.Event(), threading.Event()

    def hang() -> None:
        has_started.set()
        may_end.wait(CALL_TIMEOUT_SECONDS * 100)

    breaker.post("hang", hang)
    assert has_started.wait(10.0)
    yield
    may_end.set()


def noting(done: list[str], what: str) -> Callable[[], None]:
    return lambda: done.append(what)


def test_calls_are_made_in_the_order_in_which_they_came(breaker: CircuitBreaker) -> None:
    done: list[str] = []
    breaker.post("a", noting(done, "first"))
    breaker.post("b", noting(done, "second"))
    assert breaker.call(lambda: list(done)) == ["first", "second"]


def test_of_two_calls_on_one_topic_only_the_newer_one_is_made(breaker: CircuitBreaker) -> None:
    done: list[str] = []
    with held_up(breaker):
        for number in range(1000):
            breaker.post("a", noting(done, f"a {number}"))
        breaker.post("b", noting(done, "b"))
    assert breaker.call(lambda: list(done)) == ["a 999", "b"]


def test_a_call_that_was_held_up_too_long_is_dropped(
    breaker: CircuitBreaker, clock: MovingClock
) -> None:
    done: list[str] = []
    with held_up(breaker):
        breaker.post("a", noting(done, "late"))
        clock.advance(CALL_TIMEOUT_SECONDS * 2)
        breaker.post("b", noting(done, "in time"))
    assert breaker.call(lambda: list(done)) == ["in time"]


def test_a_call_that_timed_out_is_not_made_later(
    breaker: CircuitBreaker, clock: MovingClock, probe: Probe
) -> None:
    done: list[str] = []
    probe.is_good = True
    with held_up(breaker):
        assert breaker.call(noting(done, "asked")) is None
        assert breaker.is_open
    clock.advance(PROBE_INTERVAL_SECONDS)
    wait_until(breaker.allows_calls, "the probe has succeeded")
    assert breaker.call(lambda: list(done)) == []


def test_while_it_is_open_the_service_is_probed_and_not_called(
    breaker: CircuitBreaker, clock: MovingClock, probe: Probe
) -> None:
    done: list[str] = []

    def call_often() -> int:
        for _ in range(10):
            breaker.post("a", noting(done, "sent"))
            assert breaker.call(noting(done, "asked")) is None
        return probe.count

    breaker.record_failure(OSError("away"))
    assert call_often() == 0
    clock.advance(PROBE_INTERVAL_SECONDS)
    wait_until(lambda: call_often() == 1, "it was tried")
    assert call_often() == 1
    probe.is_good = True
    clock.advance(PROBE_INTERVAL_SECONDS)
    wait_until(breaker.allows_calls, "the probe has succeeded")
    assert breaker.call(lambda: (probe.count, done)) == (2, [])


def test_what_a_call_raises_stays_inside(breaker: CircuitBreaker) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    assert breaker.call(fail) is None
    assert breaker.is_open


def test_the_last_call_comes_after_what_was_sent_even_while_it_is_open(
    breaker: CircuitBreaker,
) -> None:
    done: list[str] = []
    breaker.post("a", noting(done, "sent"))
    breaker.shut_down(noting(done, "closed"))
    assert done == ["sent", "closed"]
    breaker.post("a", noting(done, "too late"))
    assert breaker.call(noting(done, "too late")) is None
    assert done == ["sent", "closed"]


def test_closing_does_not_wait_for_what_hangs(breaker: CircuitBreaker) -> None:
    with held_up(breaker):
        in_background(lambda: breaker.shut_down(lambda: None)).result(10.0)
