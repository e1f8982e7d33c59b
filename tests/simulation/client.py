"""A client of the store, process or operator: its clock, its connection, and the faults planned for it."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from simulation.clocks import SimulatedClock
from simulation.database_faults import ClientDatabase, InjectionPoint

if TYPE_CHECKING:
    from simulation.world import World


@dataclass(frozen=True, kw_only=True)
class FaultRates:
    """Probabilities: a request fails, a reply is lost, either is delayed."""

    request_failure: float = 0.0
    reply_loss: float = 0.0
    slow: float = 0.02
    slowest_seconds: float = 1.0

    @property
    def is_peaceful(self) -> bool:
        """Whether every request gets through, and every reply."""
        return self.request_failure == self.reply_loss == 0

    def fails(self, random: Random) -> bool:
        return self.request_failure > 0 and random.random() < self.request_failure

    def loses_reply(self, random: Random) -> bool:
        return self.reply_loss > 0 and random.random() < self.reply_loss

    def delay_seconds(self, random: Random) -> float:
        if random.random() >= self.slow:
            return 0.0
        return random.random() * self.slowest_seconds


NO_FAULTS = FaultRates()
"""Only short delays."""

FILE = FaultRates(slow=0.0)
"""Not even those: the database is a file of this machine."""


@dataclass(kw_only=True)
class PlannedFault:
    """A fault that is injected when the client has reached `point` so many times, in one of its fibers."""

    point: InjectionPoint
    fiber: str | None
    passes: int
    inject: Callable[[], None]


class Client:
    def __init__(self, world: "World", name: str) -> None:
        self.world = world
        self.name = name
        self.clock = SimulatedClock(world.scheduler, self)
        self.fault_rates = NO_FAULTS
        self.is_dead = False
        self.suspended_until = 0.0
        self.disconnected_until = world.unreachable_until
        self.is_disconnected_silently = False
        self.last_fault_at = float("-inf")
        """Until when it was last disconnected or suspended."""
        self.suspended_at = float("-inf")
        """Until when it was last suspended."""
        self.unreachable_at = float("-inf")
        """When it last failed to reach the database."""
        self.planned_fault: PlannedFault | None = None
        self.database = ClientDatabase(self)

    @property
    def is_disconnected(self) -> bool:
        return self.disconnected_until > self.world.scheduler.now

    @property
    def is_suspended(self) -> bool:
        return self.suspended_until > self.world.scheduler.now

    def suspend(self, seconds: float, *, asleep: bool = False) -> None:
        """Pause it, as SIGSTOP does; or suspend its machine, so that its waits take so much longer."""
        now = self.world.scheduler.now
        self.suspended_until = max(self.suspended_until, now + seconds)
        self.suspended_at = self.last_fault_at = self.suspended_until
        if asleep:
            self.clock.slept_seconds += seconds
            self.world.scheduler.shift(self, seconds)
        self.world.coverage["a machine slept" if asleep else "a process was paused"] += 1
        self.world.log(f"{self.name} {'sleeps' if asleep else 'is paused'} for {seconds:.1f} s")

    def disconnect(self, seconds: float, *, silently: bool) -> None:
        self.disconnected_until = max(self.disconnected_until, self.world.scheduler.now + seconds)
        self.is_disconnected_silently = silently
        self.last_fault_at = self.disconnected_until
        self.world.coverage[
            "a connection was lost silently" if silently else "a connection was lost"
        ] += 1
        self.world.log(f"{self.name} is disconnected from the database for {seconds:.1f} s")

    def fault_at(self, point: InjectionPoint) -> Callable[[], None] | None:
        planned_fault = self.planned_fault
        if planned_fault is None or planned_fault.point is not point:
            return None
        fiber = self.world.scheduler.current
        if planned_fault.fiber is not None and (fiber is None or fiber.name != planned_fault.fiber):
            return None
        planned_fault.passes -= 1
        if planned_fault.passes > 0:
            return None
        self.planned_fault = None
        return planned_fault.inject
