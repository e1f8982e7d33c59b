"""Tsuzuki, measured as every peer is: fenced, with history, durable, one process that leads and works."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from sqlalchemy import func, select

import tsuzuki.wiring.engine  # noqa: F401 -- loaded before the clock starts, as by `tsuzuki up`
from bench.engine import idle, many_jobs, recovery
from bench.engine.backlog import Blocked, drain_behind
from bench.engine.connections import hold_connections
from bench.engine.finished_runs import add_finished_runs
from bench.engine.peers.protocol import (
    Figures,
    HandlerCount,
    Measure,
    Order,
    ProcessCount,
    answer,
    drained,
    mark,
    recovers,
    starts,
    submitted,
)
from tsuzuki import Request, Tsuzuki
from tsuzuki.model.states import RunState
from tsuzuki.services.garbage_collection import freeze_loaded_objects
from tsuzuki.store.schema.tables import job_runs

CAPACITY = 2000
DUE_IN_SECONDS = 3.0
FENCED = "fenced, with history"


class Handlers:
    """Handlers without work. Methods, not closures, because a handler needs a name in its module."""

    def __init__(self, order: Order, done: HandlerCount) -> None:
        self.order = order
        self.done = done

    async def nothing(self) -> None:
        self.done.one()

    async def begin(self) -> None:
        mark(self.order)
        await asyncio.sleep(self.order.seconds)


@contextmanager
def opened(order: Order) -> Iterator[Tsuzuki]:
    # In / no tsuzuki.yaml is found, and a killed worker leaves no files behind.
    with Tsuzuki(order.url, environ={}, cwd=Path("/")) as app:
        yield app


def in_state(app: Tsuzuki, state: RunState) -> int:
    with app.transaction() as connection:
        in_state = select(func.count()).where(job_runs.c.state == state.value)
        return int(connection.execute(in_state).scalar_one())


def nothing_left(app: Tsuzuki) -> bool:
    with app.transaction() as connection:
        unfinished = select(job_runs.c.id).where(job_runs.c.finished_at.is_(None)).limit(1)
        return connection.execute(unfinished).first() is None


def drain(order: Order) -> Figures:
    done = HandlerCount(order.jobs)
    with opened(order) as app:
        app.job("nothing", concurrency_policy="allow")(Handlers(order, done).nothing)
        if order.finished:
            add_finished_runs(app, order.url, order.finished)
        app.submit_many([Request(job="nothing")] * order.jobs)
        expected = order.finished + order.jobs
        freeze_loaded_objects()  # as `tsuzuki up` does before it starts
        started_at = time.perf_counter()
        with app.running(capacity=CAPACITY):
            figures = drained(done, started_at, lambda: nothing_left(app))
        succeeded = in_state(app, RunState.SUCCEEDED)
        assert succeeded == expected, f"{succeeded} succeeded of {expected}"
        return figures


def drain_commands(order: Order, capacity: int) -> Figures:
    with opened(order) as app:
        app.define("true", command=["true"], concurrency_policy="allow")
        app.submit_many([Request(job="true")] * order.jobs)
        freeze_loaded_objects()
        started_at = time.perf_counter()
        with app.running(capacity=capacity):
            drained(HandlerCount(0), started_at, lambda: nothing_left(app))
            seconds = time.perf_counter() - started_at
        assert in_state(app, RunState.SUCCEEDED) == order.jobs
        return {"per_second": order.jobs / seconds}


def start_commands_due_at_once(order: Order) -> Figures:
    """Delay of each command when many are due at the same time, with default capacity."""
    with opened(order) as app:
        app.define("true", command=["true"], concurrency_policy="allow")
        with app.running():
            app.submit_many([Request(job="true", delay_seconds=DUE_IN_SECONDS)] * order.jobs)
            drained(HandlerCount(0), time.perf_counter(), lambda: nothing_left(app))
        with app.transaction() as connection:
            times = select(job_runs.c.started_at, job_runs.c.scheduled_for)
            late = sorted((a - b).total_seconds() for a, b in connection.execute(times))
        return {"p50_seconds": late[len(late) // 2], "last_seconds": late[-1]}


def drain_beside_a_held_transaction(order: Order) -> Figures:
    """A snapshot held since before the jobs were submitted: vacuum cannot remove dead rows."""
    with opened(order) as app, app.transaction():
        pass  # the snapshot needs the tables
    with psycopg.connect(order.url) as holder:
        holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        holder.execute("SELECT count(*) FROM tsuzuki_job_runs")
        return drain(order)


def drain_processes(order: Order) -> Figures:
    done = ProcessCount(order.jobs)
    with opened(order) as app:
        app.define(
            "count",
            python="bench.engine.peers.protocol:count_in_process",
            isolation="process",
            concurrency_policy="allow",
        )
        app.submit_many([Request(job="count")] * order.jobs)
        started_at = time.perf_counter()
        with app.running():
            return done.rate(started_at)


def submit_many(order: Order) -> Figures:
    with opened(order) as app:
        app.job("nothing", concurrency_policy="allow")(Handlers(order, HandlerCount(0)).nothing)
        app.submit("nothing")
        requests = [Request(job="nothing")] * order.jobs
        return submitted(
            order.jobs,
            lambda: app.submit_many(requests),
            lambda: in_state(app, RunState.PENDING),
        )


def submit_each(order: Order) -> Figures:
    def one_by_one() -> None:
        for _ in range(order.jobs):
            app.submit("nothing")

    with opened(order) as app:
        app.job("nothing", concurrency_policy="allow")(Handlers(order, HandlerCount(0)).nothing)
        app.submit("nothing")
        return submitted(order.jobs, one_by_one, lambda: in_state(app, RunState.PENDING))


def start(order: Order) -> Figures:
    with opened(order) as app:
        app.job("begin", concurrency_policy="allow")(Handlers(order, HandlerCount(0)).begin)
        return starts(order, lambda: app.submit("begin"))


def recover(order: Order) -> Figures:
    with opened(order) as app:
        app.job("begin", concurrency_policy="allow")(Handlers(order, HandlerCount(0)).begin)
        return recovers(order, lambda: app.submit("begin"))


def lose_the_leader(order: Order) -> Figures:
    figures = recovery.measure(_name_of(order), kills=1)
    return {"seconds": figures["leader_killed_mean_seconds"]}


def stay_idle(order: Order) -> Figures:
    """Figures of a process that leads and works."""
    figures = idle.measure(_name_of(order))["leads_and_works"]
    return {name: figures[name] for name in ("queries_per_second", "cpu_percent", "memory_mb")}


def _name_of(order: Order) -> str:
    return "sqlite" if order.url.startswith("sqlite") else "postgresql"


def drain_behind_no_backlog(order: Order) -> Figures:
    return _drain_behind(order, Blocked.NOTHING)


def drain_behind_200_keys(order: Order) -> Figures:
    return _drain_behind(order, Blocked.KEY, groups=200)


def drain_behind_10000_keys(order: Order) -> Figures:
    return _drain_behind(order, Blocked.KEY, groups=10_000)


def drain_behind_tags(order: Order) -> Figures:
    return _drain_behind(order, Blocked.TAGS)


def _drain_behind(order: Order, by: Blocked, *, groups: int = 0) -> Figures:
    """The runs that hold their keys never end: the engine is not stopped, the process ends."""
    app = Tsuzuki(order.url, environ={}, cwd=Path("/"))
    return drain_behind(app, order.url, by=by, groups=groups, jobs=order.jobs)


def work(order: Order) -> None:
    with opened(order) as app:
        app.job("begin", concurrency_policy="allow")(Handlers(order, HandlerCount(0)).begin)
        freeze_loaded_objects()
        with app.running(capacity=CAPACITY):
            threading.Event().wait()


if __name__ == "__main__":
    answer(
        "tsuzuki",
        work=work,
        drain=Measure(run=drain, settings=f"{FENCED}, capacity {CAPACITY}, async handler"),
        drain_commands_4=Measure(
            run=lambda order: drain_commands(order, 4), settings=f"{FENCED}, capacity 4, `true`"
        ),
        drain_commands_64=Measure(
            run=lambda order: drain_commands(order, 64), settings=f"{FENCED}, capacity 64, `true`"
        ),
        start_commands_due_at_once=Measure(
            run=start_commands_due_at_once, settings=f"{FENCED}, default capacity, `true`"
        ),
        drain_beside_a_held_transaction=Measure(
            run=drain_beside_a_held_transaction,
            settings=f"capacity {CAPACITY}, a snapshot held since before the submit",
        ),
        drain_processes=Measure(
            run=drain_processes, settings=f"{FENCED}, isolation: process, defaults"
        ),
        submit_many=Measure(run=submit_many, settings="one call, one transaction"),
        submit_each=Measure(run=submit_each, settings="a transaction each"),
        start=Measure(run=start, settings=f"{FENCED}, defaults, async handler"),
        lose_the_leader=Measure(
            run=lose_the_leader, settings="defaults: from SIGKILL to the start of a run elsewhere"
        ),
        stay_idle=Measure(run=stay_idle, settings="defaults, leads and works, 30 s"),
        define_many=Measure(run=many_jobs.define, settings="by the library, one transaction"),
        apply_many=Measure(run=many_jobs.apply, settings="`job apply`, all jobs are new"),
        apply_many_again=Measure(run=many_jobs.apply_again, settings="`job apply`, nothing new"),
        disable_one_of_many=Measure(run=many_jobs.disable_one, settings="`job disable` of one job"),
        stay_idle_with_many=Measure(
            run=many_jobs.stay_idle, settings="`up`, every job has a schedule and none is due, 20 s"
        ),
        hold_connections=Measure(
            run=hold_connections, settings="one `up` and seven `worker`, defaults, 30 s"
        ),
        drain_behind_no_backlog=Measure(run=drain_behind_no_backlog, settings="no backlog"),
        drain_behind_200_keys=Measure(
            run=drain_behind_200_keys, settings="100,000 older runs, 200 keys at their limit"
        ),
        drain_behind_10000_keys=Measure(
            run=drain_behind_10000_keys, settings="100,000 older runs, 10,000 keys at their limit"
        ),
        drain_behind_tags=Measure(
            run=drain_behind_tags, settings="100,000 older runs, tags that no worker has"
        ),
        recover=Measure(run=recover, settings="defaults: two processes that lead and work"),
    )
