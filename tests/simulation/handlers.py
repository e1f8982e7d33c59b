"""What runs in a simulation: handlers that write page after page, fail, hang, or do not hear.

They are given the real `RunContext` and end as executions of Python functions do: asked to stop they are given a
grace, then they are given up. A handler that does not hear goes on all the same, as a thread would,
and all that keeps its rows out is the fence.
"""

import threading
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from sqlalchemy import text

from simulation.fibers import GreenletExit
from simulation.reach import LawBroken
from tsuzuki.engine.executors.failures import failure_of
from tsuzuki.engine.outcome import Outcome, StopCause, Stopped, Succeeded
from tsuzuki.engine.run_context import RunContext, RunStopped, StopSignal
from tsuzuki.engine.task import OnOutcome, RunIO, Task
from tsuzuki.model.errors import Fenced, Unreachable

if TYPE_CHECKING:
    from simulation.node import Node

PAGE_SECONDS = (0.1, 0.1, 0.5, 0.5, 1.0, 1.0, 2.5, 2.5, 8.0)
"""What a page takes; now and then longer than any silence is waited for."""

BEAT_SECONDS = 1.0

WRITE = text(
    "INSERT INTO sim_rows (run_id, worker_id, version, epoch, page)"
    " VALUES (:run_id, :worker_id, :version, :epoch, :page)"
)


@dataclass(frozen=True, kw_only=True)
class Manner:
    """How a handler behaves."""

    pages: int = 0
    page_seconds: float = 0.1
    is_deaf: bool = False
    ends_badly: bool = False
    hangs: bool = False

    @classmethod
    def drawn(cls, chance: Random, task: Task) -> "Manner":
        return cls(
            pages=chance.choice((0, 1, 1, 2)),
            page_seconds=chance.choice(PAGE_SECONDS),
            is_deaf=chance.random() < 0.2,
            ends_badly=chance.random() < 0.25,
            hangs=chance.random() < 0.08 and task.spec.timeout_seconds is not None,
        )


WELL = Manner()
"""In fair weather, so that it does not last."""


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
        self._manner = WELL if self._world.is_settling else Manner.drawn(self._world.chance, task)

    def start(self) -> None:
        self._world.turns.spawn("handler", self._node, self._perform)

    def stop(self, cause: StopCause, *, at_once: bool = False) -> None:
        if self.is_ended:
            return
        is_first = self._cause is None
        self._cause = self._cause or cause
        self._stop_signal.set()
        if at_once:
            self._end(Stopped(cause=self._cause))
        elif is_first:
            self._world.turns.spawn("grace", self._node, self._give_up_later)

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

    def _perform(self) -> None:
        try:
            self._work()
        except (GreenletExit, LawBroken):
            raise
        except RunStopped:
            self._end(Stopped(cause=self._cause or StopCause.CANCELED))
        except Exception as problem:  # noqa: BLE001 -- whatever it raises is its outcome
            if isinstance(problem, Fenced):
                self._world.reached["a fenced write was refused"] += 1
            self._end(failure_of(problem))
        else:
            self._end(Succeeded(result={"pages": self._manner.pages}))

    def _work(self) -> None:
        manner = self._manner
        for page in range(manner.pages):
            self._take_time(manner.page_seconds)
            if page == 0:
                self._context.log(f"page {page}")
                self._context.progress(page, manner.pages)
            self._write(page)
        self._take_time(60.0 if manner.hangs else manner.page_seconds / 2)
        if manner.ends_badly:
            raise ValueError("it broke")

    def _take_time(self, seconds: float) -> None:
        # On whole beats, so that several end together: that is cheaper, and a harder case.
        seconds += -(self._world.turns.now + seconds) % BEAT_SECONDS
        if self._manner.is_deaf:
            self._node.clock.wait(threading.Event(), seconds)
        elif self._context.wait(seconds):
            raise RunStopped

    def _write(self, page: int) -> None:
        """One page in one fenced transaction; asked again if the answer was lost."""
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
        self._asked = 0

    def start(self, task: Task, run_io: RunIO, done: OnOutcome) -> SimulatedExecution:
        execution = SimulatedExecution(self._node, task, run_io, done)
        self._node.executions[task.run.id] = execution
        self._node.world.laws.begun(self._node, task)
        execution.start()
        return execution

    def close(self) -> None:
        """What is still there is given up."""
        for execution in self._node.executions.values():
            execution.stop(StopCause.SHUTDOWN, at_once=True)
