"""Whole engines with their threads on one database, and a handler that waits until it is released."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from typing import Any

from support.factories import spec
from support.scripted_executors import Handler, ThreadExecutor
from tsuzuki.engine.outcome import Outcome, Succeeded
from tsuzuki.engine.process import Engine
from tsuzuki.engine.role import ProcessRole
from tsuzuki.engine.task import Executor, Task
from tsuzuki.model.clock import SystemClock
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.run import Run
from tsuzuki.model.worker import WorkerState
from tsuzuki.services.runs import Request, Runs
from tsuzuki.services.workers import Workers
from tsuzuki.store import settings, workers
from tsuzuki.store.sql.database import Database

TIMEOUT_SECONDS = 60.0
FREE = spec("free", concurrency_policy=ConcurrencyPolicy.ALLOW)
QUICK = {
    "poll_interval_seconds": 0.05,
    "heartbeat_interval_seconds": 0.1,
    "lease_renew_interval_seconds": 0.2,
    "lease_margin_seconds": 0.5,
    "lease_seconds": 5.0,
    "drain_timeout_seconds": 20.0,
}


class Gate:
    """A handler that waits until it is released, and counts its executions."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.stopped = threading.Event()
        self.inside: Counter[int] = Counter()
        self.most = 0
        self._changed = threading.Condition()
        self._now = 0

    def __call__(self, task: Task, stopping: threading.Event) -> Outcome:
        with self._changed:
            self.inside[task.run.id] += 1
            self._now += 1
            self.most = max(self.most, self._now)
            self._changed.notify_all()
        while not self.open.is_set() and not stopping.wait(0.01):
            pass
        with self._changed:
            self._now -= 1
        if stopping.is_set():
            self.stopped.set()
        return Succeeded(result=task.run.id)

    def wait_for(self, count: int) -> None:
        with self._changed:
            enough = self._changed.wait_for(
                lambda: sum(self.inside.values()) >= count, TIMEOUT_SECONDS
            )
        assert enough, f"only {dict(self.inside)} started"


def succeed(_task: Task, _stopping: threading.Event) -> Outcome:
    return Succeeded()


class Engines:
    """Engines on one database, all shut down at the end of the test."""

    def __init__(self, database: Database, stack: ExitStack) -> None:
        self.database = database
        self.runs = Runs(database=database, actor="test")
        self.workers = Workers(database=database, actor="test")
        self._stack = stack
        self.put(**QUICK)

    def put(self, **values: float) -> None:
        with self.database.write() as connection:
            for key, value in values.items():
                settings.put(connection, key=key, value=value, actor="test")

    def create(
        self,
        handler: Handler | None = None,
        *,
        executor: Executor | None = None,
        database: Database | None = None,
        seed: int = 1,
        **role: Any,
    ) -> Engine:
        return Engine(
            database=database or self.database,
            executor=executor or ThreadExecutor(handler or succeed),
            clock=SystemClock(),
            random=Random(seed),
            role=ProcessRole(**role),
            software_version="test",
        )

    def start(self, handler: Handler | None = None, **options: Any) -> Engine:
        engine = self.create(handler, **options)
        self.run(engine)
        return engine

    def run(self, engine: Engine) -> None:
        """Start it; it is shut down at the end of the test."""
        engine.start()
        self._stack.callback(self.end, engine)

    def end(self, engine: Engine) -> None:
        engine.hurry()
        engine.shut_down()

    def submit(self, count: int = 1, job: str = "free") -> list[int]:
        return [s.run_id for s in self.runs.submit_many([Request(job=job)] * count)]

    def wait(self, run_id: int) -> Run:
        return self.runs.wait(run_id, timeout_seconds=TIMEOUT_SECONDS)

    def worker_state(self, worker_id: str) -> WorkerState | None:
        with self.database.read() as connection:
            worker = workers.get(connection, worker_id)
        return worker.state if worker else None


@contextmanager
def expecting(event: threading.Event, what: str) -> Iterator[None]:
    yield
    assert event.wait(TIMEOUT_SECONDS), f"timed out waiting until {what}"
