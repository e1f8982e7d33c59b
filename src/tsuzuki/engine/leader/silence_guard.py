"""When a leader may judge silence: after it has itself listened for a while.

Heartbeats are compared by the database's clock, and that clock may step. Stepped forward by an hour, every worker
looks silent until its next beat. So a leader judges nobody in the first moments of its term, nor
after the wall clock has run away from its own monotonic one: whoever lives will have spoken by then.
"""

from collections.abc import Callable
from datetime import datetime

from tsuzuki.model.clock import Clock
from tsuzuki.model.settings import EngineSettings
from tsuzuki.store.leadership import Term

HEARTBEATS_MIN = 1.5
"""So many heartbeat intervals are listened to before judging."""


class SilenceGuard:
    def __init__(self, *, clock: Clock, settings: Callable[[], EngineSettings]) -> None:
        self._clock = clock
        self._settings = settings
        self._epoch: int | None = None
        self._listening_since = 0.0
        self._seen: tuple[datetime, float] | None = None

    def may_judge(self, term: Term, now: datetime) -> bool:
        """Whether we have listened long enough; `now` is the database's clock, just read."""
        monotonic = self._clock.monotonic()
        interval = self._settings().heartbeat_interval_seconds
        if term.epoch != self._epoch or self._has_stepped(now, monotonic, interval):
            self._listening_since = monotonic
        self._epoch = term.epoch
        self._seen = (now, monotonic)
        return monotonic - self._listening_since >= interval * HEARTBEATS_MIN

    def seconds_left(self) -> float:
        """Until we have listened long enough, as far as we know now."""
        since = self._clock.monotonic() - self._listening_since
        return max(self._settings().heartbeat_interval_seconds * HEARTBEATS_MIN - since, 0.0)

    def _has_stepped(self, now: datetime, monotonic: float, tolerance_seconds: float) -> bool:
        """Whether the database's clock ran ahead of ours since we last looked at both."""
        if self._seen is None:
            return True
        wall = (now - self._seen[0]).total_seconds()
        return wall - (monotonic - self._seen[1]) > tolerance_seconds
