"""Simulated clocks: one per process and one for the database. Each can step (clock skew)."""

import threading
from datetime import datetime, timedelta

from simulation.scheduler import Scheduler
from support.moving_clock import NOON


class SimulatedClock:
    """A wall clock that may step, and a monotonic clock that includes the time that the machine was suspended, as
    CLOCK_BOOTTIME does. Waits do not include it."""

    def __init__(self, scheduler: Scheduler, owner: object = None) -> None:
        self.owner = owner
        self._scheduler = scheduler
        self.ahead_seconds = 0.0
        self.slept_seconds = 0.0
        """How long its machine was suspended."""
        self.stepped_at = float("-inf")
        """When it last stepped forward, in simulated time."""

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self._scheduler.now + self.ahead_seconds)

    def monotonic(self) -> float:
        return self._scheduler.now

    def wait(self, event: threading.Event, seconds: float) -> bool:
        if not event.is_set():
            self._scheduler.sleep(seconds, event)
        return event.is_set()

    def step(self, seconds: float) -> None:
        self.ahead_seconds += seconds
        if seconds > 0:
            self.stepped_at = self._scheduler.now
