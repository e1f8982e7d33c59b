"""SAQ on PostgreSQL. A finished job stays for its time to live, as `complete`."""

import asyncio
import time

import psycopg
import uvloop
from saq import Queue, Worker

from bench.engine.peers.protocol import Figures, HandlerCount, Measure, Order, answer, drained_async

CONCURRENCY = 50
SUBMITTING = 10


def count(order: Order, status: str) -> int:
    with psycopg.connect(order.url) as connection:
        statement = "SELECT count(*) FROM saq_jobs WHERE status = %s"
        return int(connection.execute(statement, (status,)).fetchone()[0])


def drain(order: Order) -> Figures:
    done = HandlerCount(order.jobs)

    async def nothing(_context: object) -> None:
        done.one()

    async def submit_some(queue: Queue, jobs: int) -> None:
        for _ in range(jobs):
            await queue.enqueue("nothing")

    async def stored() -> bool:
        return await asyncio.to_thread(count, order, "complete") == order.jobs

    async def measure() -> Figures:
        queue = Queue.from_url(order.url, max_size=CONCURRENCY)
        await queue.connect()
        some = [submit_some(queue, order.jobs // SUBMITTING) for _ in range(SUBMITTING)]
        await asyncio.gather(*some)
        assert count(order, "queued") == order.jobs
        worker = Worker(queue, [("nothing", nothing)], concurrency=CONCURRENCY)
        started_at = time.perf_counter()
        working = asyncio.create_task(worker.start())
        figures = await drained_async(done, started_at, stored)
        working.cancel()
        return figures

    return uvloop.run(measure())


if __name__ == "__main__":
    answer(
        "saq",
        drain=Measure(
            run=drain, settings=f"psycopg pool, uvloop, concurrency {CONCURRENCY}, async handler"
        ),
    )
