"""Losses: runs that ended, or were orphaned, because of their worker, and which of them count against the run.

A run that kills its worker each time must end at some point, so a loss counts if the worker fell silent or died alone.
It is free if it came from an outage or a shutdown: workers that were lost together, a worker that lives and stopped
the run itself because the database was out of reach, a worker that left. Free repeats wait longer and longer, at
random: so runs that kill their workers at the same time are soon lost at different times, and their losses count.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import pairwise
from random import Random
from typing import NamedTuple

HEARTBEATS_TOGETHER = 1.5
"""Heartbeat intervals between the last heartbeats of workers that were lost together, at most: each has sent its
last one within an interval before the same moment."""

DEATHS_TOGETHER_SECONDS = 1.0
"""Processes of a host whose deaths are recorded within this time died together: one look finds those that have ended
by then, and a supervisor may need a moment to end its command."""

FREE_PER_COUNTED = 10
"""So many free losses are allowed for each one that counts: also the repeats in an outage without end do end."""

WAIT_FIRST_SECONDS = 1.0
WAIT_MAX_SECONDS = 600.0
WAIT_HANDED_BACK_SECONDS = 2.0
"""Long enough for a worker to register that it lacks the handler, so that another one gets the run."""

WAIT_BEFORE_TICK_SECONDS = 10.0
"""A near tick does not make the wait shorter than this."""

WAIT_JITTER = 0.5
_DOUBLINGS_MAX = 30


class Losses(NamedTuple):
    """How often a run and the runs it retries lost their worker while they ran."""

    counted: int = 0
    free: int = 0

    @property
    def free_wait_seconds(self) -> float:
        """How long the next free repeat waits: not at all after the first loss, then twice as long each time."""
        if self.free == 0:
            return 0.0
        doublings = min(self.free - 1, _DOUBLINGS_MAX)
        return min(WAIT_FIRST_SECONDS * 2.0**doublings, WAIT_MAX_SECONDS)

    def free_wait_seconds_before(self, next_tick_seconds: float | None) -> float:
        """The same for a repeat that holds the ticks of its job while it waits: about as long as to the next one.
        Jitter still moves it, or repeats of many jobs would start with the same tick."""
        if next_tick_seconds is None:
            return self.free_wait_seconds
        return min(self.free_wait_seconds, max(next_tick_seconds, WAIT_BEFORE_TICK_SECONDS))

    @property
    def hand_back_wait_seconds(self) -> float:
        """How long a run waits that was handed back because its worker lacks the handler: twice as long each time."""
        doublings = min(self.counted, _DOUBLINGS_MAX)
        return min(WAIT_HANDED_BACK_SECONDS * 2.0**doublings, WAIT_MAX_SECONDS)

    def next_free(self, losses_max: int) -> "Losses | None":
        """With one more free loss; None if there were too many."""
        is_allowed = self.free < losses_max * FREE_PER_COUNTED
        return self._replace(free=self.free + 1) if is_allowed else None

    def next_counted(self, losses_max: int) -> "Losses | None":
        """With one more loss that counts; None if there were `losses_max` already."""
        is_allowed = self.counted < losses_max
        return self._replace(counted=self.counted + 1) if is_allowed else None


NO_LOSSES = Losses()


def with_jitter(seconds: float, random: Random) -> float:
    return seconds * (1 + random.uniform(-WAIT_JITTER, WAIT_JITTER))


class Death(NamedTuple):
    """When a worker was recorded as dead, and which process of which host it was."""

    host: str
    process_name: str
    at: datetime


def died_alone(deaths: Mapping[str, Death]) -> frozenset[str]:
    """Of dead workers: those whose process died without another one of its host. Whatever ends several processes of a
    machine at the same time is no fault of one run."""
    window = timedelta(seconds=DEATHS_TOGETHER_SECONDS)

    def has_company(death: Death) -> bool:
        return any(
            other.host == death.host
            and other.process_name != death.process_name
            and abs(other.at - death.at) <= window
            for other in deaths.values()
        )

    return frozenset(worker_id for worker_id, death in deaths.items() if not has_company(death))


def lost_alone(
    heartbeats: Mapping[str, datetime], *, heartbeat_interval_seconds: float
) -> frozenset[str]:
    """Of silent workers, with their last heartbeats: those that no other one fell silent with."""
    window = timedelta(seconds=heartbeat_interval_seconds * HEARTBEATS_TOGETHER)
    in_order = sorted((heartbeat_at, worker_id) for worker_id, heartbeat_at in heartbeats.items())
    together = {
        worker_id
        for (earlier, first), (later, second) in pairwise(in_order)
        if later - earlier <= window
        for worker_id in (first, second)
    }
    return frozenset(heartbeats) - together
