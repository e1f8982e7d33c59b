"""For tests of the rescuer: workers that send heartbeats, ask for confirmation, or fall silent."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from random import Random

from support.factories import (
    WORKER,
    add_worker,
    ref,
)
from support.moving_clock import MovingClock
from support.unreliable_database import UnreliableDatabase
from tsuzuki.engine.leader.rescuer import Rescuer
from tsuzuki.model.run import Run
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.worker import StoredWorker
from tsuzuki.store import workers
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import moves, runs
from tsuzuki.store.sql.database import Connection, Database

SETTINGS = EngineSettings(
    worker_ttl_seconds=6.0,
    worker_grace_seconds=4.0,
    reassign_after_seconds=6.0,
    continuation_retry_count=3,
    continuation_retry_interval_seconds=0.3,
    max_orphans=3,
).checked()


class SecondWrite(UnreliableDatabase):
    """`meanwhile` is called before the second write: between the read that finds runs and the write that moves
    them. The first write judges workers."""

    def __init__(self, database: Database, meanwhile: Callable[[], object]) -> None:
        super().__init__(database)
        self._writes = 0
        self._meanwhile = meanwhile

    def write(self) -> AbstractContextManager[Connection]:
        self._writes += 1
        if self._writes == 2:
            self._meanwhile()
        return super().write()


TTL = SETTINGS.worker_ttl_seconds
LOST = SETTINGS.lost_after_seconds
GONE = LOST + 2 * SETTINGS.heartbeat_interval_seconds
A_MOMENT = 0.001


def a_rescuer(database: Database, settings: EngineSettings = SETTINGS) -> Rescuer:
    return Rescuer(database=database, settings=lambda: settings, random=Random(1))


def heartbeat(database: Database, worker_id: str = WORKER) -> None:
    with database.write() as connection:
        workers.heartbeat(connection, worker_id)


def request_confirmation(database: Database, deadline_seconds: float = 0.9) -> None:
    with database.write() as connection:
        workers.request_confirmation(
            connection, worker_id=WORKER, deadline_seconds=deadline_seconds
        )


def the_worker(database: Database, worker_id: str = WORKER) -> StoredWorker:
    with database.read() as connection:
        worker = workers.get(connection, worker_id)
    assert worker is not None
    return worker


def retry_of(database: Database, run_id: int) -> Run | None:
    with database.read() as connection:
        return runs.get_by_key(connection, f"retry:{run_id}")


def lose(database: Database, clock: MovingClock, term: Term, run_id: int, worker_id: str) -> None:
    """Let a new worker start the run, then fall silent for good, while another one is heard."""
    start_on(database, term, run_id, worker_id)
    clock.advance(LOST)
    heartbeat(database)


def start_on(database: Database, term: Term, run_id: int, worker_id: str) -> None:
    """Let a new worker start the run."""
    add_worker(database, worker_id)
    with database.write() as connection:
        assignment = moves.Assignment(run=ref(database, run_id), worker_id=worker_id)
        assert moves.assign(connection, term=term, assignments=[assignment])
    with database.write() as connection:
        assert moves.start(connection, worker_id=worker_id, runs=[ref(database, run_id)])
