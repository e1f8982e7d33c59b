"""The machine's clock: elapsed time includes the time that the machine was suspended."""

import time

import pytest

from tsuzuki.engine.executors.command.supervisor.deadline import SharedDeadline
from tsuzuki.model.clock import SystemClock


@pytest.fixture
def suspended(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds of suspend: they pass on CLOCK_BOOTTIME alone."""
    seconds = [0.0]
    real = time.clock_gettime

    def clock_gettime(clock_id: int) -> float:
        return real(clock_id) + (seconds[0] if clock_id == time.CLOCK_BOOTTIME else 0.0)

    monkeypatch.setattr(time, "clock_gettime", clock_gettime)
    return seconds


def test_a_suspend_counts_as_elapsed_time(suspended: list[float]) -> None:
    clock = SystemClock()
    before = clock.monotonic()
    suspended[0] = 3600.0
    assert clock.monotonic() - before >= 3600.0


def test_the_deadline_of_commands_passes_during_a_suspend(suspended: list[float]) -> None:
    deadline = SharedDeadline()
    deadline.renew(SystemClock().monotonic() + 60.0)
    assert 0.0 < deadline.seconds_left() <= 60.0
    suspended[0] = 3600.0
    assert deadline.seconds_left() < 0.0
    deadline.close()
