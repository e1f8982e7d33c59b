"""Fault injection: what goes wrong in a scenario, when, and the restart of processes that have ended."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from simulation.client import FILE, NO_FAULTS, FaultRates, PlannedFault
from simulation.database_faults import InjectionPoint
from simulation.foreground import ForegroundCommand
from simulation.jobs import TAG
from simulation.node import Node
from simulation.violations import InvariantViolated
from tsuzuki.engine.role import ProcessRole

if TYPE_CHECKING:
    from simulation.world import World

FIBERS = ("lease", "lead", "lead", "lead", "work", "work", "beat", "handler", None)
"""The fiber in which a planned fault is injected; None is any of the process."""

OUTSIDE_TRANSACTIONS = (
    InjectionPoint.AFTER_READ,
    InjectionPoint.BEFORE_WRITE,
    InjectionPoint.AFTER_COMMIT,
)
"""Where a process can be suspended or disconnected between two transactions."""

LONG = (6.0,)
MIXED = (2.0, 3.0, 4.0, 6.0)
"""How long faults are injected, in simulated seconds; one is chosen per seed. Many short phases find as much as few
long ones in the same time, where a fault has its effect at once; where it needs a lease or a second process,
they find less."""

REPLY_SECONDS = 1.2
"""How long a slow reply takes: meanwhile a worker that runs something polls, and a lease stays valid."""

BOTH = ProcessRole(capacity=4)
LEADS = ProcessRole(work=False)
WORKS = ProcessRole(lead=False, capacity=4)
TAGGED = ProcessRole(capacity=2, tags=frozenset({TAG}))
NARROW = ProcessRole(capacity=1)
"""With more work than slots: what ends is replaced in the same commit."""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A kind of fault injection. `faults` are methods of `FaultInjector`, each with its weight."""

    name: str
    faults: Mapping[str, int]
    every_seconds: float = 0.7
    fault_seconds: tuple[float, ...] = LONG
    roles: tuple[ProcessRole, ...] = (BOTH, BOTH)
    shows_deaths: bool = False
    """Whether processes of a machine see which others of it have ended."""
    programs: tuple[str | None, ...] = ()
    """The program of each process, which jobs may need; without them every process can execute every job."""
    machines: tuple[int, ...] = ()
    """Of the processes in the same order; without them each has its own."""
    fault_rates: FaultRates = NO_FAULTS
    acts: tuple[str, ...] = ("submit", "submit", "emit")
    act_every_seconds: float = 2.0
    holds_seconds: tuple[float, ...] = ()
    """How long a handler keeps its transactions open; one is chosen per run."""
    holds_write_lock: bool = False
    """Whether it holds the write lock of the file meanwhile, as on SQLite, and not only the row of its run."""
    page_seconds: tuple[float, ...] = (0.1, 0.1, 0.5, 0.5, 1.0, 1.0, 2.5, 2.5, 8.0)
    """How long a page of a handler takes; sometimes longer than the TTL of a worker."""
    reports_often: bool = False
    """Whether handlers have many pages, and report their progress before and after each."""
    has_bounds: bool = False
    """Whether handlers return, log and raise values at the bounds of what can be stored."""
    counts_hours: bool = False
    """Whether what has ended is counted by the hour, and the counts are checked."""
    has_reader: bool = False
    """Whether a client follows the stream of changes."""
    must_cover: tuple[str, ...] = field(default=())
    """What a batch of seeds must have covered, or it proves nothing."""

    @property
    def is_peaceful(self) -> bool:
        """Whether every process goes on and reaches the database: then no run is lost."""
        return not self.faults and self.fault_rates.is_peaceful


class FaultInjector:
    """Runs as a fiber of its own. Not a client: it has no clock and no connection."""

    suspended_until = 0.0

    def __init__(self, world: "World", scenario: Scenario) -> None:
        self._world = world
        self._scenario = scenario
        self._faults = [name for name, weight in scenario.faults.items() for _ in range(weight)]
        self._generation = [0] * len(scenario.roles)
        self._calm = FILE if scenario.fault_rates is FILE else NO_FAULTS
        self._commands = 0
        self._back_at = [0.0] * len(scenario.roles)
        self._machines = scenario.machines or tuple(range(len(scenario.roles)))
        self._suspended_until = [0.0] * len(scenario.roles)
        """Of each machine."""

    def run(self) -> None:
        random = self._world.random
        while not self._world.faults_ended:
            self._world.scheduler.sleep(random.random() * 2 * self._scenario.every_seconds)
            self.restart_ended()
            if self._faults and not self._world.faults_ended:
                fault: Callable[[], None] = getattr(self, random.choice(self._faults))
                fault()

    def start_all(self) -> None:
        for place in range(len(self._scenario.roles)):
            self._start(place)

    def restart_ended(self, *, at_once: bool = False) -> None:
        """Start a new process in place of one that has ended, after a while, as a service manager does."""
        now, random = self._world.scheduler.now, self._world.random
        for place, node in enumerate(self._world.nodes[: len(self._scenario.roles)]):
            if node.engine.drained.is_set():
                if node.is_wanted:
                    raise InvariantViolated(f"{node.name} left without being asked to")
                node.asked_to_stop.set()
            if not node.is_dead or self._suspended_until[self._machines[place]] > now:
                continue
            if not self._back_at[place]:
                self._back_at[place] = now + random.random() * 4.0
            if at_once or self._back_at[place] <= now:
                self._start(place)

    def stop_faults(self) -> None:
        """Inject nothing from now on."""
        self._world.log("no more faults")
        for client in self._world.clients:
            client.fault_rates = self._calm
            client.planned_fault = None
        self._world.loses_next_term = False
        self.restart_ended(at_once=True)

    def _start(self, place: int) -> None:
        self._generation[place] += 1
        self._back_at[place] = 0.0
        name = f"n{place + 1}.{self._generation[place]}"
        program = self._scenario.programs[place] if self._scenario.programs else None
        role, machine = self._scenario.roles[place], self._machines[place]
        node = Node(self._world, name, role, program=program, machine=machine)
        node.fault_rates = self._calm if self._world.faults_ended else self._scenario.fault_rates
        self._world.place_node(place, node)
        node.start()

    # --- faults ---------------------------------------------------------------------------------

    def crash(self) -> None:
        node = self._pick_node()
        if node is not None:
            node.crash()

    def look_dead(self) -> None:
        """Its pid means nothing where others look, as in another namespace."""
        node = self._pick_node()
        if node is not None and not node.has_lost_lock:
            node.looks_dead = True

    def lose_lock(self) -> None:
        """A handler closes all descriptors of its process."""
        node = self._pick_node()
        if node is not None and not node.looks_dead:
            node.has_lost_lock = True

    def crash_all(self) -> None:
        """All processes at once, if all of them were heard."""
        heard = "SELECT count(*) FROM tsuzuki_workers WHERE state = 'ATTACHED' AND heartbeat_at > tsuzuki_now(-3)"
        (count,) = self._world.store.raw.execute(heard).fetchone()
        if count == len(self._world.nodes):
            for node in self._world.nodes:
                node.crash()
            self._world.coverage["all processes crashed at once"] += 1

    def crash_at_point(self) -> None:
        self._plan_fault(tuple(InjectionPoint), lambda node: node.crash)

    def pause(self) -> None:
        node = self._pick_node()
        if node is not None:
            node.suspend(self._long_seconds())

    def pause_leader_after_read(self) -> None:
        """The leader pauses between a read and its write, and still leads when it goes on."""
        for node in self._world.nodes:
            if not node.is_dead and node.engine.lease.term is not None:
                passes = self._world.random.randint(1, 6)
                node.planned_fault = PlannedFault(
                    point=InjectionPoint.AFTER_READ,
                    fiber="lead",
                    passes=passes,
                    inject=partial(node.suspend, 1.5),
                )

    def delay_reply_to_leader(self) -> None:
        """The thread that leads waits for a reply, while the others of its process go on."""
        for node in self._world.nodes:
            if not node.is_dead and node.engine.lease.term is not None:
                node.planned_fault = PlannedFault(
                    point=InjectionPoint.AFTER_COMMIT,
                    fiber="lead",
                    passes=self._world.random.randint(1, 3),
                    inject=partial(self._delay_reply, node),
                )

    def _delay_reply(self, node: Node) -> None:
        self._world.coverage["a reply to a leader was slow"] += 1
        self._world.log(f"{node.name} waits for a reply")
        self._world.scheduler.sleep(REPLY_SECONDS)

    def pause_at_point(self) -> None:
        self._plan_fault(
            OUTSIDE_TRANSACTIONS, lambda node: lambda: node.suspend(self._long_seconds())
        )

    def sleep_at_point(self) -> None:
        self._plan_fault(
            OUTSIDE_TRANSACTIONS,
            lambda node: lambda: node.suspend(self._long_seconds(), asleep=True),
        )

    def suspend_machine(self) -> None:
        """All processes of one machine; its network may come back later than they do."""
        now, random = self._world.scheduler.now, self._world.random
        machine = random.choice(self._machines)
        if self._suspended_until[machine] > now:
            return
        seconds = random.choice((3.0, 5.0, 7.0, 9.0))
        offline_seconds = random.choice((0.0, 0.0, 6.0, 9.0))
        self._suspended_until[machine] = now + seconds
        for place, node in enumerate(self._world.nodes[: len(self._machines)]):
            if self._machines[place] == machine and not node.is_dead:
                node.suspend(seconds, asleep=True)
                if offline_seconds:
                    node.disconnect(seconds + offline_seconds, silently=random.random() < 0.3)
        self._world.coverage["a machine was suspended"] += 1

    def run_in_foreground(self) -> None:
        """A person types a command, and may kill it soon."""
        random = self._world.random
        self._commands += 1
        command = ForegroundCommand(self._world, f"c{self._commands}")
        command.fault_rates = self._scenario.fault_rates
        self._world.clients.append(command)
        command.start()
        if random.random() < 0.3:
            self._world.scheduler.spawn("kill", self, partial(self._kill_later, command))

    def _kill_later(self, command: ForegroundCommand) -> None:
        self._world.scheduler.sleep(self._world.random.random() * 8.0)
        command.crash()

    def disconnect(self) -> None:
        node = self._pick_node()
        if node is not None:
            node.disconnect(self._long_seconds(), silently=self._world.random.random() < 0.5)

    def disconnect_all(self) -> None:
        """The database itself is unreachable, also for processes that start meanwhile."""
        seconds, silently = self._long_seconds(), self._world.random.random() < 0.5
        self._world.unreachable_until = self._world.scheduler.now + seconds
        for client in self._world.clients:
            client.disconnect(seconds, silently=silently)
        self._world.coverage["the database was unreachable for all"] += 1

    def disconnect_at_point(self) -> None:
        silently = self._world.random.random() < 0.5
        self._plan_fault(
            OUTSIDE_TRANSACTIONS,
            lambda node: lambda: node.disconnect(self._long_seconds(), silently=silently),
        )

    def lose_next_term(self) -> None:
        """A failover to an asynchronous standby takes the next term back after it was confirmed."""
        self._world.loses_next_term = True

    def step_database_clock(self) -> None:
        self._step_database_clock((-300.0, -6.0, -2.0, 0.9, 1.9, 3.0, 10.0, 30.0))

    def step_database_clock_by_hours(self) -> None:
        """So that hours are over, are counted, and come again."""
        self._step_database_clock((-4200.0, -1800.0, 1800.0, 4200.0, 4200.0))

    def step_clock_a_little(self) -> None:
        """Less than a second, the database's or that of a process."""
        random = self._world.random
        seconds = random.choice((-0.9, -0.3, -0.05, 0.05, 0.3, 0.9))
        node = self._pick_node() if random.random() < 0.3 else None
        if node is None:
            self._step_database_clock((seconds,))
        else:
            node.clock.step(seconds)
        kind = "back" if seconds < 0 else "forward"
        self._world.coverage[f"a clock stepped {kind} by less than a second"] += 1

    def step_node_clock(self) -> None:
        node = self._pick_node()
        if node is not None:
            seconds = self._world.random.choice((-3600.0, -20.0, 20.0, 3600.0))
            node.clock.step(seconds)
            self._stepped(f"the clock of {node.name} steps by {seconds:+.0f} s", seconds)

    def stop(self) -> None:
        node = self._pick_node()
        if node is not None:
            node.asked_to_stop.set()
            if self._world.random.random() < 0.3:
                node.engine.hurry()

    # --- helpers --------------------------------------------------------------------------------

    def _step_database_clock(self, choices: tuple[float, ...]) -> None:
        seconds = self._world.random.choice(choices)
        self._world.database_clock.step(seconds)
        self._stepped(f"the database's clock steps by {seconds:+g} s", seconds)

    def _stepped(self, sentence: str, seconds: float) -> None:
        self._world.log(sentence)
        self._world.coverage[f"a clock stepped {'back' if seconds < 0 else 'forward'}"] += 1

    def _plan_fault(
        self, points: tuple[InjectionPoint, ...], inject: Callable[[Node], Callable[[], None]]
    ) -> None:
        node = self._pick_node()
        if node is not None:
            random = self._world.random
            node.planned_fault = PlannedFault(
                point=random.choice(points),
                fiber=random.choice(FIBERS),
                passes=random.randint(1, 4),
                inject=inject(node),
            )

    def _pick_node(self) -> Node | None:
        """A process that runs; the leader with a higher probability."""
        random = self._world.random
        alive = [node for node in self._world.nodes if not node.is_dead and not node.is_suspended]
        leading = [node for node in alive if node.engine.lease.term is not None]
        if leading and random.random() < 0.4:
            return leading[0]
        return random.choice(alive) if alive else None

    def _long_seconds(self) -> float:
        """Mostly longer than a lease or the TTL of a worker."""
        return self._world.random.choice((0.5, 3.0, 6.0, 7.0, 9.0))
