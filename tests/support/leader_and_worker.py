"""A leader and the worker of its own process, in one thread, on a database with injected faults."""

from random import Random

from support.factories import (
    WORKER,
    add_job,
    create_run,
    read_run,
    spec,
    take_lead,
)
from support.moving_clock import MovingClock
from support.scripted_executors import ScriptedExecutor
from support.unreliable_database import UnreliableDatabase
from tsuzuki.engine.leader.assigner import Assigner
from tsuzuki.engine.worker.identity import WorkerIdentity
from tsuzuki.engine.worker.worker import Worker
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.run import RunRef
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import RunState
from tsuzuki.store.sql.database import Database

ME = WorkerIdentity(
    id=WORKER, host="host", pid=1, capacity=3, tags=frozenset(), software_version="test"
)


class LeaderAndWorker:
    """A leader and the worker of its own process, on a database with injected faults."""

    def __init__(self, database: Database, clock: MovingClock) -> None:
        self.database = database
        self.clock = clock
        self.faulty_database = UnreliableDatabase(database)
        self.executor = ScriptedExecutor()
        self.woken = 0
        self.term = take_lead(database, lease_seconds=1_000_000)
        self.worker = Worker(
            identity=ME,
            database=self.faulty_database,
            executor=self.executor,
            clock=clock,
            random=Random(1),
            settings=EngineSettings,
            wake=self._wake,
        )
        self.worker.register()
        self.assigner = Assigner(database=self.faulty_database, local_start=self.worker.local_start)
        self.worker.local_start.led_by(lambda: self.term, self.assigner.refilling)
        self.job_id = add_job(database, spec("free", concurrency_policy=ConcurrencyPolicy.ALLOW))

    def _wake(self) -> None:
        self.woken += 1

    def lead(self) -> int:
        return self.assigner.tick(self.term)

    def state(self, run_id: int) -> RunState:
        state: RunState = read_run(self.database, run_id).state
        return state

    def submit(self) -> RunRef:
        run: RunRef = create_run(self.database, self.job_id)
        return run

    def learn_job(self) -> None:
        """Learn a job from one of its finished runs."""
        self.submit()
        self.lead()
        self.adopt()
        self.executor.last.succeed()
        self.worker.tick(poll=False)
        self.executor.started.clear()
        self.woken = 0

    def adopt(self) -> list[int]:
        """Process the worker's queue as its own thread does."""
        return [task.run.id for task in self.worker._adopt()]

    def executed(self) -> list[int]:
        return [execution.task.run.id for execution in self.executor.started]
