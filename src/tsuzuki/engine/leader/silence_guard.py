"""Guard against clock skew and against a silent database: when a leader may judge workers by their silence.

Heartbeats are compared by the database's clock, and that clock may step. Stepped forward by an hour, every
worker looks silent until its next heartbeat. The same is so after the database gave no answer for a while: no
heartbeat could be stored. So workers are judged only by a process that has read the database's clock without a
step and without a gap for longer than a heartbeat interval: every live worker has sent a heartbeat by then. A
process that waits for the lease reads that clock too, so that it may judge as soon as it leads.
"""

import threading
from collections.abc import Callable
from datetime import datetime

from tsuzuki.model.clock import Clock
from tsuzuki.model.settings import EngineSettings

HEARTBEATS_MIN = 1.5
"""Heartbeat intervals that pass before workers are judged."""


class SilenceGuard:
    """May be called from any thread: the lease and the rounds of duties have threads of their own."""

    def __init__(self, *, clock: Clock, settings: Callable[[], EngineSettings]) -> None:
        self._clock = clock
        self._settings = settings
        self._lock = threading.Lock()
        self._waiting_since = 0.0
        self._last_reading: tuple[datetime, float] | None = None

    def observe(self, now: datetime) -> None:
        """`now` is the database's time, just read."""
        with self._lock:
            monotonic = self._clock.monotonic()
            if not self._follows_last_reading(now, monotonic):
                self._waiting_since = monotonic
            self._last_reading = (now, monotonic)

    def may_judge(self, now: datetime) -> bool:
        """Whether we have waited long enough; `now` is the database's time, just read."""
        self.observe(now)
        return self.seconds_left() == 0

    def seconds_left(self) -> float:
        """How long we still have to wait, if the clock does not step again."""
        since = self._clock.monotonic() - self._waiting_since
        return max(self._settings().heartbeat_interval_seconds * HEARTBEATS_MIN - since, 0.0)

    def _follows_last_reading(self, now: datetime, monotonic: float) -> bool:
        """Whether the database's clock has not jumped ahead of ours since we last read both, and that was
        not long ago: in a shorter gap, no worker with a heartbeat before it can become silent."""
        if self._last_reading is None:
            return False
        settings = self._settings()
        interval = settings.heartbeat_interval_seconds
        gap = monotonic - self._last_reading[1]
        if gap > max(settings.worker_ttl_seconds - interval, interval * HEARTBEATS_MIN):
            return False
        return (now - self._last_reading[0]).total_seconds() - gap <= interval
