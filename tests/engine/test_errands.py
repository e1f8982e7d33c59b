"""Errands: in order, in time, and never piling up."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from support.moving_clock import MovingClock
from support.threads import in_background
from support.waiting import wait_until
from tsuzuki.engine.errands import PATIENCE_SECONDS, RETRY_SECONDS, Errands


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
def errands(clock: MovingClock, trial: Trial) -> Iterator[Errands]:
    errands = Errands(helper="a test", trial=trial, clock=clock)
    yield errands
    errands.close(lambda: None)


@contextmanager
def held_up(errands: Errands) -> Iterator[None]:
    """While one errand is under way and does not end."""
    has_begun, may_end = threading.Event(), threading.Event()

    def hang() -> None:
        has_begun.set()
        may_end.wait(PATIENCE_SECONDS * 100)

    errands.send("hang", hang)
    assert has_begun.wait(10.0)
    yield
    may_end.set()


def noting(done: list[str], what: str) -> Callable[[], None]:
    return lambda: done.append(what)


def test_errands_are_done_in_the_order_in_which_they_came(errands: Errands) -> None:
    done: list[str] = []
    errands.send("a", noting(done, "first"))
    errands.send("b", noting(done, "second"))
    assert errands.ask(lambda: list(done)) == ["first", "second"]


def test_of_two_on_one_topic_only_the_newer_one_leaves(errands: Errands) -> None:
    done: list[str] = []
    with held_up(errands):
        for number in range(1000):
            errands.send("a", noting(done, f"a {number}"))
        errands.send("b", noting(done, "b"))
    assert errands.ask(lambda: list(done)) == ["a 999", "b"]


def test_what_was_held_up_too_long_is_left_undone(errands: Errands, clock: MovingClock) -> None:
    done: list[str] = []
    with held_up(errands):
        errands.send("a", noting(done, "late"))
        clock.advance(PATIENCE_SECONDS * 2)
        errands.send("b", noting(done, "in time"))
    assert errands.ask(lambda: list(done)) == ["in time"]


def test_a_question_that_waited_in_vain_is_not_asked_later(
    errands: Errands, clock: MovingClock, trial: Trial
) -> None:
    done: list[str] = []
    trial.is_good = True
    with held_up(errands):
        assert errands.ask(noting(done, "asked")) is None
        assert errands.is_away
    clock.advance(RETRY_SECONDS)
    wait_until(errands.may_leave, "the trial has succeeded")
    assert errands.ask(lambda: list(done)) == []


def test_while_it_is_away_it_is_tried_now_and_then_and_nothing_else(
    errands: Errands, clock: MovingClock, trial: Trial
) -> None:
    done: list[str] = []

    def pester() -> int:
        for _ in range(10):
            errands.send("a", noting(done, "sent"))
            assert errands.ask(noting(done, "asked")) is None
        return trial.count

    errands.failed(OSError("away"))
    assert pester() == 0
    clock.advance(RETRY_SECONDS)
    wait_until(lambda: pester() == 1, "it was tried")
    assert pester() == 1
    trial.is_good = True
    clock.advance(RETRY_SECONDS)
    wait_until(errands.may_leave, "the trial has succeeded")
    assert errands.ask(lambda: (trial.count, done)) == (2, [])


def test_what_a_call_raises_stays_inside(errands: Errands) -> None:
    def stumble() -> None:
        raise ZeroDivisionError

    assert errands.ask(stumble) is None
    assert errands.is_away


def test_the_last_call_comes_after_what_was_sent_even_while_it_is_away(errands: Errands) -> None:
    done: list[str] = []
    errands.send("a", noting(done, "sent"))
    errands.close(noting(done, "closed"))
    assert done == ["sent", "closed"]
    errands.send("a", noting(done, "too late"))
    assert errands.ask(noting(done, "too late")) is None
    assert done == ["sent", "closed"]


def test_closing_does_not_wait_for_what_hangs(errands: Errands) -> None:
    with held_up(errands):
        in_background(lambda: errands.close(lambda: None)).result(10.0)
