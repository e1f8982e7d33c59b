"""Guard against clock skew: when a leader may judge workers by their silence.

Heartbeats are compared by the database's clock, and that clock may step. Stepped forward by an hour, every
worker looks silent until its next heartbeat. So a leader first waits for longer than a heartbeat interval, at
the start of its term and whenever the wall clock has jumped ahead of its own monotonic one: every live worker
has sent a heartbeat by then.
"""

from collections.abc import Callable
from datetime import datetime

from tsuzuki.model.clock import Clock
from tsuzuki.model.settings import EngineSettings
from tsuzuki.store.leadership import Term

HEARTBEATS_MIN = 1.5
"""Heartbeat intervals that pass before workers are judged."""


class SilenceGuard:
    def __init__(self, *, clock: Clock, settings: Callable[[], EngineSettings]) -> None:
        self._clock = clock
        self._settings = settings
        self._epoch: int | None = None
        self._waiting_since = 0.0
        self._last_reading: tuple[datetime, float] | None = None

    def may_judge(self, term: Term, now: datetime) -> bool:
        """Whether we have waited long enough; `now` is the database's time, just read."""
        monotonic = self._clock.monotonic()
        interval = self._settings().heartbeat_interval_seconds
        if term.epoch != self._epoch or self._has_stepped(now, monotonic, interval):
            self._waiting_since = monotonic
        self._epoch = term.epoch
        self._last_reading = (now, monotonic)
        return monotonic - self._waiting_since >= interval * HEARTBEATS_MIN

    def seconds_left(self) -> float:
        """How long we still have to wait, if the clock does not step again."""
        since = self._clock.monotonic() - self._waiting_since
        return max(self._settings().heartbeat_interval_seconds * HEARTBEATS_MIN - since, 0.0)

    def _has_stepped(self, now: datetime, monotonic: float, tolerance_seconds: float) -> bool:
        """Whether the database's clock has jumped ahead of ours since we last read both."""
        if self._last_reading is None:
            return True
        wall = (now - self._last_reading[0]).total_seconds()
        return wall - (monotonic - self._last_reading[1]) > tolerance_seconds
