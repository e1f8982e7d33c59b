"""What befalls the processes of a world, and who comes after those that have ended."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from simulation.node import Node
from simulation.party import CALM, Ambush, Weather
from simulation.reach import LawBroken, Point
from tsuzuki.engine.role import Role

if TYPE_CHECKING:
    from simulation.world import World

FIBERS = ("lease", "lead", "lead", "lead", "work", "work", "beat", "handler", None)
"""Whom an ambush waits for: whichever thread of the process, or one of these."""

OPEN_POINTS = (Point.AFTER_READ, Point.BEFORE_WRITE, Point.AFTER_COMMIT)
"""Between transactions, where a process can be held up in the middle of what it does."""

LONG = (6.0,)
MIXED = (2.0, 3.0, 4.0, 6.0)
"""How long it storms, drawn. Where a hazard does its harm at once, many short storms find as much as few long ones in
the same time of ours; where it takes a lease or a second party, they find less."""

BOTH = Role(capacity=4)
LEADS = Role(work=False)
WORKS = Role(lead=False, capacity=4)


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One kind of bad day. `hazards` are methods of `Fate` and how likely each is."""

    name: str
    hazards: Mapping[str, int]
    every_seconds: float = 0.7
    storm_seconds: tuple[float, ...] = LONG
    roles: tuple[Role, ...] = (BOTH, BOTH)
    weather: Weather = CALM
    acts: tuple[str, ...] = ("submit", "submit", "emit")
    act_every_seconds: float = 2.0
    must_reach: tuple[str, ...] = field(default=())
    """What a batch of seeds must have met, or it proves nothing."""


class Fate:
    """Not a party: it has no clock and no line, and nothing befalls it."""

    held_until = 0.0

    def __init__(self, world: "World", scenario: Scenario) -> None:
        self._world = world
        self._scenario = scenario
        self._hazards = [name for name, weight in scenario.hazards.items() for _ in range(weight)]
        self._generation = [0] * len(scenario.roles)
        self._back_at = [0.0] * len(scenario.roles)

    def live(self) -> None:
        chance = self._world.chance
        while not self._world.is_settling:
            self._world.turns.rest(chance.random() * 2 * self._scenario.every_seconds)
            self.replace_the_ended()
            if self._hazards and not self._world.is_settling:
                hazard: Callable[[], None] = getattr(self, chance.choice(self._hazards))
                hazard()

    def populate(self) -> None:
        for place in range(len(self._scenario.roles)):
            self._start(place)

    def replace_the_ended(self, *, at_once: bool = False) -> None:
        """Whoever looks after processes starts a new one, sooner or later."""
        now, chance = self._world.turns.now, self._world.chance
        for place, node in enumerate(self._world.nodes):
            if node.engine.drained.is_set():
                if node.is_wanted:
                    raise LawBroken(f"{node.name} left, and nobody sent it away")
                node.asked_to_stop.set()
            if not node.is_dead:
                continue
            if not self._back_at[place]:
                self._back_at[place] = now + chance.random() * 4.0
            if at_once or self._back_at[place] <= now:
                self._start(place)

    def relent(self) -> None:
        """Nothing bad begins from now on."""
        self._world.tell("nothing bad begins any more")
        for party in self._world.parties:
            party.weather = CALM
            party.ambush = None
        self.replace_the_ended(at_once=True)

    def _start(self, place: int) -> None:
        self._generation[place] += 1
        self._back_at[place] = 0.0
        name = f"n{place + 1}.{self._generation[place]}"
        node = Node(self._world, name, self._scenario.roles[place])
        node.weather = CALM if self._world.is_settling else self._scenario.weather
        self._world.place_node(place, node)
        node.start()

    # --- hazards --------------------------------------------------------------------------------

    def crash(self) -> None:
        node = self._somebody()
        if node is not None:
            node.crash()

    def crash_at_a_point(self) -> None:
        self._ambush(tuple(Point), lambda node: node.crash)

    def pause(self) -> None:
        node = self._somebody()
        if node is not None:
            node.hold_up(self._long())

    def hesitate(self) -> None:
        """Whoever leads stops between looking and acting, and still leads when it goes on."""
        for node in self._world.nodes:
            if not node.is_dead and node.engine.lease.term is not None:
                passes = self._world.chance.randint(1, 6)
                node.ambush = Ambush(
                    point=Point.AFTER_READ,
                    fiber="lead",
                    passes=passes,
                    strike=partial(node.hold_up, 1.5),
                )

    def pause_at_a_point(self) -> None:
        self._ambush(OPEN_POINTS, lambda node: lambda: node.hold_up(self._long()))

    def sleep_at_a_point(self) -> None:
        self._ambush(OPEN_POINTS, lambda node: lambda: node.hold_up(self._long(), asleep=True))

    def cut(self) -> None:
        node = self._somebody()
        if node is not None:
            node.cut_off(self._long(), silently=self._world.chance.random() < 0.5)

    def cut_everybody(self) -> None:
        """The database itself is out of reach."""
        seconds, silently = self._long(), self._world.chance.random() < 0.5
        for party in self._world.parties:
            party.cut_off(seconds, silently=silently)
        self._world.reached["nobody reached the database"] += 1

    def cut_at_a_point(self) -> None:
        silently = self._world.chance.random() < 0.5
        self._ambush(
            OPEN_POINTS, lambda node: lambda: node.cut_off(self._long(), silently=silently)
        )

    def step_the_database_clock(self) -> None:
        chance = self._world.chance
        seconds = chance.choice((-300.0, -6.0, -2.0, 3.0, 10.0, 30.0))
        self._world.database_clock.step(seconds)
        self._stepped(f"the database's clock steps by {seconds:+.0f} s", seconds)

    def step_a_clock(self) -> None:
        node = self._somebody()
        if node is not None:
            seconds = self._world.chance.choice((-3600.0, -20.0, 20.0, 3600.0))
            node.clock.step(seconds)
            self._stepped(f"the clock of {node.name} steps by {seconds:+.0f} s", seconds)

    def stop(self) -> None:
        node = self._somebody()
        if node is not None:
            node.asked_to_stop.set()
            if self._world.chance.random() < 0.3:
                node.engine.hurry()

    # --- about them -----------------------------------------------------------------------------

    def _stepped(self, sentence: str, seconds: float) -> None:
        self._world.tell(sentence)
        self._world.reached[f"a clock stepped {'back' if seconds < 0 else 'forward'}"] += 1

    def _ambush(
        self, points: tuple[Point, ...], strike: Callable[[Node], Callable[[], None]]
    ) -> None:
        node = self._somebody()
        if node is not None:
            chance = self._world.chance
            node.ambush = Ambush(
                point=chance.choice(points),
                fiber=chance.choice(FIBERS),
                passes=chance.randint(1, 4),
                strike=strike(node),
            )

    def _somebody(self) -> Node | None:
        """Anybody, and rather the one that leads."""
        chance = self._world.chance
        alive = [node for node in self._world.nodes if not node.is_dead and not node.is_held_up]
        leading = [node for node in alive if node.engine.lease.term is not None]
        if leading and chance.random() < 0.4:
            return leading[0]
        return chance.choice(alive) if alive else None

    def _long(self) -> float:
        """Mostly longer than a lease or a silence may be."""
        return self._world.chance.choice((0.5, 3.0, 6.0, 7.0, 9.0))
