"""Clocks: the only module that reads the time. All other code gets a `Clock` injected.

`now` is wall time and may step (clock skew); it is for display and for rows. `monotonic` never steps back, and
includes the time that the machine was suspended; every deadline inside a process is measured with it. `wait` sleeps,
and wakes early when the event is set.
"""

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

CLOCK_TOLERANCE_SECONDS = 1.0
"""A stored time further in the future than this was written before the clock was set back (clock skew): it
would look recent for as long as the clock was set back by."""

_ELAPSED = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""On Linux CLOCK_MONOTONIC stands still while the machine is suspended; leases in the database run on."""


class Clock(Protocol):
    def now(self) -> datetime:
        """Wall time, aware, UTC."""

    def monotonic(self) -> float:
        """Seconds since some fixed point; only differences mean anything."""

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until `event` is set or `seconds` have passed; true if it is set."""


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.clock_gettime(_ELAPSED)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        return event.wait(max(seconds, 0.0))


class ManualClock:
    """A clock for tests: it stands until it is advanced. Waiting advances it, so nothing ever really sleeps."""

    def __init__(self, start: datetime) -> None:
        if start.tzinfo is None:
            raise ValueError("a clock must start at an aware time")
        self._now = start.astimezone(UTC)
        self._monotonic = 0.0
        self._lock = threading.Lock()

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def wait(self, event: threading.Event, seconds: float) -> bool:
        if not event.is_set():
            self.advance(seconds)
        return event.is_set()

    def advance(self, seconds: float) -> None:
        """Let time pass, on both clocks."""
        with self._lock:
            self._now += timedelta(seconds=seconds)
            self._monotonic += seconds

    def step(self, seconds: float) -> None:
        """Step the wall clock, as an administrator or a time server would: no time passes."""
        with self._lock:
            self._now += timedelta(seconds=seconds)
