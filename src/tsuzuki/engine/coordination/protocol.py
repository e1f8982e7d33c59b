"""Coordination outside the database: heartbeats, short reservations and wake-ups, faster than polling.

The database is the only source of truth and keeps heartbeats of its own; nothing here decides anything. A
heartbeat here may keep a worker attached, never detach one; a missing heartbeat here means nothing at all. So
if the service is lost, emptied or unreachable, that costs time and nothing else.
"""

from collections.abc import Collection, Mapping
from typing import Protocol

from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.model.settings import EngineSettings
from tsuzuki.store.wakeups.listeners import Listener


class Coordination(Protocol):
    """No method raises, and none blocks its caller longer than a quarter of a second. Thread-safe."""

    @property
    def is_configured(self) -> bool:
        """Whether there is a service behind it: if not, no loop needs to call it regularly."""

    def heartbeat(self, worker_id: str, *, ttl_seconds: float) -> None:
        """A worker's heartbeat. It is valid for that long."""

    def live_workers(self, worker_ids: Collection[str]) -> frozenset[str]:
        """Those of them whose last heartbeat is still valid. That a worker is not among them means nothing."""

    def reserve(self, assignments: Mapping[int, str], *, ttl_seconds: float) -> frozenset[int]:
        """Reserve each run for the worker it is being assigned to, for that long. Returns the runs that are
        reserved for *another* worker: advisory, a reason to wait and not a right."""

    def release(self, run_ids: Collection[int]) -> None:
        """End the reservations: these runs may be assigned to any worker at once."""

    def wake(self, names: Collection[str]) -> None:
        """Wake other processes, by channel or by worker id, so that they poll now. Call it after the
        commit, not before."""

    def listener(self) -> Listener | None:
        """A listener for the wake-ups of other processes; None while the service is unreachable. Its first
        `wait` answers all channels, because wake-ups sent before it listened are lost. If a `wait` raises
        `Unreachable`, close it and ask for a new one."""

    def close(self) -> None:
        """Send what is queued, then disconnect. Further calls do nothing."""


class NoCoordination:
    """No service is configured: the database does it all."""

    @property
    def is_configured(self) -> bool:
        return False

    def heartbeat(self, worker_id: str, *, ttl_seconds: float) -> None:
        del worker_id, ttl_seconds

    def live_workers(self, worker_ids: Collection[str]) -> frozenset[str]:
        del worker_ids
        return frozenset()

    def reserve(self, assignments: Mapping[int, str], *, ttl_seconds: float) -> frozenset[int]:
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
    """How long a heartbeat sent here is valid. Shorter than a worker may be silent, so that the leader can
    copy it to the database with a time no later than it was sent."""
    return settings.worker_ttl_seconds - settings.heartbeat_interval_seconds


def connect(url: str, clock: Clock) -> Coordination:
    """The coordination service at `url`. One that is unreachable is no error: it is retried while
    everything goes on. Raises `ConfigurationError` for an invalid URL."""
    try:
        from tsuzuki.engine.coordination.redis import RedisCoordination  # noqa: PLC0415 -- needs an extra that most do without
    except ModuleNotFoundError as problem:
        if problem.name != "redis":
            raise
        raise ConfigurationError(
            "Redis is configured, but its client library is not installed",
            hint="Install it with: pip install 'tsuzuki[redis]'",
            code="redis_missing",
        ) from problem
    return RedisCoordination(url, clock=clock)
