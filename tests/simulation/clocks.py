"""The clocks of a simulation: each process has its own, and so has the database. Each can step."""

import threading
from datetime import datetime, timedelta

from simulation.fibers import Turns
from support.moving_clock import NOON


class SimulatedClock:
    """Wall time that may step, and monotonic time that may stand still while its machine sleeps."""

    def __init__(self, turns: Turns, owner: object = None) -> None:
        self.owner = owner
        self._turns = turns
        self.ahead_seconds = 0.0
        self.slept_seconds = 0.0
        self.stepped_at = float("-inf")
        """When it last jumped forward, in simulated time."""

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self._turns.now + self.ahead_seconds)

    def monotonic(self) -> float:
        return self._turns.now - self.slept_seconds

    def wait(self, event: threading.Event, seconds: float) -> bool:
        if not event.is_set():
            self._turns.rest(seconds, event)
        return event.is_set()

    def step(self, seconds: float) -> None:
        self.ahead_seconds += seconds
        if seconds > 0:
            self.stepped_at = self._turns.now
