"""Guard against clock skew and against a silent database: when a leader may judge workers by their silence.

Heartbeats are compared by the database's clock, and that clock may step. Stepped forward by an hour, every worker
looks silent until its next heartbeat, and a worker that is cut off looks as if its commands had ended long ago. So
after a step we measure silence by our own clock: no worker is judged for as long as it takes to lose a worker whose
last heartbeat came just before the step. Small steps add up.

After the database gave no answer for a while every worker looks silent too, because no heartbeat could be stored; and
on SQLite after a transaction that held the write lock for long. So workers are judged only by a process that, for
longer than a heartbeat interval, has read the database's clock without a gap and has not waited long for the lock,
and whose own heartbeat does not wait for it: every live worker has sent a heartbeat by then. A process that waits for
the lease reads that clock too, so that it may judge as soon as it leads.
"""

import threading
from collections import deque
from collections.abc import Callable
from datetime import datetime

from tsuzuki.model.clock import Clock
from tsuzuki.model.settings import EngineSettings

HEARTBEATS_MIN = 1.5
"""Heartbeat intervals that pass before workers are judged."""

DRIFT_MAX = 0.001
"""By which part the database's clock may be faster than ours without having stepped."""


class SilenceGuard:
    """May be called from any thread: the lease and the rounds of duties have threads of their own."""

    def __init__(
        self,
        *,
        clock: Clock,
        settings: Callable[[], EngineSettings],
        lock_waited_until: Callable[[float], float] = lambda _longer_than_seconds: 0.0,
    ) -> None:
        """`lock_waited_until` answers at which monotonic time our last wait for the write lock ended that was longer
        than so many seconds."""
        self._lock_waited_until = lock_waited_until
        self._clock = clock
        self._settings = settings
        self._lock = threading.Lock()
        self._judges_at = 0.0
        self._read_at: float | None = None
        self._smallest_leads: deque[tuple[float, float]] = deque()
        """When the database's clock was read, and by how much it was ahead of ours at most. Only readings that no
        later one is below, so the first is the smallest; those of the last seconds, and the last one."""

    def observe(self, now: datetime, *, asked_at: float) -> None:
        """`now` is the database's time, just read; `asked_at` our own, before it was read."""
        with self._lock:
            monotonic = self._clock.monotonic()
            settings = self._settings()
            if self._read_at is None or monotonic - self._read_at > _gap_seconds_max(settings):
                self._judges_at = max(self._judges_at, monotonic + _listen_seconds(settings))
            self._read_at = monotonic
            if self._has_stepped(now.timestamp() - monotonic, monotonic):
                self._judges_at = monotonic + settings.lost_after_seconds
                self._smallest_leads.clear()
            self._remember(now.timestamp() - asked_at, monotonic)

    def may_judge(self, read_time: Callable[[], datetime]) -> bool:
        """Whether we have waited long enough; `read_time` reads the database's time now."""
        asked_at = self._clock.monotonic()
        self.observe(read_time(), asked_at=asked_at)
        return self.seconds_left() == 0

    def seconds_left(self) -> float:
        """How long we still have to wait, if the clock does not step again."""
        settings = self._settings()
        lock_waited_until = self._lock_waited_until(_unnoticed_seconds_max(settings))
        judges_at = max(self._judges_at, lock_waited_until + _listen_seconds(settings))
        return max(judges_at - self._clock.monotonic(), 0.0)

    def _has_stepped(self, lead: float, monotonic: float) -> bool:
        """Whether the database's clock is further ahead of ours than it was, by more than the time between the end
        of a lost worker's commands and the moment at which it is judged as lost. A slow reply is no step: the lead
        of a reading is between that when it was asked for and that when it came."""
        settings = self._settings()
        oldest = monotonic - settings.lost_after_seconds - _gap_seconds_max(settings)
        while len(self._smallest_leads) > 1 and self._smallest_leads[0][0] < oldest:
            self._smallest_leads.popleft()
        if not self._smallest_leads:
            return False
        read_at, smallest = self._smallest_leads[0]
        margin = settings.lost_after_seconds - settings.executions_end_after_seconds
        allowed = min(margin, settings.heartbeat_interval_seconds)
        return lead - smallest > max(allowed, (monotonic - read_at) * DRIFT_MAX)

    def _remember(self, lead: float, monotonic: float) -> None:
        while self._smallest_leads and self._smallest_leads[-1][1] >= lead:
            self._smallest_leads.pop()
        self._smallest_leads.append((monotonic, lead))


def _listen_seconds(settings: EngineSettings) -> float:
    """Every live worker sends a heartbeat in that time."""
    return settings.heartbeat_interval_seconds * HEARTBEATS_MIN


def _unnoticed_seconds_max(settings: EngineSettings) -> float:
    """For so long heartbeats may be held up without making a live worker look silent: its last one may be an interval
    old by then."""
    return settings.worker_ttl_seconds - settings.heartbeat_interval_seconds


def _gap_seconds_max(settings: EngineSettings) -> float:
    """The longest gap between two readings that is not a silence of the database. A leader that has nothing to do reads
    once per heartbeat interval."""
    return max(
        _unnoticed_seconds_max(settings), settings.heartbeat_interval_seconds * HEARTBEATS_MIN
    )
