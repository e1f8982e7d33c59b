"""A loop survives what its step raises, and logs it once, with a hint."""

import logging
import threading

import pytest

from tsuzuki.engine.log import FIELDS
from tsuzuki.engine.loop import Loop
from tsuzuki.model.clock import SystemClock
from tsuzuki.model.errors import Unreachable


def test_a_row_of_failures_is_logged_once_with_a_hint_and_so_is_its_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="tsuzuki")
    went_well = threading.Event()
    failures = iter([Unreachable("no room left", hint="Free some space.", code="database")] * 2)

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
        "hint": "Free some space.",
    }
    assert recovered == {"event": "recovered", "loop": "work", "after_failures": 2}
