"""Simulated handlers: they write page after page, fail, hang, or ignore the request to stop.

They get the real `RunContext` and end as executions of Python functions do: after the request to stop they have a
grace period, then they are abandoned. A handler that ignores the request goes on like a thread that cannot be
killed; only the fence keeps its rows out.
"""

import threading
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from sqlalchemy import text

from simulation.scheduler import GreenletExit
from simulation.violations import InvariantViolated
from tsuzuki.engine.executors.failures import failure_of
from tsuzuki.engine.outcome import Outcome, StopCause, Stopped, Succeeded
from tsuzuki.engine.run_context import RunContext, RunStopped, StopSignal
from tsuzuki.engine.task import OnOutcome, RunIO, Task
from tsuzuki.model.errors import Fenced, Unreachable

if TYPE_CHECKING:
    from simulation.node import Node

PAGE_SECONDS = (0.1, 0.1, 0.5, 0.5, 1.0, 1.0, 2.5, 2.5, 8.0)
"""How long a page takes; sometimes longer than the TTL of a worker."""

ROUNDING_SECONDS = 1.0

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

    @classmethod
    def choose(cls, random: Random, task: Task) -> "Behavior":
        return cls(
            pages=random.choice((0, 1, 1, 2)),
            page_seconds=random.choice(PAGE_SECONDS),
            ignores_stop=random.random() < 0.2,
            fails=random.random() < 0.25,
            hangs=random.random() < 0.08 and task.spec.timeout_seconds is not None,
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
            SUCCEEDS if self._world.faults_ended else Behavior.choose(self._world.random, task)
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
            self._end(Succeeded(result={"pages": self._behavior.pages}))

    def _work(self) -> None:
        behavior = self._behavior
        for page in range(behavior.pages):
            self._take_time(behavior.page_seconds)
            if page == 0:
                self._context.log(f"page {page}")
                self._context.progress(page, behavior.pages)
            self._write(page)
        self._take_time(60.0 if behavior.hangs else behavior.page_seconds / 2)
        if behavior.fails:
            raise ValueError("it broke")

    def _take_time(self, seconds: float) -> None:
        # Rounded up, so that several end at one moment: cheaper, and a harder case.
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
                    row_id = connection.execute(WRITE, row).lastrowid
            except Unreachable:
                self._take_time(0.5)
            else:
                self._world.ledger.rows.add(row_id)
                return


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
