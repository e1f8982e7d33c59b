"""taskiq on a Redis stream, its broker with acknowledgements. A finished job is deleted."""

import asyncio
import time

import uvloop
from redis.asyncio import Redis
from taskiq.api import run_receiver_task
from taskiq_redis import RedisStreamBroker

from bench.engine.peers.protocol import Figures, HandlerCount, Measure, Order, answer, drained_async

TASKS_AT_ONCE = 100
STREAM = "taskiq"


def drain(order: Order) -> Figures:
    done = HandlerCount(order.jobs)

    async def measure() -> Figures:
        broker = RedisStreamBroker(order.url, queue_name=STREAM)

        @broker.task(task_name="nothing")
        async def nothing() -> None:
            done.one()

        await broker.startup()
        for _ in range(order.jobs):
            await nothing.kiq()
        redis = Redis.from_url(order.url)
        assert await redis.xlen(STREAM) == order.jobs

        async def stored() -> bool:
            """Acknowledged: the consumer group has read everything and has nothing pending."""
            group = (await redis.xinfo_groups(STREAM))[0]
            last = (await redis.xinfo_stream(STREAM))["last-generated-id"]
            return group["pending"] == 0 and group["last-delivered-id"] == last

        started_at = time.perf_counter()
        working = asyncio.create_task(run_receiver_task(broker, max_async_tasks=TASKS_AT_ONCE))
        figures = await drained_async(done, started_at, stored)
        working.cancel()
        return figures

    return uvloop.run(measure())


if __name__ == "__main__":
    answer(
        "taskiq",
        drain=Measure(
            run=drain, settings=f"RedisStreamBroker, max_async_tasks {TASKS_AT_ONCE}, uvloop"
        ),
    )
