"""One simulation: its processes, its operator, its faults; from a seed to a result and a trace."""

import gc
import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from random import Random
from unittest.mock import patch

from simulation.bulk_cancels import interleaved_bulk_cancels
from simulation.client import Client
from simulation.clocks import SimulatedClock
from simulation.database_faults import ClientAutocommit, ClientDatabase
from simulation.definitions import Definitions
from simulation.faults import FaultInjector, Scenario
from simulation.invariants import Invariants
from simulation.jobs import SCHEDULED, SCHEDULED_AT_ONCE
from simulation.node import Node, SimulatedListener, SteppedLoop
from simulation.operators import Ledger, Operator
from simulation.promises import Promises
from simulation.quiescence import check_quiescence
from simulation.scenarios import scenario_of
from simulation.scheduler import Scheduler
from simulation.shared_store import NO_CHANGES, shared_store
from simulation.stream_reader import StreamReader
from simulation.violations import InvariantViolated, Livelock
from simulation.write_lock import WriteLock
from tsuzuki.engine import process
from tsuzuki.engine.leader import assigner
from tsuzuki.engine.leader import steps as leader_steps
from tsuzuki.engine.worker import steps
from tsuzuki.store.schema.migrate import SchemaWatch
from tsuzuki.store.sql.prepared import AnyConnection
from tsuzuki.store.wakeups import channels, listeners

WATCH_SECONDS = 0.3
FLUSH_SECONDS = 1.0
WALK_MAX = 2
"""So few runs are read along the queue that blocked ones make the leader search by groups."""


@dataclass(kw_only=True)
class SimulationResult:
    """`violation` is None if every invariant held."""

    seed: int
    scenario: str
    coverage: Counter[str]
    trace: list[str] = field(default_factory=list)
    violation: str | None = None


class World:
    def __init__(
        self, random: Random, scenario: Scenario, scheduled: list[int], *, trace: list[str] | None
    ) -> None:
        self.random = random
        self.scheduled = scheduled
        self.scheduler = Scheduler(self.random)
        self.database_clock = SimulatedClock(self.scheduler)
        self.store = shared_store()
        self.coverage: Counter[str] = Counter()
        self.ledger = Ledger()
        self.definitions = Definitions(self)
        self.invariants = Invariants(self)
        self.promises = Promises(self)
        self.nodes: list[Node] = []
        self.workers: dict[str, Node] = {}
        """Every worker that was ever registered, by its id."""
        self.process_files: dict[str, Node] = {}
        """Whose files exist, by their names."""
        self.machines_looked_at: set[int | None] = set()
        """Where a process looks for others that have ended."""
        self.recorded_deaths: set[str] = set()
        """The names of nodes."""
        self.clients: list[Client] = []
        self.faults_ended = False
        self.unreachable_until = 0.0
        """Until when no process reaches the database."""
        self.loses_next_term = False
        """Whether the next term is confirmed to its leader and then lost, by a failover."""
        self.write_lock = WriteLock(self.scheduler)
        self.row_free_at: dict[int, float] = {}
        """Since when no transaction holds the row of a run; infinite while one does."""
        self.settings_changed_at = float("-inf")
        self.pending_wakeups: set[str] = set()
        self.writing: ClientDatabase | None = None
        """Whose transaction is open."""
        self._trace = trace
        self.scenario = scenario
        self.faults = FaultInjector(self, scenario)
        self.reader = StreamReader(self) if scenario.has_reader else None

    def run(self) -> None:
        """A phase with faults, then one without, until quiescence."""
        self.faults.start_all()
        operator = Operator(self, "operator")
        operator.fault_rates = self.scenario.fault_rates
        self.clients.append(operator)
        acts, seconds = self.scenario.acts, self.scenario.act_every_seconds
        acting = self.scheduler.spawn("operator", operator, lambda: operator.run(acts, seconds))
        if self.reader is not None:
            self.clients.append(self.reader)
            self.scheduler.spawn("reader", self.reader, self.reader.run)
        self.scheduler.spawn("faults", self.faults, self.faults.run)
        self.scheduler.run_until(lambda: False, self.random.choice(self.scenario.fault_seconds))
        self.faults_ended = True
        self.faults.stop_faults()
        check_quiescence(self, has_acted=acting.done.is_set)

    def place_node(self, place: int, node: Node) -> None:
        if place < len(self.nodes):
            self.clients.remove(self.nodes[place])
            self.nodes[place] = node
        else:
            self.nodes.append(node)
        self.clients.append(node)

    def log(self, sentence: str) -> None:
        if self._trace is not None:
            fiber = self.scheduler.current
            who = f"{getattr(fiber.owner, 'name', 'faults')}/{fiber.name}" if fiber else "world"
            self._trace.append(f"{self.scheduler.now:8.3f}  {who:<18} {sentence}")

    def let_others_commit(self) -> None:
        """Inside a transaction, if it has moved no run yet."""
        if self.writing is not None:
            self.writing.let_others_commit()

    def on_lost_term(self, client: Client) -> None:
        self.loses_next_term = False
        self.coverage["a term was lost in a failover"] += 1
        self.log(f"the term of {client.name} is lost in a failover")

    def deliver_wakeups(self) -> None:
        """Wake-ups are sent with the commit; some are lost."""
        if not self.pending_wakeups:
            return
        for node in self.nodes:
            if node.listener and not node.is_disconnected and self.random.random() < 0.9:
                node.listener.notify(self.pending_wakeups)


def simulate(
    seed: int,
    *,
    traced: bool = False,
    guarded: bool = True,
    scenario: Scenario | None = None,
    settings: Mapping[str, float] = NO_CHANGES,
) -> SimulationResult:
    """Run one seed, of its own scenario unless another is given. Unless `guarded`, the database's triggers do not
    refuse illegal moves."""
    chosen = scenario or scenario_of(seed)
    trace: list[str] | None = [] if traced else None
    random = Random(seed)
    scheduled = random.sample(SCHEDULED, SCHEDULED_AT_ONCE)
    shared_store().reset(scheduled=scheduled, guarded=guarded, settings=settings)
    world = World(random, chosen, scheduled, trace=trace)
    shared_store().use_clock(world.database_clock)
    result = SimulationResult(
        seed=seed, scenario=chosen.name, coverage=world.coverage, trace=trace or []
    )
    gc.disable()  # a world is small, and full of reference cycles
    with _simulated_engine(world):
        try:
            world.run()
        except (InvariantViolated, Livelock) as problem:
            result.violation = f"after {world.scheduler.now:.3f} s: {problem}"
            world.log(f"VIOLATION: {problem}")
        finally:
            for node in world.nodes:
                node.is_dead = True
            world.scheduler.end_everything()
            gc.enable()
    result.trace = trace or []
    return result


@cache
def _schema_watch(_components: object) -> SchemaWatch:
    return SchemaWatch()


@contextmanager
def _simulated_engine(world: World) -> Iterator[None]:
    """Patch the engine: fibers instead of threads, and wake-ups sent with the commit, as by a server."""

    def notify(connection: AnyConnection, *names: str) -> None:
        if isinstance(connection, ClientAutocommit):
            connection.notify(names)
        else:
            world.pending_wakeups.update(names)

    def listen(database: ClientDatabase, _channels: object) -> SimulatedListener:
        node: Node = database.client  # type: ignore[assignment]
        return SimulatedListener(node)

    logger = logging.getLogger("tsuzuki")
    level, logger.level = logger.level, logging.CRITICAL + 1
    with ExitStack() as stack:
        stack.enter_context(world.store.row_locks.marked())
        stack.enter_context(patch.object(process, "Loop", SteppedLoop))
        stack.enter_context(patch.object(process, "SchemaWatch", _schema_watch))
        stack.enter_context(patch.object(steps, "WATCH_SECONDS", WATCH_SECONDS))
        stack.enter_context(patch.object(steps, "FLUSH_SECONDS", FLUSH_SECONDS))
        stack.enter_context(patch.object(assigner, "WALK_MAX", WALK_MAX))
        if world.scenario.counts_hours:
            stack.enter_context(patch.object(leader_steps, "ARCHIVE_INTERVAL_SECONDS", 1.0))
        stack.enter_context(interleaved_bulk_cancels(world))
        stack.enter_context(patch.object(channels, "notify", notify))
        stack.enter_context(patch.object(listeners, "listen", listen))
        try:
            yield
        finally:
            logger.level = level
