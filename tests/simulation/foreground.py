"""Commands that execute one job in the foreground: they start an engine of their own if none lives, and end it."""

import threading
from typing import TYPE_CHECKING

from simulation.client import Client
from simulation.node import Node
from tsuzuki.engine.process import Engine
from tsuzuki.engine.role import ProcessRole
from tsuzuki.model.errors import TsuzukiError
from tsuzuki.services.liveness import Liveness
from tsuzuki.services.local_engine import Functions, LocalEngine
from tsuzuki.services.one_run_engine import OneRunEngine
from tsuzuki.services.runs import Request, Runs
from tsuzuki.services.workers import Workers

if TYPE_CHECKING:
    from simulation.world import World

JOB = "asked"
CHECK_SECONDS = 0.5


class ForegroundCommand(Client):
    def __init__(self, world: "World", name: str) -> None:
        super().__init__(world, name)
        self._runs = Runs(database=self.database, actor=name)
        self._engine = LocalEngine(
            build=self._build,
            liveness=Liveness(database=self.database, host=name),
            workers=Workers(database=self.database, actor=name),
            runs=self._runs,
        )
        self._nodes: list[Node] = []
        self._never = threading.Event()

    def start(self) -> None:
        self.world.scheduler.spawn("command", self, self._live)

    def crash(self) -> None:
        """Its engine is of its own process."""
        self.is_dead = True
        for node in self._nodes:
            node.crash()
        self.world.scheduler.end_all_of(self)

    def _live(self) -> None:
        try:
            run_id = self._runs.submit(Request(job=JOB)).run_id
            self.world.log(f"{self.name} executes run {run_id} in the foreground")
            match self.world.random.choice(("one run", "one run or its retry", "one job")):
                case "one run":
                    self._execute_beside(run_id, only_run=run_id)
                case "one run or its retry":
                    self._execute_one(run_id)
                case _:
                    self._execute_beside(run_id)
        except TsuzukiError as problem:
            self.world.log(f"{self.name} fails: {problem}")
        for node in self._nodes:
            node.end()
        self.world.log(f"{self.name} has ended")
        self.is_dead = True

    def _execute_one(self, run_id: int) -> None:
        """As `commits collect` does."""
        engine = OneRunEngine(self._engine, self._runs, lambda: run_id, clock=self.clock)
        try:
            while self._is_live(run_id):
                engine.check(is_running=self.world.invariants.is_running(run_id))
                self.clock.wait(self._never, CHECK_SECONDS)
        finally:
            engine.close()

    def _execute_beside(self, run_id: int, *, only_run: int | None = None) -> None:
        """As `books collect` does; without `only_run` also what is due of its job."""
        with self._engine.ensure_running(only_job=JOB, only_run=only_run):
            while self._is_live(run_id):
                self.clock.wait(self._never, CHECK_SECONDS)

    def _is_live(self, run_id: int) -> bool:
        return not self.world.faults_ended and not self.world.invariants.runs[run_id].state.is_final

    def _build(self, role: ProcessRole, _functions: Functions) -> Engine:
        node = Node(self.world, f"{self.name}.{len(self._nodes) + 1}", role)
        node.only_job = JOB
        node.was_drained = True  # it leaves when its run has ended
        node.fault_rates = self.fault_rates
        self._nodes.append(node)
        self.world.nodes.append(node)
        self.world.clients.append(node)
        self.world.coverage["an engine ran in the foreground"] += 1
        return node.engine
