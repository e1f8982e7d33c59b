"""Isolated functions without a database: start of a cold child, runs per second, use of two cores, memory of an idle
child.

    python -m bench.engine.isolation [--runs N]
"""

import argparse
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import Mock

from tsuzuki.engine.executors.isolated.executor import IsolatedExecutor
from tsuzuki.engine.executors.isolated.transactions import ChildDatabase
from tsuzuki.engine.outcome import Outcome, Succeeded
from tsuzuki.engine.task import RunIO, Task
from tsuzuki.model.job import JobSpec
from tsuzuki.model.run import StartedRun, WorkOrder

RUNS = 1_000
ADDITIONS = 3_000_000


def nothing() -> None:
    """A function without work."""


def resident_own_kibibytes() -> int:
    """The memory of this process that it shares with no other."""
    lines = Path("/proc/self/smaps_rollup").read_text(encoding="utf-8").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


def add() -> int:
    return sum(number for number in range(ADDITIONS))


class NoDatabase:
    """No function of this benchmark opens a transaction."""

    def unstored_progress(self, run_id: int) -> None:
        raise AssertionError(run_id)

    def number_stored(self, run_id: int, number: int) -> None:
        raise AssertionError(run_id, number)


def executor() -> IsolatedExecutor:
    return IsolatedExecutor(
        base_folder=Path.cwd(),
        kill_grace_seconds=lambda: 1.0,
        database=ChildDatabase(
            url="",
            worker_id=str,
            seconds_max=lambda: 60.0,
            reserve_connection=lambda: False,
            release_connection=lambda: None,
            end_sessions=lambda _name: None,
            reports=NoDatabase,
        ),
    )


SILENT = Mock(spec=RunIO)
"""Has space, and keeps nothing."""


def a_task(function: str, run_id: int) -> Task:
    run = WorkOrder(
        id=run_id,
        version=1,
        leader_epoch=1,
        job_definition_id=1,
        scheduled_for=datetime(2026, 1, 1, tzinfo=UTC),
        priority=0,
        arguments={},
        attempt=1,
        retries_used=0,
        losses=0,
        losses_free=0,
        origin_id=None,
        work_key=None,
        concurrency_key=None,
        event_id=None,
    )
    options = {"function": f"bench.engine.isolation:{function}", "isolation": "process"}
    spec = JobSpec(name="bench", handler="python", options=options)
    return Task(run=run, started=StartedRun(run_id, 1, 1), spec=spec)


def seconds_of(children: IsolatedExecutor, function: str, *, runs: int, at_once: int) -> float:
    free, outcomes = threading.Semaphore(at_once), []
    all_ended = threading.Event()

    def ended(_task: Task, outcome: Outcome) -> None:
        outcomes.append(outcome)
        free.release()
        if len(outcomes) == runs:
            all_ended.set()

    started_at = time.perf_counter()
    for number in range(runs):
        free.acquire()
        children.start(a_task(function, number), SILENT, ended)
    all_ended.wait()
    assert all(isinstance(one, Succeeded) for one in outcomes), outcomes[0]
    return time.perf_counter() - started_at


def own_mebibytes(children: IsolatedExecutor) -> float:
    found: list[float] = []
    ended = threading.Event()

    def keep(_task: Task, outcome: Outcome) -> None:
        assert isinstance(outcome, Succeeded)
        found.append(outcome.result / 1024)
        ended.set()

    children.start(a_task("resident_own_kibibytes", 0), SILENT, keep)
    ended.wait()
    return found[0]


def measure(*, runs: int = RUNS) -> dict[str, float]:
    children = executor()
    try:
        cold = seconds_of(children, "nothing", runs=1, at_once=1)
        own = own_mebibytes(children)
        seconds_of(children, "nothing", runs=20, at_once=2)
        one = seconds_of(children, "nothing", runs=runs, at_once=1)
        two = seconds_of(children, "nothing", runs=runs, at_once=2)
        adding_one = seconds_of(children, "add", runs=8, at_once=1)
        adding_two = seconds_of(children, "add", runs=8, at_once=2)
    finally:
        children.close()
    return {
        "cold_seconds": round(cold, 3),
        "own_mebibytes": round(own, 1),
        "one_at_a_time_per_second": round(runs / one),
        "two_at_a_time_per_second": round(runs / two),
        "two_cores_to_one": round(adding_one / adding_two, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    figures = measure(runs=parser.parse_args().runs)
    print("  ".join(f"{key}={value}" for key, value in figures.items()))


if __name__ == "__main__":
    main()
