"""Help from outside the database: signs of life, short leases and wake-ups, faster than a poll.

The database is the only truth and keeps heartbeats of its own; nothing here decides anything. What is
heard here may keep a worker attached, never cut one off; what is not heard here means nothing at all.
So losing it, emptying it or being cut off from it costs time and nothing else.
"""

from collections.abc import Collection, Mapping
from typing import Protocol

from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.model.settings import EngineSettings
from tsuzuki.store.wakeups.listeners import Listener


class Coordination(Protocol):
    """No method raises, and none keeps its caller longer than a quarter of a second. Safe to use
    from any thread."""

    @property
    def is_configured(self) -> bool:
        """Whether there is anything behind it: if not, nobody needs to call it regularly."""

    def heartbeat(self, worker_id: str, *, ttl_seconds: float) -> None:
        """Say that a worker lives. It counts for that long."""

    def heard_recently(self, worker_ids: Collection[str]) -> frozenset[str]:
        """Those of them whose last beat still counts. Absence from the answer says nothing."""

    def lease(self, assignments: Mapping[int, str], *, ttl_seconds: float) -> frozenset[int]:
        """Mark each run as being given to its worker, for that long. Answers the runs that are
        already being given to *another* worker: a reason to wait, not a right."""

    def release(self, run_ids: Collection[int]) -> None:
        """Take the marks away: these runs may be given to anybody at once."""

    def wake(self, names: Collection[str]) -> None:
        """Tell other processes, by audience or by the names of workers, that there is something to look
        at. After the commit, not before."""

    def listener(self) -> Listener | None:
        """An ear for what others ring; None while there is nothing to listen to. Its first `wait`
        answers everybody, because what was rung before it listened went unheard. If a `wait`
        raises `Unreachable`, close it and ask for another one."""

    def close(self) -> None:
        """Let what was said leave, and let go of everything. Further calls do nothing."""


class NoCoordination:
    """Nobody helps; the database does it all."""

    @property
    def is_configured(self) -> bool:
        return False

    def heartbeat(self, worker_id: str, *, ttl_seconds: float) -> None:
        del worker_id, ttl_seconds

    def heard_recently(self, worker_ids: Collection[str]) -> frozenset[str]:
        del worker_ids
        return frozenset()

    def lease(self, assignments: Mapping[int, str], *, ttl_seconds: float) -> frozenset[int]:
        del assignments, ttl_seconds
        return frozenset()

    def release(self, run_ids: Collection[int]) -> None:
        del run_ids

    def wake(self, names: Collection[str]) -> None:
        del names

    def listener(self) -> Listener | None:
        return None

    def close(self) -> None:
        return


def heartbeat_ttl_seconds(settings: EngineSettings) -> float:
    """How long a sign of life given here counts. Less than a worker may be silent, so that it can be
    written down as a heartbeat that is no younger than it was."""
    return settings.worker_ttl_seconds - settings.heartbeat_interval_seconds


def connect(url: str, clock: Clock) -> Coordination:
    """The coordination that lives at `url`. One that cannot be reached is no error: it is tried
    again while everything goes on. Raises `ConfigurationError` for a URL that cannot be meant."""
    try:
        # Only here, because the library is an extra that most installations do without.
        from tsuzuki.engine.coordination.redis import RedisCoordination  # noqa: PLC0415 -- needs an extra that most do without
    except ModuleNotFoundError as problem:
        if problem.name != "redis":
            raise
        raise ConfigurationError(
            "a Redis is configured, but the library to talk to it is not installed",
            hint="Run: pip install 'tsuzuki[redis]'",
            code="redis_missing",
        ) from problem
    return RedisCoordination(url, clock=clock)
