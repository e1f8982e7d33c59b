"""Whoever uses the store: a process or a person, with a clock, a line to the database, and its luck."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from simulation.clocks import SimulatedClock
from simulation.reach import PartyDatabase, Point

if TYPE_CHECKING:
    from simulation.world import World


@dataclass(frozen=True, kw_only=True)
class Weather:
    """How often a request fails, a reply is lost, and either takes its time."""

    failing: float = 0.0
    losing: float = 0.0
    slow: float = 0.02
    slowest_seconds: float = 1.0

    def fails(self, chance: Random) -> bool:
        return self.failing > 0 and chance.random() < self.failing

    def loses(self, chance: Random) -> bool:
        return self.losing > 0 and chance.random() < self.losing

    def delay_seconds(self, chance: Random) -> float:
        if chance.random() >= self.slow:
            return 0.0
        return chance.random() * self.slowest_seconds


CALM = Weather()


@dataclass(kw_only=True)
class Ambush:
    """What befalls a party at a certain point of its way, after so many times there."""

    point: Point
    fiber: str | None
    passes: int
    strike: Callable[[], None]


class Party:
    def __init__(self, world: "World", name: str) -> None:
        self.world = world
        self.name = name
        self.clock = SimulatedClock(world.turns, self)
        self.weather = CALM
        self.is_dead = False
        self.held_until = 0.0
        self.cut_until = 0.0
        self.is_cut_silently = False
        self.troubled_at = float("-inf")
        """When something last kept it from the database or from running at all."""
        self.held_up_at = float("-inf")
        """When it last did not run at all."""
        self.ambush: Ambush | None = None
        self.database = PartyDatabase(self)

    @property
    def is_cut(self) -> bool:
        return self.cut_until > self.world.turns.now

    @property
    def is_held_up(self) -> bool:
        return self.held_until > self.world.turns.now

    def hold_up(self, seconds: float, *, asleep: bool = False) -> None:
        """Paused, as by a signal; or asleep with its whole machine, whose monotonic clock stands."""
        now = self.world.turns.now
        self.held_until = max(self.held_until, now + seconds)
        self.held_up_at = self.troubled_at = self.held_until
        if asleep:
            self.clock.slept_seconds += seconds
            self.world.turns.shift(self, seconds)
        self.world.reached["a machine slept" if asleep else "a process was paused"] += 1
        self.world.tell(f"{self.name} {'sleeps' if asleep else 'is paused'} for {seconds:.1f} s")

    def cut_off(self, seconds: float, *, silently: bool) -> None:
        self.cut_until = max(self.cut_until, self.world.turns.now + seconds)
        self.is_cut_silently = silently
        self.troubled_at = self.cut_until
        self.world.reached["a line was cut silently" if silently else "a line was cut"] += 1
        self.world.tell(f"{self.name} cannot reach the database for {seconds:.1f} s")

    def struck_at(self, point: Point) -> Callable[[], None] | None:
        ambush = self.ambush
        if ambush is None or ambush.point is not point:
            return None
        fiber = self.world.turns.current
        if ambush.fiber is not None and (fiber is None or fiber.name != ambush.fiber):
            return None
        ambush.passes -= 1
        if ambush.passes > 0:
            return None
        self.ambush = None
        return ambush.strike
