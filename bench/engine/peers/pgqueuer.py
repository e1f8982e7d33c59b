"""pgqueuer on PostgreSQL. A finished job leaves the queue and is a row of its log."""

import asyncio
import time

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from bench.engine.peers.protocol import (
    Figures,
    HandlerCount,
    Measure,
    Order,
    answer,
    drained_async,
    mark,
    recovers,
    starts,
    submitted,
)

BATCH = 500


async def installed(order: Order) -> Queries:
    """Its tables, durable, with the autovacuum settings that it recommends."""
    queries = Queries(AsyncpgDriver(await asyncpg.connect(order.url)))
    await queries.install()
    await queries.optimize_autovacuum()
    return queries


async def enqueue(queries: Queries, jobs: int) -> None:
    await queries.enqueue(["nothing"] * jobs, [None] * jobs, [0] * jobs)


async def count(looker: asyncpg.Connection, table: str, where: str = "true") -> int:
    return int(await looker.fetchval(f"SELECT count(*) FROM {table} WHERE {where}"))


def drain(order: Order) -> Figures:
    async def measure() -> Figures:
        await enqueue(await installed(order), order.jobs)
        looker = await asyncpg.connect(order.url)
        await looker.execute("VACUUM ANALYZE")
        done = HandlerCount(order.jobs)
        worker = PgQueuer(AsyncpgDriver(await asyncpg.connect(order.url)))

        @worker.entrypoint("nothing")
        async def nothing(_job: Job) -> None:
            done.one()

        async def stored() -> bool:
            successes = count(looker, "pgqueuer_log", "status = 'successful'")
            return await count(looker, "pgqueuer") == 0 and await successes == order.jobs

        started_at = time.perf_counter()
        working = asyncio.create_task(worker.run(batch_size=BATCH))
        figures = await drained_async(done, started_at, stored)
        working.cancel()
        return figures

    return uvloop.run(measure())


def submit_many(order: Order) -> Figures:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        queries = runner.run(installed(order))
        runner.run(enqueue(queries, 1))
        looker = runner.run(asyncpg.connect(order.url))
        return submitted(
            order.jobs,
            lambda: runner.run(enqueue(queries, order.jobs)),
            lambda: runner.run(count(looker, "pgqueuer")),
        )


def start(order: Order) -> Figures:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        queries = runner.run(installed(order))
        return starts(order, lambda: runner.run(queries.enqueue("begin", None)))


def recover(order: Order) -> Figures:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        queries = runner.run(installed(order))
        return recovers(order, lambda: runner.run(queries.enqueue("begin", None)))


def work(order: Order) -> None:
    async def forever() -> None:
        worker = PgQueuer(AsyncpgDriver(await asyncpg.connect(order.url)))

        @worker.entrypoint("begin")
        async def begin(_job: Job) -> None:
            mark(order)
            await asyncio.sleep(order.seconds)

        await worker.run()

    uvloop.run(forever())


if __name__ == "__main__":
    answer(
        "pgqueuer",
        work=work,
        drain=Measure(
            run=drain,
            settings=f"asyncpg, uvloop, durable, autovac, batch_size {BATCH}, async handler",
        ),
        submit_many=Measure(run=submit_many, settings="asyncpg, uvloop, one enqueue of a list"),
        start=Measure(run=start, settings="asyncpg, uvloop, LISTEN/NOTIFY, async handler"),
        recover=Measure(run=recover, settings="defaults: heartbeat_timeout 30 s"),
    )
