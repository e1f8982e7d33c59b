"""A worker's heartbeat on a database with injected faults, and the leader that rescues from it."""

from random import Random

from support.factories import (
    add_worker,
    read_run,
    run_in_state,
    take_lead,
)
from support.moving_clock import MovingClock
from support.unreliable_database import UnreliableDatabase
from tsuzuki.engine.leader.rescuer import Rescuer
from tsuzuki.engine.worker.heartbeat import Heartbeat, HeartbeatResult
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import ContinuationState, RunState
from tsuzuki.model.worker import WorkerState
from tsuzuki.store import workers
from tsuzuki.store.leadership import Term
from tsuzuki.store.sql.database import Database

SETTINGS = EngineSettings(
    heartbeat_interval_seconds=2.0,
    worker_ttl_seconds=6.0,
    worker_grace_seconds=4.0,
    continuation_retry_count=3,
    continuation_retry_interval_seconds=0.3,
).checked()


DEADLINE = SETTINGS.worker_ttl_seconds + SETTINGS.continuation_seconds


class HeartbeatFixture:
    def __init__(self, database: Database, clock: MovingClock) -> None:
        self.database = database
        self.clock = clock
        self.faulty_database = UnreliableDatabase(database)
        self.worker_id = add_worker(database)
        self.term: Term = take_lead(database, lease_seconds=1_000_000)
        self.heartbeat = Heartbeat(
            database=self.faulty_database,
            clock=clock,
            settings=lambda: SETTINGS,
            worker_id=lambda: self.worker_id,
        )

    def lead(self) -> None:
        """One tick of the leader's rescuer."""
        Rescuer(database=self.database, settings=lambda: SETTINGS, random=Random(1)).tick(self.term)

    def running(self) -> int:
        return run_in_state(self.database, RunState.RUNNING, self.term).id

    def confirmation(self, run_id: int) -> ContinuationState:
        state: ContinuationState = read_run(self.database, run_id).continuation_state
        return state

    def state(self) -> WorkerState:
        with self.database.read() as connection:
            worker = workers.get(connection, self.worker_id)
        assert worker is not None
        return worker.state

    def heartbeats(self, count: int) -> list[HeartbeatResult]:
        """Send several heartbeats, each after the delay returned by the previous one."""
        results = []
        for _ in range(count):
            results.append(self.heartbeat.tick())
            self.clock.advance(self.heartbeat.seconds_to_next(results[-1]))
        return results

    def detach(self) -> None:
        with self.database.write() as connection:
            workers.detach(connection, [self.worker_id])
