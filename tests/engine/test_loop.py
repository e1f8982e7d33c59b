"""A loop survives what its step raises, and logs it once, with a hint."""

import logging
import threading

import pytest

from support.moving_clock import NOON
from tsuzuki.engine.log import FIELDS
from tsuzuki.engine.loop import Loop
from tsuzuki.model.clock import ManualClock, SystemClock
from tsuzuki.model.errors import Unreachable


def test_a_row_of_failures_is_logged_once_with_a_hint_and_so_is_its_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="tsuzuki")
    went_well = threading.Event()
    failures = iter(
        [Unreachable("no room left", hint="Free some disk space.", code="database")] * 2
    )

    def step() -> float:
        if (failure := next(failures, None)) is not None:
            raise failure
        went_well.set()
        loop.stop()
        return 0.0

    loop = Loop("work", step, clock=SystemClock(), on_error=lambda _name: None)
    loop.start()
    assert went_well.wait(30)
    assert loop.join(30)
    failed, recovered = [getattr(record, FIELDS) for record in caplog.records]
    assert failed == {
        "event": "step failed, retrying",
        "loop": "work",
        "code": "database",
        "error": "no room left",
        "hint": "Free some disk space.",
    }
    assert recovered == {"event": "recovered", "loop": "work", "after_failures": 2}


def test_a_loop_is_failing_after_five_failures_in_a_row_until_a_step_succeeds() -> None:
    plan = iter("ffff.fffffff..")
    seen: list[int | None] = []

    def step() -> float:
        seen.append(loop.failure.failures if loop.failure else None)
        turn = next(plan, None)
        if turn is None:
            loop.stop()
        if turn == "f":
            raise ZeroDivisionError
        return 0.0

    loop = Loop("work", step, clock=ManualClock(NOON), on_error=lambda _name: None)
    loop.start()
    assert loop.join(30)
    assert seen == [None] * 10 + [5, 6, 7, None, None]
