"""What must happen in time: an end is stored, a run that was canceled or lost is stopped.

A promise counts from the moment at which nothing stands in its way any more. All are checked after every commit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from simulation.violations import InvariantViolated
from tsuzuki.model.states import RunState

if TYPE_CHECKING:
    from simulation.handlers import SimulatedExecution
    from simulation.node import Node
    from simulation.world import World

STORED_SECONDS = 5.0
"""So long after processes reach the database and no transaction holds the row, an end is stored and a cancel done."""

STOPPED_SECONDS = 4.2
"""After a process goes on it may wait for its next heartbeat, notice that it hangs, and give a handler its grace."""


@dataclass(frozen=True, kw_only=True)
class Promise:
    """It must be kept `seconds` after `free_at`: since then nothing stands in its way."""

    sentence: str
    seconds: float
    free_at: Callable[[], float]
    is_open: Callable[[], bool]


class Promises:
    def __init__(self, world: "World") -> None:
        self._world = world
        self._open: list[Promise] = []

    def check(self) -> None:
        if not self._open:
            return
        self._open = [promise for promise in self._open if promise.is_open()]
        for promise in self._open:
            if self._world.scheduler.now > promise.free_at() + promise.seconds:
                raise InvariantViolated(promise.sentence)

    def _row_free_at(self, run_id: int) -> float:
        return max(self._world.row_free_at.get(run_id, 0.0), self._world.write_lock.free_at)

    def store_end(self, node: "Node", execution: "SimulatedExecution") -> None:
        """A handler has ended: so does its run, unless it was taken from the worker."""
        ended_at, started = self._world.scheduler.now, execution.task.started
        run = self._world.invariants.runs[started.id]
        worker = node.engine.worker

        def is_open() -> bool:
            is_ours = (run.version, run.worker_id) == (started.version, worker.identity.id)
            return is_ours and run.state is RunState.RUNNING and not node.is_dead

        self._open.append(
            Promise(
                sentence=f"the end of run {started.id} is not stored",
                seconds=STORED_SECONDS,
                free_at=lambda: max(
                    ended_at,
                    node.last_fault_at,
                    node.unreachable_at,
                    self._row_free_at(started.id),
                ),
                is_open=is_open,
            )
        )

    def stop_canceled(
        self, run_id: int, *, is_requested: bool = False, seconds: float = STORED_SECONDS
    ) -> None:
        """An operator was told that a run is canceled, or will be when its row is free: it ends, and is stopped."""
        world, told_at = self._world, self._world.scheduler.now
        run = world.invariants.runs[run_id]

        def is_open() -> bool:
            is_over = run.state.is_final and not world.invariants.is_executed(run_id)
            world.coverage["a requested cancel was carried out"] += is_over and is_requested
            return not is_over

        def free_at() -> float:
            """With a leader, and processes that reach the database."""
            troubles = (max(n.last_fault_at, n.unreachable_at, n.started_at) for n in world.nodes)
            return max(told_at, self._row_free_at(run_id), world.invariants.led_since(), *troubles)

        self._open.append(
            Promise(
                sentence=f"run {run_id} was canceled and goes on",
                seconds=seconds,
                free_at=free_at,
                is_open=is_open,
            )
        )

    def stop_lost(self, node: "Node", execution: "SimulatedExecution") -> None:
        """A run was failed as lost while its process was suspended: it is stopped soon after that, with or without the
        database."""
        self._world.coverage["a run was lost while its process was suspended"] += 1
        self._open.append(
            Promise(
                sentence=f"{node.name} goes on with run {execution.task.run.id}, which was failed as lost",
                seconds=STOPPED_SECONDS,
                free_at=lambda: node.suspended_until,
                is_open=lambda: not (execution.is_ended or node.is_dead),
            )
        )
