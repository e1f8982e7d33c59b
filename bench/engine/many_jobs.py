"""Thousands of jobs: define them, apply a file, disable one, and measure an idle leader.

A command is a process of its own, from its start to its end, as a person runs it. Seconds are given with those of the
processor, which a busy machine affects less.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from sqlalchemy import func, select

from bench.engine.peers.protocol import Figures, Order
from bench.engine.processes import client, processes, wait_until
from tsuzuki import Tsuzuki
from tsuzuki.store.schema.tables import job_definitions

SETTLE_SECONDS = 5.0
WATCH_SECONDS = 20.0
DEFINED_AT_ONCE = 5_000


class Workspace:
    """A folder with a file of jobs, and commands in it."""

    def __init__(self, url: str, folder: Path) -> None:
        self._environment = {
            **os.environ,
            "TSUZUKI_DATABASE_URL": url,
            "XDG_CACHE_HOME": str(folder),
        }
        self._folder = folder

    def write_jobs(self, jobs: int) -> None:
        bodies = "".join(_job(number) for number in range(jobs))
        text = f"# the jobs of a team\ntimezone: Asia/Tokyo\njobs:\n{bodies}"
        (self._folder / "tsuzuki.yaml").write_text(text, encoding="utf-8")

    def run(self, *words: str) -> None:
        subprocess.run(
            [sys.executable, "-m", "tsuzuki", *words],
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.DEVNULL,
            check=True,
        )


def _job(number: int) -> str:
    hour, minute = divmod(number % 1440, 60)
    return (
        f"  job-{number}:\n    command: echo {number}\n"
        f"    schedule: daily at {hour:02d}:{minute:02d}\n    timeout: 5m\n"
    )


def define(order: Order) -> Figures:
    """Define jobs with the library, measured from the first definition to the commit."""
    with Tsuzuki(order.url, environ={}, cwd=Path("/")) as app:
        with app.transaction():
            pass  # the tables are made

        def define_all() -> None:
            for number in range(order.jobs):
                app.define(f"job-{number}", command=["true"], schedule="every 1h")
            app.submit("job-0")

        figures = _seconds(define_all, resource.RUSAGE_SELF)
        with app.transaction() as connection:
            stored = connection.execute(select(func.count(job_definitions.c.id))).scalar_one()
        assert stored == order.jobs, f"{stored} stored of {order.jobs}"
        return figures


def apply(order: Order) -> Figures:
    with _workspace(order) as workspace:
        return _seconds(lambda: workspace.run("job", "apply"))


def apply_again(order: Order) -> Figures:
    """Nothing has changed since."""
    with _workspace(order) as workspace:
        workspace.run("job", "apply")
        return _seconds(lambda: workspace.run("job", "apply"))


def disable_one(order: Order) -> Figures:
    """Disable one job in the file and apply it."""
    with _workspace(order) as workspace:
        workspace.run("job", "apply")
        return _seconds(lambda: workspace.run("job", "disable", f"job-{order.jobs // 2}"))


def stay_idle(order: Order) -> Figures:
    """Measure a leader with scheduled jobs of which none is due."""
    with client(order.url) as app:
        for start in range(0, order.jobs, DEFINED_AT_ONCE):
            names = range(start, min(start + DEFINED_AT_ONCE, order.jobs))
            body = {"command": ["true"], "schedule": "every 90d"}
            app.jobs.define_many({f"job-{number}": body for number in names})
        with processes(order.url) as started:
            leader = psutil.Process(started.start("up", "--no-web").pid)
            wait_until(lambda: bool(app.workers.workers()), "the leader")
            time.sleep(SETTLE_SECONDS)
            before = _processor_seconds(leader)
            time.sleep(WATCH_SECONDS)
            used = _processor_seconds(leader) - before
            started.end_all()
    return {"cpu_percent": used / WATCH_SECONDS * 100}


@contextmanager
def _workspace(order: Order) -> Iterator[Workspace]:
    """With an upgraded database, and a file that is not applied yet."""
    with tempfile.TemporaryDirectory(prefix="tsuzuki-bench-") as folder:
        workspace = Workspace(order.url, Path(folder))
        workspace.write_jobs(0)
        workspace.run("db", "upgrade")
        workspace.write_jobs(order.jobs)
        yield workspace


def _seconds(act: Callable[[], None], whose: int = resource.RUSAGE_CHILDREN) -> Figures:
    started_at, used = time.perf_counter(), resource.getrusage(whose)
    act()
    now = resource.getrusage(whose)
    processor = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    return {"seconds": time.perf_counter() - started_at, "processor_seconds": processor}


def _processor_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
