"""The protocol of every measured program: it gets an order and prints one line of JSON.

Standard library only: every peer's interpreter imports this.

The rules that keep the figures comparable are here too. A *drain* starts when the library starts to work, in a process
that has imported everything, and ends when its store has nothing left (`drained`). A *start* is measured
between two processes on the machine's monotonic clock, from before the call that submits to the handler's first line.
"""

import argparse
import asyncio
import gc
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median, quantiles
from typing import TextIO

POLL_SECONDS = 0.005
WARMING = 10
GAP_SECONDS = (0.02, 0.1)
LONG_SECONDS = 60.0

Figures = Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Order:
    """Order for a measured program. `marks` is a file descriptor for the time of each start; a
    handler that writes to it continues for `seconds`."""

    url: str
    jobs: int
    finished: int = 0
    marks: int = -1
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Measure:
    """`settings` names the settings of this peer, in the words of its documentation."""

    run: Callable[[Order], Figures]
    settings: str


def answer(
    package: str | None, *, work: Callable[[Order], None] | None = None, **measures: Measure
) -> None:
    """Execute the order on the command line. `work` is the worker process for the measure of starts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("measure", choices=[*measures, "work"])
    parser.add_argument("--url", required=True)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--finished", type=int, default=0)
    parser.add_argument("--marks", type=int, default=-1)
    parser.add_argument("--seconds", type=float, default=0.0)
    given = vars(parser.parse_args())
    name = given.pop("measure")
    if name == "work":
        assert work is not None
        work(Order(**given))
        return
    measure = measures[name]
    figures = measure.run(Order(**given))
    said = {
        "version": version(package) if package else "",
        "settings": measure.settings,
        "figures": dict(figures),
    }
    print(json.dumps(said), flush=True)
    # Some libraries keep threads that never end; the figures are printed already.
    os._exit(0)


# --- draining -----------------------------------------------------------------------------------


class HandlerCount:
    """Counts executions of the handler. The store is queried only when all have run, so that
    polling it is not measured with the work."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        # Appending needs no lock, and some peers run handlers in many threads.
        self._ran: list[None] = []

    def one(self) -> None:
        self._ran.append(None)

    @property
    def count(self) -> int:
        return len(self._ran)

    @property
    def all(self) -> bool:
        return self.count >= self.expected


MARKS_VARIABLE = "TSUZUKI_BENCH_MARKS"
PROCESSES = 2


class ProcessCount:
    """Counts executions in other processes, as bytes of a file that its environment names."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        handle, path = tempfile.mkstemp(prefix="tsuzuki-bench-marks-")
        os.close(handle)
        os.environ[MARKS_VARIABLE] = path
        self._path = Path(path)

    @property
    def count(self) -> int:
        return self._path.stat().st_size

    def rate(self, started_at: float) -> Figures:
        """Wait for all executions. Returns them per second since `started_at`."""
        while self.count < self.expected:
            time.sleep(POLL_SECONDS)
        seconds = time.perf_counter() - started_at
        assert self.count == self.expected, f"{self.count} runs of {self.expected} jobs"
        self._path.unlink()
        return {"per_second": self.expected / seconds}


def count_in_process() -> None:
    """The handler without work of processes. The file is opened each time: a process may have been forked for it."""
    marks = os.open(os.environ[MARKS_VARIABLE], os.O_WRONLY | os.O_APPEND)
    os.write(marks, b".")
    os.close(marks)


def drained(done: HandlerCount, started_at: float, stored: Callable[[], bool]) -> Figures:
    """Wait for the handlers, then for the store. Returns jobs per second since `started_at`."""
    while not (done.all and stored()):
        time.sleep(POLL_SECONDS)
    return _drain_rate(done, started_at)


async def drained_async(
    done: HandlerCount, started_at: float, stored: Callable[[], Awaitable[bool]]
) -> Figures:
    while not (done.all and await stored()):
        await asyncio.sleep(POLL_SECONDS)
    return _drain_rate(done, started_at)


def _drain_rate(done: HandlerCount, started_at: float) -> Figures:
    seconds = time.perf_counter() - started_at
    assert done.count == done.expected, f"{done.count} runs of {done.expected} jobs"
    return {"per_second": done.expected / seconds}


# --- submitting ---------------------------------------------------------------------------------


def submitted(jobs: int, act: Callable[[], object], stored: Callable[[], int]) -> Figures:
    """Jobs per second of `act`, which submits them all; the store is counted afterwards."""
    before = stored()
    # Whether a full collection fell into the measured time was chance, and decided a third of the figure.
    gc.collect()
    started_at = time.perf_counter()
    act()
    seconds = time.perf_counter() - started_at
    assert stored() - before == jobs, f"{stored() - before} stored, {jobs} submitted"
    return {"per_second": jobs / seconds}


# --- starting, and starting again ---------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Mark:
    """When a handler started, by the machine's monotonic clock, and in which process."""

    nanoseconds: int
    pid: int


def mark(order: Order) -> None:
    """The first line of the handler: report the time to the submitting process."""
    os.write(order.marks, b"%d %d\n" % (time.monotonic_ns(), os.getpid()))


def starts(order: Order, submit: Callable[[], object]) -> Figures:
    """Milliseconds from the call of `submit` to the start of the handler in an idle worker."""
    chance = random.Random(order.jobs)
    waits = []
    with _workers(order, count=1) as next_mark:
        for number in range(WARMING + order.jobs):
            time.sleep(chance.uniform(*GAP_SECONDS))
            started_at = time.monotonic_ns()
            submit()
            start = next_mark()
            if number >= WARMING:
                waits.append((start.nanoseconds - started_at) / 1e6)
    return {"p50_ms": median(waits), "p99_ms": quantiles(waits, n=100)[98]}


def recovers(order: Order, submit: Callable[[], object]) -> Figures:
    """Seconds from kill -9 of the worker in a long job to the same job's start in the other one."""
    with _workers(order, count=2, seconds=LONG_SECONDS) as next_mark:
        submit()
        victim = next_mark().pid
        os.kill(victim, signal.SIGKILL)
        killed = time.monotonic_ns()
        again = next_mark()
    assert again.pid != victim
    return {"seconds": (again.nanoseconds - killed) / 1e9}


@contextmanager
def _workers(order: Order, *, count: int, seconds: float = 0.0) -> Iterator[Callable[[], Mark]]:
    """Start this program again as workers. Yields a function that waits for their next mark."""
    reading, writing = os.pipe()
    words = ["--url", order.url, "--marks", str(writing), "--seconds", str(seconds)]
    command = [sys.executable, "-m", sys.modules["__main__"].__spec__.name, "work", *words]
    workers = [
        subprocess.Popen(command, pass_fds=[writing], stdout=subprocess.DEVNULL)
        for _ in range(count)
    ]
    os.close(writing)
    try:
        with os.fdopen(reading) as marks:
            yield lambda: _read(marks)
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()


def _read(marks: TextIO) -> Mark:
    line = marks.readline()
    assert line, "the workers died"
    nanoseconds, pid = line.split()
    return Mark(nanoseconds=int(nanoseconds), pid=int(pid))
