"""A backlog that is blocked: how fast runs drain that wait behind it, and what it costs while it stands.

The backlog of 100,000 is older than everything else. Its concurrency keys are at their limit, each held by a run of its
own; or no worker has the tags. The processor time is that of our process and, on PostgreSQL, of its connections.
"""

import asyncio
import time
from collections.abc import Sequence
from enum import StrEnum

import psutil
import psycopg

from bench.engine.peers.protocol import POLL_SECONDS, Figures, HandlerCount
from tsuzuki import Request, Tsuzuki
from tsuzuki.services.garbage_collection import freeze_loaded_objects

DELAY_SECONDS = 8.0
"""The runs that can start are submitted so long before they are due: submitting them is not measured."""

BLOCKED = 100_000
WATCH_SECONDS = 10.0
SETTLE_SECONDS = 2.0
"""After the start of up to 10,000 runs."""
SPARE_CAPACITY = 2000
SUBMITTED_AT_ONCE = 10_000


class Blocked(StrEnum):
    """Reason why the backlog is blocked."""

    NOTHING = "nothing"
    KEY = "key"
    TAGS = "tags"


class Handlers:
    """One holds its key until the process ends, one does nothing."""

    def __init__(self, done: HandlerCount, holding: HandlerCount) -> None:
        self.done = done
        self.holding = holding

    async def hold(self) -> None:
        self.holding.one()
        await asyncio.Event().wait()

    async def nothing(self) -> None:
        self.done.one()


def drain_behind(app: Tsuzuki, url: str, *, by: Blocked, groups: int, jobs: int) -> Figures:
    """The engine is left running: the runs that hold their keys never end, the process does."""
    held = groups if by is Blocked.KEY else 0
    done, holding = HandlerCount(jobs), HandlerCount(held)
    handlers = Handlers(done, holding)
    app.job(
        "keyed", concurrency_policy="allow", concurrency_key="customer", max_concurrent_per_key=1
    )(handlers.hold)
    app.define("tagged", command=["true"], concurrency_policy="allow", tags=["none-has-it"])
    app.job("nothing", concurrency_policy="allow")(handlers.nothing)
    _submit(app, _backlog(by, BLOCKED + held, groups))
    freeze_loaded_objects()
    app.start(capacity=held + SPARE_CAPACITY)
    _wait(holding)
    time.sleep(SETTLE_SECONDS)
    idle = _processor_percent(url, WATCH_SECONDS)
    submitted_at = time.perf_counter()
    _submit(app, [Request(job="nothing", delay_seconds=DELAY_SECONDS)] * jobs)
    late = time.perf_counter() - submitted_at
    assert late < DELAY_SECONDS, f"submitting took {late:.1f} s"
    _wait(done)
    seconds = time.perf_counter() - submitted_at - DELAY_SECONDS
    return {"per_second": jobs / max(seconds, POLL_SECONDS), "blocked_cpu_percent": idle}


def _backlog(by: Blocked, count: int, groups: int) -> list[Request]:
    match by:
        case Blocked.NOTHING:
            return []
        case Blocked.KEY:
            return [Request(job="keyed", concurrency_key=f"c{n % groups}") for n in range(count)]
        case Blocked.TAGS:
            return [Request(job="tagged")] * count


def _submit(app: Tsuzuki, requests: Sequence[Request]) -> None:
    for first in range(0, len(requests), SUBMITTED_AT_ONCE):
        app.submit_many(requests[first : first + SUBMITTED_AT_ONCE])


def _wait(count: HandlerCount) -> None:
    while not count.all:
        time.sleep(POLL_SECONDS)


def _processor_percent(url: str, seconds: float) -> float:
    before = _processor_seconds(url)
    time.sleep(seconds)
    return 100.0 * (_processor_seconds(url) - before) / seconds


def _processor_seconds(url: str) -> float:
    """Processor time of this process and its PostgreSQL connections."""
    pids = [psutil.Process().pid]
    if not url.startswith("sqlite"):
        with psycopg.connect(url) as connection:
            asked = (
                "SELECT pid FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            pids += [pid for (pid,) in connection.execute(asked).fetchall()]
    times = [psutil.Process(pid).cpu_times() for pid in pids]
    return sum(one.user + one.system for one in times)
