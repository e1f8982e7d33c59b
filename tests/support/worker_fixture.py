"""A worker on a database with injected faults, and the steps of its tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest

from support.factories import WORKER, add_job, new_run, read_run, spec, take_lead
from support.moving_clock import MovingClock
from support.scripted_executors import ScriptedExecution, ScriptedExecutor
from support.unreliable_database import UnreliableDatabase
from tsuzuki.engine.leader.rescuer import Rescuer
from tsuzuki.engine.worker.identity import WorkerIdentity
from tsuzuki.engine.worker.worker import Worker
from tsuzuki.model.clock import ManualClock
from tsuzuki.model.errors import Unreachable
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.run import Run
from tsuzuki.model.settings import EngineSettings
from tsuzuki.services.runs import Runs
from tsuzuki.store import audit, jobs, logs
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import moves, runs
from tsuzuki.store.sql.database import Database

ME = WorkerIdentity(
    id=WORKER, host="host", pid=1, capacity=3, tags=frozenset(), software_version="test"
)


class WorkerFixture:
    """`database` works; `faulty_database` is the same with injected faults, and the worker uses it."""

    def __init__(self, database: Database, clock: MovingClock) -> None:
        self.database = database
        self.clock = clock
        self.faulty_database = UnreliableDatabase(database)
        self.executor = ScriptedExecutor()
        self.settings = EngineSettings(log_bytes_max_per_run=1024)
        self.term: Term = take_lead(database, lease_seconds=1_000_000)
        self.worker = self.a_worker(clock)
        self.worker.register()

    def a_worker(self, clock: ManualClock, identity: WorkerIdentity = ME) -> Worker:
        return Worker(
            identity=identity,
            database=self.faulty_database,
            executor=self.executor,
            clock=clock,
            random=Random(1),
            settings=lambda: self.settings,
            wake=lambda: None,
        )

    def job(self, name: str = "free", **changes: Any) -> int:
        return add_job(
            self.database, spec(name, concurrency_policy=ConcurrencyPolicy.ALLOW, **changes)
        )

    def assign(self, count: int = 1, *, job_id: int | None = None, **changes: Any) -> list[int]:
        """Create `count` runs and assign them to the worker."""
        with self.database.read() as connection:
            known = jobs.get_by_name(connection, "free")
        job_id = job_id or (known.id if known else self.job())
        with self.database.write() as connection:
            created = runs.create(connection, [new_run(self.database, job_id, **changes)] * count)
            ids = [run_id for run_id in created if run_id is not None]
            assignments = [
                moves.Assignment(
                    run=moves.RunRef(id=n, version=1), worker_id=self.worker.identity.id
                )
                for n in ids
            ]
            assert len(moves.assign(connection, term=self.term, assignments=assignments)) == count
        return ids

    def start(self, count: int = 1, **changes: Any) -> list[ScriptedExecution]:
        """Create, assign and start `count` runs; return their executions."""
        ids = self.assign(count, **changes)
        self.worker.tick()
        return [self.executor.of(run_id) for run_id in ids]

    def run(self, run_id: int) -> Run:
        run: Run = read_run(self.database, run_id)
        return run

    def cancel(self, run_id: int) -> None:
        Runs(database=self.database, actor="operator").cancel(run_id)

    def lines(self, run_id: int) -> list[str]:
        with self.database.read() as connection:
            return [line.body for line in logs.read(connection, run_id=run_id)]

    def retry_of(self, run_id: int) -> Run | None:
        with self.database.read() as connection:
            return runs.get_by_key(connection, f"retry:{run_id}")

    def notes(self) -> int:
        """Number of rows a handler has written in its transactions."""
        with self.database.read() as connection:
            return len(audit.find(connection, object_type="handler"))


@contextmanager
def reply_lost(fixture: WorkerFixture) -> Iterator[None]:
    """Commit writes made within this block but lose the reply."""
    fixture.faulty_database.replies_to_lose = 1
    with pytest.raises(Unreachable):
        yield


@contextmanager
def unreachable(fixture: WorkerFixture) -> Iterator[None]:
    fixture.faulty_database.is_away = True
    with pytest.raises(Unreachable):
        yield
    fixture.faulty_database.is_away = False


def note(connection: Any) -> None:
    audit.record(connection, actor="me", action="write", object_type="handler", object_id="1")


def take_away(fixture: WorkerFixture, run_id: int, how: str) -> None:
    if how == "canceled":
        fixture.cancel(run_id)
        return
    fixture.clock.advance(fixture.settings.lost_after_seconds)
    Rescuer(database=fixture.database, settings=lambda: fixture.settings, random=Random(1)).tick(
        fixture.term
    )
