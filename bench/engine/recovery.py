"""Failover time with default settings.

    python -m bench.engine.recovery [--kills N] [--database NAME]

A worker is killed (SIGKILL) in the middle of a long job: seconds until the job runs again elsewhere. The leader, which
works too, is killed in the middle of a long job: seconds until a run that is submitted at that moment has started, and
until the long job runs again. The worst and the mean of all kills.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress

from bench.engine.processes import Processes, client, database, processes, wait_until
from tsuzuki.model.errors import Conflict
from tsuzuki.model.run import Run
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import LIVE_STATES, RunState
from tsuzuki.services.runs import Request
from tsuzuki.wiring.application import Application

KILLS = 10
DATABASES = ("sqlite", "postgresql")
RUNNING = frozenset({RunState.RUNNING})


def measure(name: str, *, kills: int = KILLS) -> dict[str, float]:
    """Failover seconds after each kill of a worker and of the leader, on "sqlite" or "postgresql"."""
    with database(name) as url, client(url) as app, processes(url) as started:
        app.jobs.define("long", {"command": ["sleep", "60"], "concurrency_policy": "allow"})
        app.jobs.define("brief", {"command": ["true"], "concurrency_policy": "allow"})
        worker = [_after_worker(app, started) for _ in range(kills)]
        leader = [_after_leader(app, started) for _ in range(kills)]
    return {
        **_mean_and_worst("worker_killed", worker),
        **_mean_and_worst("leader_killed", [start for start, _ in leader]),
        **_mean_and_worst("leader_killed_long_job", [again for _, again in leader]),
    }


def _mean_and_worst(what: str, seconds: Sequence[float]) -> dict[str, float]:
    return {
        f"{what}_mean_seconds": round(statistics.mean(seconds), 1),
        f"{what}_worst_seconds": round(max(seconds), 1),
    }


def _after_worker(app: Application, started: Processes) -> float:
    leader = started.start("up", "--no-web", "--lead-only")
    first, second = started.start("worker"), started.start("worker")
    _wait_for_workers(app, {first.pid, second.pid})
    asked = app.runs.submit(Request(job="long"))
    run = _running(app, asked.run_id)
    victim = first if f"-{first.pid}-" in str(run.assigned_worker_id) else second
    died = _kill(victim)
    seconds = wait_until(lambda: _is_retried(app, asked.run_id), "the job to run again") - died
    _end(app, leader, first, second)
    tell(f"worker killed: runs again after {seconds:.1f} s")
    return seconds


def _after_leader(app: Application, started: Processes) -> tuple[float, float]:
    """Seconds until a new run has started, and until the long job runs again."""
    leader = started.start("up", "--no-web")
    wait_until(lambda: _leads(app, leader.pid), "the first to lead")
    long = app.runs.submit(Request(job="long"))
    _running(app, long.run_id)
    other = started.start("up", "--no-web")
    _wait_for_workers(app, {other.pid})
    died = _kill(leader)
    brief = app.runs.submit(Request(job="brief"))
    start = wait_until(lambda: _has_started(app, brief.run_id), "another to lead") - died
    again = wait_until(lambda: _is_retried(app, long.run_id), "the job to run again") - died
    if app.runs.get(brief.run_id).run.orphan_count:
        raise RuntimeError(f"run {brief.run_id} was assigned to the dead worker")
    _end(app, other)
    tell(f"leader killed: next start after {start:.1f} s, runs again after {again:.1f} s")
    return start, again


def tell(line: str) -> None:
    """Progress on stderr: stdout is for the figures."""
    print(line, file=sys.stderr, flush=True)


def _kill(process: subprocess.Popen[bytes]) -> float:
    process.kill()
    died = time.perf_counter()
    process.wait()
    return died


def _end(app: Application, *gone: subprocess.Popen[bytes]) -> None:
    """Clean up, so that the next round need not wait for anything."""
    for run in _live(app):
        with suppress(Conflict):  # it has just ended
            app.runs.cancel(run.id)
    for process in gone:
        if process.poll() is None:
            process.terminate()
            process.wait(60)


def _live(app: Application) -> list[Run]:
    return app.runs.find(RunFilter(states=LIVE_STATES))


def _has_started(app: Application, run_id: int) -> bool:
    return app.runs.get(run_id).run.started_at is not None


def _running(app: Application, run_id: int) -> Run:
    runs = app.runs
    wait_until(lambda: runs.get(run_id).run.state is RunState.RUNNING, "the job to run")
    return runs.get(run_id).run


def _is_retried(app: Application, run_id: int) -> bool:
    found = app.runs.find(RunFilter(states=RUNNING))
    return any(run.origin_id == run_id for run in found)


def _leads(app: Application, pid: int) -> bool:
    leader = app.workers.leader()
    return leader.is_valid and f"-{pid}-" in str(leader.holder)


def _wait_for_workers(app: Application, pids: set[int]) -> None:
    workers = app.workers
    wait_until(lambda: pids <= {view.worker.pid for view in workers.workers()}, "the workers")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--database", choices=DATABASES, action="append")
    options = parser.parse_args()
    for name in options.database or DATABASES:
        figures = measure(name, kills=options.kills)
        print(f"database={name}  " + "  ".join(f"{key}={value}" for key, value in figures.items()))


if __name__ == "__main__":
    main()
