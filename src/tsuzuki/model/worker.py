"""A worker process as other processes see it: its states, and its liveness."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tsuzuki.model.abilities import Abilities, Needs
from tsuzuki.model.clock import CLOCK_TOLERANCE_SECONDS

DEFAULT_CAPACITY = 10
"""How many runs a worker executes at once, unless said."""


class WorkerState(StrEnum):
    """Whether a worker gets new runs, and whether it may keep the ones it has."""

    ATTACHED = "ATTACHED"
    """Live, and gets new runs."""

    DRAINING = "DRAINING"
    """Graceful shutdown: it finishes what it has, gets nothing new, then leaves. Ordered by an operator or a
    signal."""

    DETACHED = "DETACHED"
    """Detached by the leader for silence, or by an operator. It gets no runs; those it still executes must be
    confirmed or stopped."""

    GONE = "GONE"
    """Deregistered, or lost for good. Never comes back: a new start has a new id."""


class DetachReason(StrEnum):
    """Why a worker is detached, and so whether it may come back."""

    SILENT = "silent"
    """It missed heartbeats, or its process is recorded as dead. Unless it is, the leader re-attaches it if it sends a
    heartbeat in time."""

    OPERATOR = "operator"
    """Detached by an operator. It is not re-attached."""


@dataclass(frozen=True, kw_only=True)
class StoredWorker:
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
    only_job: str | None = None
    """The one job that it may have, if it was started for one."""

    only_run: int | None = None
    """The one run that it may have, if it was started for one."""

    abilities: Abilities | None = None
    """What it can execute; None if it has not registered that."""

    drain_ordered_at: datetime | None = None
    """When it was told to drain, if it was. It drains under its next id too."""

    @property
    def is_present(self) -> bool:
        """It is attached, or finishes what it has."""
        return self.state in (WorkerState.ATTACHED, WorkerState.DRAINING)

    def can_execute(self, needs: Needs) -> bool:
        return self.abilities is None or self.abilities.lack(needs) is None

    def silent_seconds(self, now: datetime) -> float | None:
        """How old its last heartbeat is, by the database's clock. None if that is unknown: the heartbeat lies
        in the future, so it was written before that clock was set back (clock skew)."""
        age_seconds = (now - self.heartbeat_at).total_seconds()
        return max(age_seconds, 0.0) if age_seconds > -CLOCK_TOLERANCE_SECONDS else None

    def is_silent(self, now: datetime, ttl_seconds: float) -> bool:
        """Whether its last heartbeat is too old, or of unknown age. For a report an unknown age is no sign of
        life; `store.liveness`, which decides about runs, takes it as recent until the leader has reset it."""
        age_seconds = self.silent_seconds(now)
        return age_seconds is None or age_seconds >= ttl_seconds
