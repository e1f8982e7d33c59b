"""One simulated world: its processes, its people, its fate; from a seed to its story."""

import gc
import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from random import Random
from unittest.mock import patch

from simulation.clocks import SimulatedClock
from simulation.fate import Fate, Scenario
from simulation.fibers import TooBusy, Turns
from simulation.jobs import SCHEDULED, SCHEDULED_AT_ONCE
from simulation.laws import Laws
from simulation.node import Node, SimulatedListener, SteppedLoop
from simulation.operators import Ledger, Operator
from simulation.party import Party
from simulation.reach import LawBroken, PartyDatabase
from simulation.scenarios import scenario_of
from simulation.settling import settle
from simulation.shared_store import shared_store
from tsuzuki.engine import process
from tsuzuki.engine.worker import steps
from tsuzuki.store.schema.migrate import SchemaWatch
from tsuzuki.store.sql.database import Connection
from tsuzuki.store.wakeups import channels, listeners

WATCH_SECONDS = 0.3
FLUSH_SECONDS = 1.0


@dataclass(kw_only=True)
class Told:
    """What became of a seed."""

    seed: int
    scenario: str
    reached: Counter[str]
    story: list[str] = field(default_factory=list)
    broken: str | None = None


class World:
    def __init__(
        self, chance: Random, scenario: Scenario, scheduled: list[int], *, story: list[str] | None
    ) -> None:
        self.chance = chance
        self.scheduled = scheduled
        self.turns = Turns(self.chance)
        self.database_clock = SimulatedClock(self.turns)
        self.store = shared_store()
        self.reached: Counter[str] = Counter()
        self.ledger = Ledger()
        self.laws = Laws(self)
        self.nodes: list[Node] = []
        self.parties: list[Party] = []
        self.is_settling = False
        self.settings_changed_at = float("-inf")
        self.notices_said: set[str] = set()
        self._story = story
        self._scenario = scenario
        self.fate = Fate(self, scenario)

    def live(self) -> None:
        """A storm, and then time to become quiet."""
        self.fate.populate()
        operator = Operator(self, "operator")
        operator.weather = self._scenario.weather
        self.parties.append(operator)
        acts, seconds = self._scenario.acts, self._scenario.act_every_seconds
        self.turns.spawn("operator", operator, lambda: operator.live(acts, seconds))
        self.turns.spawn("fate", self.fate, self.fate.live)
        self.turns.run_until(lambda: False, self.chance.choice(self._scenario.storm_seconds))
        self.is_settling = True
        self.fate.relent()
        settle(self)

    def place_node(self, place: int, node: Node) -> None:
        if place < len(self.nodes):
            self.parties.remove(self.nodes[place])
            self.nodes[place] = node
        else:
            self.nodes.append(node)
        self.parties.append(node)

    def tell(self, sentence: str) -> None:
        if self._story is not None:
            fiber = self.turns.current
            who = f"{getattr(fiber.owner, 'name', 'fate')}/{fiber.name}" if fiber else "world"
            self._story.append(f"{self.turns.now:8.3f}  {who:<18} {sentence}")

    def deliver_notices(self) -> None:
        """Wake-ups go out with the commit; some get lost on the way."""
        if not self.notices_said:
            return
        for node in self.nodes:
            if node.listener and not node.is_cut and self.chance.random() < 0.9:
                node.listener.hear(self.notices_said)


def simulate(seed: int, *, tell: bool = False, guarded: bool = True) -> Told:
    """Live through one seed. What broke, if anything did, is in the answer. Not `guarded`, the
    database lets pass whatever it is told."""
    chosen = scenario_of(seed)
    story: list[str] | None = [] if tell else None
    chance = Random(seed)
    scheduled = chance.sample(SCHEDULED, SCHEDULED_AT_ONCE)
    shared_store().renew(scheduled=scheduled, guarded=guarded)
    world = World(chance, chosen, scheduled, story=story)
    shared_store().lend(world.database_clock)
    told = Told(seed=seed, scenario=chosen.name, reached=world.reached, story=story or [])
    gc.disable()  # worlds are small, and full of circles
    with _in_place(world):
        try:
            world.live()
        except (LawBroken, TooBusy) as broken:
            told.broken = f"after {world.turns.now:.3f} s: {broken}"
            world.tell(f"BROKEN: {broken}")
        finally:
            for node in world.nodes:
                node.is_dead = True
            world.turns.end_everything()
            gc.enable()
    told.story = story or []
    return told


@cache
def _schema_watch(_components: object) -> SchemaWatch:
    return SchemaWatch()


@contextmanager
def _in_place(world: World) -> Iterator[None]:
    """Fibers instead of threads, and wake-ups as a server sends them: with the commit."""

    def notify(_connection: Connection, *names: str) -> None:
        world.notices_said.update(names)

    def listen(database: PartyDatabase, _channels: object) -> SimulatedListener:
        node: Node = database.party  # type: ignore[assignment]
        return SimulatedListener(node)

    logger = logging.getLogger("tsuzuki")
    level, logger.level = logger.level, logging.CRITICAL + 1
    with ExitStack() as stack:
        stack.enter_context(patch.object(process, "Loop", SteppedLoop))
        stack.enter_context(patch.object(process, "SchemaWatch", _schema_watch))
        stack.enter_context(patch.object(steps, "WATCH_SECONDS", WATCH_SECONDS))
        stack.enter_context(patch.object(steps, "FLUSH_SECONDS", FLUSH_SECONDS))
        stack.enter_context(patch.object(channels, "notify", notify))
        stack.enter_context(patch.object(listeners, "listen", listen))
        try:
            yield
        finally:
            logger.level = level
