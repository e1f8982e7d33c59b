"""One process of the engine, as real as it is, but for its threads, its clock and its luck."""

import sys
import threading
from collections.abc import Collection
from random import Random
from typing import TYPE_CHECKING, Any

from simulation.handlers import SimulatedExecution, SimulatedExecutor
from simulation.party import Party
from simulation.reach import LawBroken
from tsuzuki.engine.leader.leader import LeaderRound
from tsuzuki.engine.loop import Loop
from tsuzuki.engine.metrics import Metrics
from tsuzuki.engine.process import Engine
from tsuzuki.engine.role import Role
from tsuzuki.engine.worker.identity import WorkerIdentity
from tsuzuki.engine.worker.step import WorkerStep
from tsuzuki.model.errors import TsuzukiError, Unreachable
from tsuzuki.store.leadership import Term

if TYPE_CHECKING:
    from simulation.world import World


class Node(Party):
    def __init__(self, world: "World", name: str, role: Role) -> None:
        super().__init__(world, name)
        self.role = role
        self.executions: dict[int, SimulatedExecution] = {}
        self.listener: SimulatedListener | None = None
        self.term: Term | None = None
        """Under which it leads, while it is in a round of its duties."""
        self.asked_to_stop = threading.Event()
        self.was_drained = False
        """Whether an operator may have drained it."""
        self._identities = 0
        self.engine = SimulatedEngine(
            self,
            database=self.database,
            executor=SimulatedExecutor(self),
            clock=self.clock,
            random=Random(world.chance.random()),
            role=role,
            software_version="simulated",
            metrics=Watched(self),
        )
        self.engine.settings._lock = TurnLock(self)  # type: ignore[assignment]
        self.engine.worker._local_start_lock = TurnLock(self)  # type: ignore[assignment]
        self._lead = self.engine.leader.tick
        self.engine.leader.tick = self._led  # type: ignore[method-assign]

    @property
    def is_wanted(self) -> bool:
        """A worker that lives and that nobody sent away."""
        was_sent_away = self.asked_to_stop.is_set() or self.was_drained
        return self.role.work and not self.is_dead and not was_sent_away

    @property
    def takes_work(self) -> bool:
        return self.engine.worker.accepting and not self.engine.drained.is_set()

    def start(self) -> None:
        self.world.tell(f"{self.name} starts")
        self.world.turns.spawn("main", self, self._live)

    def new_identity(self) -> WorkerIdentity:
        self._identities += 1
        return WorkerIdentity(
            id=f"{self.name}-{self._identities}",
            host=self.name,
            pid=1,
            capacity=self.role.capacity,
            tags=self.role.tags,
            software_version="simulated",
        )

    def crash(self) -> None:
        """Its end in the middle of whatever it does."""
        if self.is_dead:
            return
        self.is_dead = True
        self.world.reached["a process crashed"] += 1
        self.world.tell(f"{self.name} crashes")
        self.world.laws.crashed(self)
        self.world.turns.end_all_of(self)

    def _live(self) -> None:
        """As the command line serves an engine."""
        try:
            self.engine.start()
        except TsuzukiError:
            self.world.tell(f"{self.name} could not start")
        else:
            while not self.clock.wait(self.asked_to_stop, 1.0):
                if self.engine.drained.is_set() and not self.role.lead:
                    break
            self.world.tell(f"{self.name} stops in good order")
            self.engine.shut_down()
            self.world.reached["a process stopped in good order"] += 1
        self.is_dead = True
        self.world.tell(f"{self.name} has ended")
        self.world.turns.end_all_of(self)

    def _led(self, term: Term, *, woken: bool = False) -> LeaderRound:
        self.term = term
        try:
            return self._lead(term, woken=woken)
        finally:
            self.term = None


class SimulatedEngine(Engine):
    """The real one, with names that are the same whenever the story is told."""

    def __init__(self, node: Node, **parts: Any) -> None:
        self._node = node
        super().__init__(**parts)

    def _new_identity(self) -> WorkerIdentity:
        return self._node.new_identity()


class SteppedLoop(Loop):
    """The real loop in a fiber instead of a thread."""

    def start(self) -> None:
        node: Node = self._clock.owner  # type: ignore[attr-defined]
        self._fiber = node.world.turns.spawn(self.name, node, self._run)

    def join(self, seconds: float) -> bool:
        return self._clock.wait(self._fiber.done, seconds)


class TurnLock:
    """A lock that is waited for in turns: a fiber may rest while it holds it."""

    def __init__(self, party: Party) -> None:
        self._turns = party.world.turns
        self._is_held = False

    def __enter__(self) -> None:
        while self._is_held:
            self._turns.rest(0.01)
        self._is_held = True

    def __exit__(self, *_problem: object) -> None:
        self._is_held = False


class SimulatedListener:
    """Hears what was committed elsewhere, mostly: a wake-up is only ever a hint."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._rung = threading.Event()
        self._heard: set[str] = set()
        node.listener = self

    def hear(self, names: Collection[str]) -> None:
        self._heard.update(names)
        self._rung.set()

    def wait(self, seconds: float) -> Collection[str]:
        if self._node.is_cut:
            raise Unreachable("the database stopped talking")
        self._node.clock.wait(self._rung, 10 * seconds)
        self._rung.clear()
        heard, self._heard = frozenset(self._heard), set()
        return heard

    def close(self) -> None:
        self._node.listener = None


_COUNTERS = Metrics()


class Watched:
    """In the place of the metrics: what a process says it did is held against what happened."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.leading = _COUNTERS.leading
        self.epoch = _COUNTERS.epoch

    def count_step(self, step: WorkerStep, **_figures: object) -> None:
        self._node.world.laws.told_of_work(self._node, step)

    def count_round(self, done: LeaderRound) -> None:
        if done.rescued:
            self._node.world.reached["a leader rescued"] += done.rescued

    def count_error(self, loop: str) -> None:
        problem = sys.exception()
        if problem is not None and not isinstance(problem, TsuzukiError):
            raise LawBroken(f"{self._node.name}: {loop} failed by a bug: {problem!r}") from problem
        self._node.world.reached["a step failed"] += 1
