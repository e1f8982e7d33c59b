"""Simulated handlers: they write page after page, fail, hang, or ignore the request to stop.

They get the real `RunContext` and end as executions of Python functions do: after the request to stop they have a
grace period, then they are abandoned. A handler that ignores the request goes on like a thread that cannot be
killed; only the fence keeps its rows out.
"""

import json
import threading
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from simulation.scheduler import GreenletExit
from simulation.violations import InvariantViolated
from tsuzuki.engine.executors.failures import failure_of
from tsuzuki.engine.outcome import Outcome, StopCause, Stopped, Succeeded
from tsuzuki.engine.run_context import RunContext, RunStopped, StopSignal
from tsuzuki.engine.task import OnOutcome, RunIO, Task
from tsuzuki.model.errors import Fenced, Unreachable

if TYPE_CHECKING:
    from simulation.faults import Scenario
    from simulation.node import Node

ROUNDING_SECONDS = 1.0

MEBIBYTE = "x" * 2**20
NESTED: Any = json.loads("[" * 60 + "]" * 60)
VALUES = (None, MEBIBYTE, MEBIBYTE[:-40], "\0", "\ud800", 2**70, float("nan"), NESTED)
TEXTS = ("it broke", "", "\0", "\ud800", MEBIBYTE[: 2**16], MEBIBYTE[: 2**17], "\n" * 500)
"""At the bounds of what can be stored, and beyond them."""

WRITE = text(
    "INSERT INTO sim_rows (run_id, worker_id, version, epoch, page)"
    " VALUES (:run_id, :worker_id, :version, :epoch, :page)"
)


@dataclass(frozen=True, kw_only=True)
class Behavior:
    """How a handler behaves."""

    pages: int = 0
    page_seconds: float = 0.1
    ignores_stop: bool = False
    fails: bool = False
    hangs: bool = False
    holds_seconds: float = 0.0
    """How long it keeps each transaction open, with the row of its run locked."""
    reports_often: bool = False
    """Whether it reports its progress with every page, and after it."""
    value: Any = None
    """What it returns, beside its pages."""
    text: str = "it broke"
    """What it logs, and the error with which it fails."""

    @classmethod
    def choose(cls, random: Random, task: Task, scenario: "Scenario") -> "Behavior":
        holds = scenario.holds_seconds
        often = scenario.reports_often
        return cls(
            holds_seconds=random.choice(holds) if holds else 0.0,
            pages=random.choice((16, 32)) if often else random.choice((0, 1, 1, 2)),
            page_seconds=random.choice(scenario.page_seconds),
            ignores_stop=random.random() < 0.2,
            fails=random.random() < 0.25,
            hangs=random.random() < 0.08 and task.spec.timeout_seconds is not None,
            reports_often=often,
            value=random.choice(VALUES) if scenario.has_bounds else None,
            text=random.choice(TEXTS) if scenario.has_bounds else "it broke",
        )


SUCCEEDS = Behavior()
"""After the faults, so that every run ends soon."""


class SimulatedExecution:
    def __init__(self, node: "Node", task: Task, run_io: RunIO, done: OnOutcome) -> None:
        self.task = task
        self.is_ended = False
        self._node = node
        self._world = node.world
        self._worker_id = node.engine.worker.identity.id
        self._done = done
        self._stop_signal = StopSignal()
        self._cause: StopCause | None = None
        self._context = RunContext(
            task=task, run_io=run_io, clock=node.clock, stop_signal=self._stop_signal
        )
        self._behavior = (
            SUCCEEDS
            if self._world.faults_ended
            else Behavior.choose(self._world.random, task, self._world.scenario)
        )

    def start(self) -> None:
        self._world.scheduler.spawn("handler", self._node, self._run)

    def stop(self, cause: StopCause, *, at_once: bool = False) -> None:
        if self.is_ended:
            return
        is_first = self._cause is None
        self._cause = self._cause or cause
        self._stop_signal.set()
        if at_once:
            self._end(Stopped(cause=self._cause))
        elif is_first:
            self._world.scheduler.spawn("grace", self._node, self._give_up_later)

    def _give_up_later(self) -> None:
        seconds = self._node.engine.settings().kill_grace_seconds
        self._node.clock.wait(threading.Event(), seconds)
        self._end(Stopped(cause=self._cause or StopCause.SHUTDOWN))

    def _end(self, outcome: Outcome) -> None:
        if self.is_ended:
            return
        self.is_ended = True
        self._world.promises.store_end(self._node, self)
        self._stop_signal.fence()
        self._done(self.task, outcome if self._cause is None else Stopped(cause=self._cause))

    def _run(self) -> None:
        try:
            self._work()
        except (GreenletExit, InvariantViolated):
            raise
        except RunStopped:
            self._end(Stopped(cause=self._cause or StopCause.FENCED))
        except Exception as problem:  # noqa: BLE001 -- any exception is its outcome
            if isinstance(problem, Fenced):
                self._world.coverage["a fenced write was refused"] += 1
            self._end(failure_of(problem))
        else:
            result = {"pages": self._behavior.pages}
            if self._behavior.value is not None:
                result["value"] = self._behavior.value
            self._end(Succeeded(result=result))

    def _work(self) -> None:
        behavior = self._behavior
        for page in range(behavior.pages):
            self._take_time(behavior.page_seconds)
            if page == 0:
                self._context.log(f"page {page}" if behavior.text == "it broke" else behavior.text)
            if page == 0 or behavior.reports_often:
                self._context.progress(page, behavior.pages)
            self._write(page)
            if behavior.reports_often:
                self._context.progress(page + 1, behavior.pages)
        self._take_time(60.0 if behavior.hangs else behavior.page_seconds / 2)
        if behavior.fails:
            raise ValueError(behavior.text)

    def _take_time(self, seconds: float) -> None:
        # Rounded up, so that several end at one moment: cheaper, and a harder case.
        if not self._behavior.reports_often:
            seconds += -(self._world.scheduler.now + seconds) % ROUNDING_SECONDS
        if self._behavior.ignores_stop:
            self._node.clock.wait(threading.Event(), seconds)
        elif self._context.wait(seconds):
            raise RunStopped

    def _write(self, page: int) -> None:
        """One page in one fenced transaction, repeated if the reply was lost."""
        started = self.task.started
        row = {
            "run_id": started.id,
            "worker_id": self._worker_id,
            "version": started.version,
            "epoch": started.epoch,
            "page": page,
        }
        while True:
            try:
                with self._context.transaction() as connection:
                    self._hold(self._behavior.holds_seconds)
                    row_id = connection.execute(WRITE, row).lastrowid
            except Unreachable:
                self._take_time(0.5)
            else:
                self._world.ledger.rows.add(row_id)
                return

    def _hold(self, seconds: float) -> None:
        """Keep the transaction open."""
        run_id, database = self.task.started.id, self._node.database
        if seconds and self._world.scenario.holds_write_lock:
            database.hold_write_lock(run_id, seconds)
        elif seconds:
            database.hold_row(run_id, seconds)


class SimulatedExecutor:
    def __init__(self, node: "Node") -> None:
        self._node = node
        self._requests = 0

    def start(self, task: Task, run_io: RunIO, done: OnOutcome) -> SimulatedExecution:
        execution = SimulatedExecution(self._node, task, run_io, done)
        self._node.executions[task.run.id] = execution
        self._node.world.invariants.on_execution(self._node, task)
        execution.start()
        return execution

    def close(self) -> None:
        """Abandon what still executes."""
        for execution in self._node.executions.values():
            execution.stop(StopCause.SHUTDOWN, at_once=True)
