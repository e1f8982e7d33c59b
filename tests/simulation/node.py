"""One process of the engine: real, except for its threads, its clock and its connection."""

import sys
import threading
from collections.abc import Callable, Collection
from random import Random
from typing import TYPE_CHECKING, Any

from simulation.client import Client
from simulation.handlers import SimulatedExecution, SimulatedExecutor
from simulation.process_files import SimulatedProcessFiles
from simulation.violations import InvariantViolated
from tsuzuki.engine.leader.leader import LeaderRound
from tsuzuki.engine.loop import Loop
from tsuzuki.engine.metrics import Metrics
from tsuzuki.engine.process import Engine
from tsuzuki.engine.role import ProcessRole
from tsuzuki.engine.worker.identity import WorkerIdentity
from tsuzuki.engine.worker.step import WorkerStep
from tsuzuki.model.abilities import Abilities
from tsuzuki.model.errors import TsuzukiError, Unreachable
from tsuzuki.store.leadership import Term

if TYPE_CHECKING:
    from simulation.world import World


COMMANDS_END_SECONDS = 2.0
"""By then supervisors have ended the commands of a process that crashed."""


class Node(Client):
    def __init__(
        self,
        world: "World",
        name: str,
        role: ProcessRole,
        *,
        program: str | None = None,
        machine: int | None = None,
    ) -> None:
        super().__init__(world, name)
        self.program = program
        self.machine = machine
        self.commands_end_at = 0.0
        """After a crash: when its supervisors have ended its commands."""
        self.looks_dead = False
        """Whether others do not find it in the process table, although it lives."""
        self.has_lost_lock = False
        """Whether its file is unlocked, although it lives."""
        has_programs = bool(world.scenario.programs)
        abilities = Abilities(kinds=frozenset({"command", "python"}), program=program)
        self.role = role
        self.executions: dict[int, SimulatedExecution] = {}
        self.listener: SimulatedListener | None = None
        self.term: Term | None = None
        """Under which it leads, during a round."""
        self.asked_to_stop = threading.Event()
        self.started_at = world.scheduler.now
        self.only_job = role.only_job
        """The one job that it may execute; None: any."""
        self.only_run = role.only_run
        """The one run that it may execute; None: any."""
        self.was_drained = False
        """Whether an operator may have drained it."""
        self._identities = 0
        self.engine = SimulatedEngine(
            self,
            database=self.database,
            executor=SimulatedExecutor(self),
            clock=self.clock,
            random=Random(world.random.random()),
            role=role,
            software_version="simulated",
            metrics=CheckedMetrics(self),
            find_abilities=(lambda _packages: abilities) if has_programs else None,
            process_files=SimulatedProcessFiles(self) if world.scenario.shows_deaths else None,
        )
        self.engine.settings._lock = FiberLock(self)  # type: ignore[assignment]
        self.engine.worker.local_start.lock = FiberLock(self)  # type: ignore[assignment]
        self.engine.leader.assigner._lock = FiberLock(self)  # type: ignore[assignment]
        self._tick = self.engine.leader.tick
        self.engine.leader.tick = self._led  # type: ignore[method-assign]

    @property
    def is_wanted(self) -> bool:
        """It works, is alive, and was not asked to stop or drain."""
        was_asked_to_leave = self.asked_to_stop.is_set() or self.was_drained
        return self.role.work and not self.is_dead and not was_asked_to_leave

    @property
    def takes_work(self) -> bool:
        return self.engine.worker.accepting and not self.engine.drained.is_set()

    def start(self) -> None:
        self.started_at = self.world.scheduler.now
        self.world.log(f"{self.name} starts")
        self.world.scheduler.spawn("main", self, self._live)

    def new_identity(self) -> WorkerIdentity:
        self._identities += 1
        self.world.workers[f"{self.name}-{self._identities}"] = self
        return WorkerIdentity(
            id=f"{self.name}-{self._identities}",
            host=f"machine {self.machine}" if self.world.scenario.shows_deaths else self.name,
            pid=1,
            capacity=self.role.capacity,
            tags=self.role.tags,
            only_job=self.role.only_job,
            only_run=self.role.only_run,
            software_version="simulated",
        )

    def crash(self) -> None:
        """Kill it where it is, as `kill -9` does."""
        if self.is_dead:
            return
        self.is_dead = True
        self.commands_end_at = self.world.scheduler.now
        if self.world.scenario.shows_deaths:
            self.commands_end_at += self.world.random.random() * COMMANDS_END_SECONDS
        self.world.coverage["a process crashed"] += 1
        self.world.log(f"{self.name} crashes")
        self.world.invariants.on_crash(self)
        self.world.scheduler.end_all_of(self)

    def _live(self) -> None:
        """What `tsuzuki up` does with an engine."""
        try:
            self.engine.start()
        except TsuzukiError:
            self.world.log(f"{self.name} could not start")
        else:
            while not self.clock.wait(self.asked_to_stop, 1.0):
                if self.engine.drained.is_set() and not self.role.lead:
                    break
            self.world.log(f"{self.name} shuts down")
            self.engine.shut_down()
            self.world.coverage["a process shut down cleanly"] += 1
        self.end()

    def end(self) -> None:
        """Its process has ended by itself."""
        if not self.is_dead:
            self.is_dead = True
            self.world.log(f"{self.name} has ended")
            self.world.scheduler.end_all_of(self)

    def _led(self, term: Term, *, woken: bool = False) -> LeaderRound:
        self.term = term
        self.world.coverage["a foreground engine led"] += self.only_job is not None
        try:
            return self._tick(term, woken=woken)
        finally:
            self.term = None


class SimulatedEngine(Engine):
    """The real one, with deterministic worker ids, so that a trace can be replayed."""

    def __init__(self, node: Node, **parts: Any) -> None:
        self._node = node
        super().__init__(**parts)

    def _new_identity(self) -> WorkerIdentity:
        return self._node.new_identity()

    def _steps(self) -> dict[str, Callable[[], float]]:
        """Without the reports of failing loops: they touch no run, and would only make every trace longer."""
        return {name: step for name, step in super()._steps().items() if name != "health"}


class SteppedLoop(Loop):
    """The real loop, in a fiber instead of a thread."""

    def start(self) -> None:
        node: Node = self._clock.owner  # type: ignore[attr-defined]
        self._fiber = node.world.scheduler.spawn(self.name, node, self._run)

    def join(self, seconds: float) -> bool:
        return self._clock.wait(self._fiber.done, seconds)


class FiberLock:
    """A lock between fibers: one may sleep while it holds it."""

    def __init__(self, client: Client) -> None:
        self._scheduler = client.world.scheduler
        self._is_held = False

    def acquire(self, *, blocking: bool = True) -> bool:
        while self._is_held and blocking:
            self._scheduler.sleep(0.01)
        was_held, self._is_held = self._is_held, True
        return not was_held

    def release(self) -> None:
        self._is_held = False

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_problem: object) -> None:
        self.release()


class SimulatedListener:
    """Receives wake-ups that other processes commit; some are lost, because a wake-up is only a hint."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._notified = threading.Event()
        self._names: set[str] = set()
        node.listener = self

    def notify(self, names: Collection[str]) -> None:
        self._names.update(names)
        self._notified.set()

    def wait(self, seconds: float) -> Collection[str]:
        if self._node.is_disconnected:
            raise Unreachable("the connection is lost")
        self._node.clock.wait(self._notified, 10 * seconds)
        self._notified.clear()
        heard, self._names = frozenset(self._names), set()
        return heard

    def close(self) -> None:
        self._node.listener = None


_COUNTERS = Metrics()


class CheckedMetrics:
    """In place of the metrics: checks what a process reports against what was recorded."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.leading = _COUNTERS.leading
        self.epoch = _COUNTERS.epoch

    def count_step(self, step: WorkerStep, **_figures: object) -> None:
        self._node.world.invariants.on_worker_step(self._node, step)

    def count_round(self, done: LeaderRound) -> None:
        if done.rescued:
            self._node.world.coverage["a leader rescued"] += done.rescued

    def watch_loop(self, loop: str, is_failing: Callable[[], bool]) -> None:
        """Not checked here: metrics are only read by tests of the real ones."""

    def watch_wal(self, file: str, wal_bytes: Callable[[], int]) -> None:
        """As above."""

    def count_error(self, loop: str) -> None:
        problem = sys.exception()
        if problem is not None and not isinstance(problem, TsuzukiError):
            raise InvariantViolated(
                f"{self._node.name}: {loop} raised an unexpected error: {problem!r}"
            ) from problem
        self._node.world.coverage["a step failed"] += 1
