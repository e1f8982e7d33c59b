"""An engine that drains runs in its own process during a measurement.

    python -m bench.web.draining URL RUNS_PER_SECOND

Ends when its standard input does, and prints how many runs it has ended.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tsuzuki import Request, Tsuzuki
from tsuzuki.services.garbage_collection import freeze_loaded_objects

CAPACITY = 2000
BATCHES_PER_SECOND = 4


class Handler:
    """Counts; a method, because a handler needs a name in its module."""

    def __init__(self) -> None:
        self.ended = 0

    async def nothing(self) -> None:
        self.ended += 1


def drain(url: str, per_second: int) -> int:
    handler, stop = Handler(), threading.Event()
    with Tsuzuki(url, environ={}, cwd=Path("/")) as app:
        app.job("drained-meanwhile", concurrency_policy="allow")(handler.nothing)
        freeze_loaded_objects()
        threading.Thread(target=_set_at_end_of_input, args=[stop], daemon=True).start()
        with app.running(capacity=CAPACITY):
            while not stop.wait(1 / BATCHES_PER_SECOND):
                batch = [Request(job="drained-meanwhile")] * (per_second // BATCHES_PER_SECOND)
                app.submit_many(batch)
    return handler.ended


def _set_at_end_of_input(stop: threading.Event) -> None:
    sys.stdin.read()
    stop.set()


@contextmanager
def beside(url: str, per_second: int) -> Iterator[dict[str, float]]:
    """Drain while the block runs; afterwards the figures are in what it gives."""
    figures: dict[str, float] = {}
    if not per_second:
        yield figures
        return
    command = [sys.executable, "-W", "ignore", "-m", "bench.web.draining", url, str(per_second)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    started_at = time.perf_counter()
    try:
        yield figures
    finally:
        process.stdin.close()
        ended = process.stdout.read()
        process.wait(120)
    figures["drained_per_second"] = int(ended) / (time.perf_counter() - started_at)


if __name__ == "__main__":
    print(drain(sys.argv[1], int(sys.argv[2])))
