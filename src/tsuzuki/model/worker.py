"""A worker process as the others see it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tsuzuki.model.clock import CLOCK_TOLERANCE_SECONDS


class WorkerState(StrEnum):
    """Whether a worker gets new runs, and whether it may keep the ones it has."""

    ATTACHED = "ATTACHED"
    """Alive and taking work."""

    DRAINING = "DRAINING"
    """Finishes what it has, takes nothing new, then leaves. Asked for by an operator or a signal."""

    DETACHED = "DETACHED"
    """Cut off: silent for too long (the leader's word), or expelled (an operator's). It gets
    nothing; what it still runs must be confirmed or stopped."""

    GONE = "GONE"
    """Left in good order, or declared lost. Never comes back: a new start has a new id."""


class DetachReason(StrEnum):
    """Why a worker is detached, and so whether it may come back."""

    SILENT = "silent"
    """Missed its heartbeats. If it speaks up in time, the leader re-attaches it."""

    OPERATOR = "operator"
    """Expelled by a person. It is not re-attached."""


@dataclass(frozen=True, kw_only=True)
class Worker:
    """A stored worker. `id` is new at every start of a process."""

    id: str
    host: str
    pid: int
    state: WorkerState
    detach_reason: DetachReason | None
    capacity: int
    tags: frozenset[str]
    software_version: str
    started_at: datetime
    heartbeat_at: datetime

    @property
    def is_present(self) -> bool:
        """It takes work, or finishes what it has."""
        return self.state in (WorkerState.ATTACHED, WorkerState.DRAINING)

    def is_silent(self, now: datetime, ttl_seconds: float) -> bool:
        """Whether its last heartbeat is too old, by the database's clock. One that lies ahead was
        written before that clock was put back: its age is unknown, and so it does not count."""
        age_seconds = (now - self.heartbeat_at).total_seconds()
        return not -CLOCK_TOLERANCE_SECONDS < age_seconds < ttl_seconds
