"""CircuitBreaker: in order, in time, and never piling up."""

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


class Trial:
    """Succeeds when it is let."""

    def __init__(self) -> None:
        self.count = 0
        self.is_good = False

    def __call__(self) -> None:
        self.count += 1
        if not self.is_good:
            raise OSError("still away")


@pytest.fixture
def trial() -> Trial:
    return Trial()


@pytest.fixture
def breaker(clock: MovingClock, trial: Trial) -> Iterator[CircuitBreaker]:
    breaker = CircuitBreaker(service="a test", probe=trial, clock=clock)
    yield breaker
    breaker.shut_down(lambda: None)


@contextmanager
def held_up(breaker: CircuitBreaker) -> Iterator[None]:
    """While one errand is under way and does not end."""
    has_begun, may_end = threading.Event(), threading.Event()

    def hang() -> None:
        has_begun.set()
        may_end.wait(CALL_TIMEOUT_SECONDS * 100)

    breaker.post("hang", hang)
    assert has_begun.wait(10.0)
    yield
    may_end.set()


def noting(done: list[str], what: str) -> Callable[[], None]:
    return lambda: done.append(what)


def test_errands_are_done_in_the_order_in_which_they_came(breaker: CircuitBreaker) -> None:
    done: list[str] = []
    breaker.post("a", noting(done, "first"))
    breaker.post("b", noting(done, "second"))
    assert breaker.call(lambda: list(done)) == ["first", "second"]


def test_of_two_on_one_topic_only_the_newer_one_leaves(breaker: CircuitBreaker) -> None:
    done: list[str] = []
    with held_up(breaker):
        for number in range(1000):
            breaker.post("a", noting(done, f"a {number}"))
        breaker.post("b", noting(done, "b"))
    assert breaker.call(lambda: list(done)) == ["a 999", "b"]


def test_what_was_held_up_too_long_is_left_undone(
    breaker: CircuitBreaker, clock: MovingClock
) -> None:
    done: list[str] = []
    with held_up(breaker):
        breaker.post("a", noting(done, "late"))
        clock.advance(CALL_TIMEOUT_SECONDS * 2)
        breaker.post("b", noting(done, "in time"))
    assert breaker.call(lambda: list(done)) == ["in time"]


def test_a_question_that_waited_in_vain_is_not_asked_later(
    breaker: CircuitBreaker, clock: MovingClock, trial: Trial
) -> None:
    done: list[str] = []
    trial.is_good = True
    with held_up(breaker):
        assert breaker.call(noting(done, "asked")) is None
        assert breaker.is_open
    clock.advance(PROBE_INTERVAL_SECONDS)
    wait_until(breaker.allows_calls, "the trial has succeeded")
    assert breaker.call(lambda: list(done)) == []


def test_while_it_is_away_it_is_tried_now_and_then_and_nothing_else(
    breaker: CircuitBreaker, clock: MovingClock, trial: Trial
) -> None:
    done: list[str] = []

    def pester() -> int:
        for _ in range(10):
            breaker.post("a", noting(done, "sent"))
            assert breaker.call(noting(done, "asked")) is None
        return trial.count

    breaker.record_failure(OSError("away"))
    assert pester() == 0
    clock.advance(PROBE_INTERVAL_SECONDS)
    wait_until(lambda: pester() == 1, "it was tried")
    assert pester() == 1
    trial.is_good = True
    clock.advance(PROBE_INTERVAL_SECONDS)
    wait_until(breaker.allows_calls, "the trial has succeeded")
    assert breaker.call(lambda: (trial.count, done)) == (2, [])


def test_what_a_call_raises_stays_inside(breaker: CircuitBreaker) -> None:
    def stumble() -> None:
        raise ZeroDivisionError

    assert breaker.call(stumble) is None
    assert breaker.is_open


def test_the_last_call_comes_after_what_was_sent_even_while_it_is_away(
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
