"""Time the leader holds SQLite's write lock per duty, with a backlog.

    python -m bench.engine.write_lock [--runs N]

One leader does each of its duties until nothing is left to do: plan missed ticks, turn events into runs, assign the
backlog, rescue the runs of lost workers, delete old runs with their logs. A transaction holds the lock from BEGIN to
the end of its commit, which is durable. For each duty: transactions, milliseconds at the median, the 99th percentile
and the worst, and the sum in percent of the time that the duty took.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from unittest.mock import patch

from bench.engine.processes import database
from tsuzuki.engine.archive.archivist import Archivist
from tsuzuki.engine.leader.assigner import Assigner
from tsuzuki.engine.leader.event_intake import EventIntake
from tsuzuki.engine.leader.planner import Planner
from tsuzuki.engine.leader.rescuer import Rescuer
from tsuzuki.model.clock import SystemClock
from tsuzuki.model.job import JobSource, JobSpec
from tsuzuki.model.misfire import Misfire
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.run import NewRun
from tsuzuki.model.schedule import parse_schedule
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import Trigger
from tsuzuki.store import events, jobs, leadership, logs, workers
from tsuzuki.store.logs import LogLine
from tsuzuki.store.runs import moves, ownership, runs
from tsuzuki.store.schema.migrate import upgrade
from tsuzuki.store.sql.database import Database, open_database

RUNS = 20_000
WORKERS = 8
BATCH = 500
LINES = 5
LONG_AGO = timedelta(days=400)


class LaterClock(SystemClock):
    """The system's clock and a little more, so that workers can be lost and runs grow old at once."""

    ahead = timedelta(0)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead


@dataclass
class Held:
    """The seconds for which each transaction held the lock."""

    seconds: list[float] = field(default_factory=list)

    @contextmanager
    def watching(self) -> Iterator[None]:
        with (
            patch.object(Database, "write", self._timed(Database.write)),
            patch.object(Database, "statement", self._timed(Database.statement)),
        ):
            yield

    def _timed(self, opened: Callable[[Database], Any]) -> Callable[[Database], Any]:
        @contextmanager
        def timed(database: Database) -> Iterator[Any]:
            started_at = None
            try:
                with opened(database) as connection:
                    started_at = time.perf_counter()
                    yield connection
            finally:
                if started_at is not None:
                    self.seconds.append(time.perf_counter() - started_at)

        return timed

    def figures(self, took_seconds: float) -> dict[str, float]:
        ordered = sorted(self.seconds)
        return {
            "transactions": len(ordered),
            "p50_ms": round(ordered[len(ordered) // 2] * 1000, 1),
            "p99_ms": round(ordered[len(ordered) * 99 // 100] * 1000, 1),
            "worst_ms": round(ordered[-1] * 1000, 1),
            "held_percent": round(sum(self.seconds) / took_seconds * 100, 1),
        }


def measure(count: int = RUNS) -> dict[str, dict[str, float]]:
    """The figures of each duty."""
    clock = LaterClock()
    with database("sqlite") as url:
        opened = open_database(url, clock=clock)
        try:
            upgrade(opened)
            return _measure(opened, clock, count)
        finally:
            opened.close()


def _measure(opened: Database, clock: LaterClock, count: int) -> dict[str, dict[str, float]]:
    with opened.write() as connection:
        term = leadership.take(connection, holder="bench", lease_seconds=600)
    if term is None:
        raise RuntimeError("the database is new, and another leads")
    figures: dict[str, dict[str, float]] = {}
    settings = EngineSettings(run_retention_days=30)
    _backlog(opened, count)
    _tick_jobs(opened, count)
    clock.ahead = timedelta(hours=1)
    planner = Planner(database=opened, settings=lambda: settings)
    figures["plan"] = _duty(lambda: planner.tick(term).created)
    _emit(opened, count // 10)
    intake = EventIntake(database=opened)
    figures["event intake"] = _duty(lambda: intake.tick(term))
    _register(opened, count)
    assigner = Assigner(database=opened)
    figures["assign"] = _duty(lambda: assigner.tick(term))
    _start_all(opened)
    clock.ahead += timedelta(seconds=60)
    rescuer = Rescuer(database=opened, settings=lambda: settings, random=Random(1))
    figures["rescue"] = _duty(lambda: rescuer.tick(term).failed)
    clock.ahead += LONG_AGO
    archivist = Archivist(database=opened, settings=lambda: settings, archive=None, clock=clock)
    figures["delete old runs"] = _duty(lambda: archivist.tick(term).pruned)
    return figures


def _duty(tick: Callable[[], int]) -> dict[str, float]:
    """Until it finds nothing more to do."""
    held = Held()
    started_at = time.perf_counter()
    with held.watching():
        while tick():
            pass
    return held.figures(time.perf_counter() - started_at)


def _backlog(opened: Database, count: int) -> None:
    """Runs that are due, on a job of their own."""
    with opened.write() as connection:
        job_id = jobs.add(connection, _spec("backlog"), source=JobSource.DATABASE)
    new = NewRun(job_definition_id=job_id, trigger=Trigger.MANUAL, scheduled_for=opened.clock.now())
    for _ in range(0, count, BATCH):
        with opened.write() as connection:
            runs.create(connection, [new] * BATCH)


def _tick_jobs(opened: Database, count: int) -> None:
    """Each will have missed an hour of ticks, all of which become runs."""
    schedule = parse_schedule("every 1m")
    with opened.write() as connection:
        for number in range(max(count // 200, 1)):
            spec = _spec(f"tick-{number}", schedule=schedule, misfire=Misfire.ALL)
            jobs.add(connection, spec, source=JobSource.DATABASE)


def _emit(opened: Database, count: int) -> None:
    with opened.write() as connection:
        for number in range(3):
            spec = _spec(f"event-{number}", on_event="paid")
            jobs.add(connection, spec, source=JobSource.DATABASE)
        for number in range(count):
            events.emit(connection, event_type="paid", payload={"order": number})


def _spec(name: str, **more: Any) -> JobSpec:
    policy = ConcurrencyPolicy.ALLOW
    options = {"argv": ["true"]}
    return JobSpec(name=name, handler="command", options=options, concurrency_policy=policy, **more)


def _register(opened: Database, count: int) -> None:
    with opened.write() as connection:
        for number in range(WORKERS):
            workers.register(
                connection,
                worker_id=f"worker-{number}",
                host="bench",
                pid=number,
                capacity=count,
                tags=frozenset(),
                software_version="bench",
            )


def _start_all(opened: Database) -> None:
    """Everything that was assigned runs, with a log of some lines."""
    at = opened.clock.now()
    log = [LogLine(seq=seq, at=at, stream="out", body="x" * 80) for seq in range(1, LINES + 1)]
    for number in range(WORKERS):
        worker_id = f"worker-{number}"
        while True:
            with opened.write() as connection:
                found = ownership.assigned_to_worker(connection, worker_id=worker_id, limit=BATCH)
                started = moves.start(connection, worker_id=worker_id, runs=found)
                lines = [(order.started, line) for order in started.values() for line in log]
                logs.append(connection, worker_id=worker_id, lines=lines)
            if not started:
                break


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    for duty, figures in measure(parser.parse_args().runs).items():
        print(f"{duty}: " + "  ".join(f"{name}={value:g}" for name, value in figures.items()))


if __name__ == "__main__":
    main()
