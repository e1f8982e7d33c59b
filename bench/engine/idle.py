"""The cost of an idle process with default settings.

    python -m bench.engine.idle

For one that leads and works, and for one that only works beside it: statements per second, processor time in percent
of one core, and resident memory. Statements are counted in other processes than CPU and memory.
"""

import tempfile
import time
from pathlib import Path

import psutil

from bench.engine.processes import client, database, processes, wait_until

SETTLE_SECONDS = 5.0
WATCH_SECONDS = 30.0
COUNTED = ("-m", "bench.engine.statement_counter")
GOALS = {"queries_per_second": 2.0, "cpu_percent": 1.0, "memory_mb": 120.0}


def measure(name: str, *, seconds: float = WATCH_SECONDS) -> dict[str, dict[str, float]]:
    """The figures of each role, on "sqlite" or "postgresql"."""
    roles = {"leads_and_works": ["up", "--no-web"], "works": ["worker"]}
    with (
        tempfile.TemporaryDirectory() as notes,
        database(name) as url,
        client(url) as app,
    ):
        with processes(url) as watched:
            pids = {role: watched.start(*words).pid for role, words in roles.items()}
            wait_until(lambda: len(app.workers.workers()) == len(roles), "the processes")
            figures = _watch(pids, seconds)
            watched.end_all()
        with processes(url) as counted:
            for role, words in roles.items():
                counted.start(str(Path(notes, role)), *words, program=COUNTED)
            known = len(roles) * 2
            wait_until(lambda: len(app.workers.workers(with_gone=True)) == known, "the processes")
            _count(notes, figures, seconds)
    return figures


def _watch(pids: dict[str, int], seconds: float) -> dict[str, dict[str, float]]:
    watched = {role: psutil.Process(pid) for role, pid in pids.items()}
    time.sleep(SETTLE_SECONDS)
    before = {role: _processor_seconds(process) for role, process in watched.items()}
    time.sleep(seconds)
    return {
        role: {
            "cpu_percent": round((_processor_seconds(process) - before[role]) / seconds * 100, 2),
            "memory_mb": round(process.memory_info().rss / 1024**2, 1),
        }
        for role, process in watched.items()
    }


def _processor_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _count(notes: str, figures: dict[str, dict[str, float]], seconds: float) -> None:
    time.sleep(SETTLE_SECONDS)
    before = {role: Path(notes, role).stat().st_size for role in figures}
    time.sleep(seconds)
    for role, figure in figures.items():
        counted = Path(notes, role).stat().st_size - before[role]
        figure["queries_per_second"] = round(counted / seconds, 2)


def main() -> None:
    for name in ("sqlite", "postgresql"):
        for role, figures in measure(name).items():
            told = "  ".join(f"{key}={value}" for key, value in figures.items())
            print(f"database={name}  role={role}  {told}")


if __name__ == "__main__":
    main()
