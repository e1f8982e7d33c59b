"""arq on Redis. A job leaves the queue after it ran; its result is not kept."""

import asyncio
import time

import uvloop
from arq import Worker, create_pool, func
from arq.connections import ArqRedis, RedisSettings

from bench.engine.peers.protocol import Figures, HandlerCount, Measure, Order, answer, drained_async

JOBS_AT_ONCE = 100
POLL_SECONDS = 0.01
SUBMITTING = 10


def drain(order: Order) -> Figures:
    done = HandlerCount(order.jobs)

    async def nothing(_context: object) -> None:
        done.one()

    async def submit_some(redis: ArqRedis, jobs: int) -> None:
        for _ in range(jobs):
            await redis.enqueue_job("nothing")

    async def measure() -> Figures:
        settings = RedisSettings.from_dsn(order.url)
        redis = await create_pool(settings)
        some = [submit_some(redis, order.jobs // SUBMITTING) for _ in range(SUBMITTING)]
        await asyncio.gather(*some)
        assert await redis.zcard("arq:queue") == order.jobs

        async def stored() -> bool:
            return await redis.zcard("arq:queue") == 0

        worker = Worker(
            [func(nothing, name="nothing")],
            redis_settings=settings,
            handle_signals=False,
            max_jobs=JOBS_AT_ONCE,
            poll_delay=POLL_SECONDS,
            keep_result=0,
            log_results=False,
        )
        started_at = time.perf_counter()
        working = asyncio.create_task(worker.main())
        figures = await drained_async(done, started_at, stored)
        working.cancel()
        return figures

    return uvloop.run(measure())


if __name__ == "__main__":
    answer(
        "arq",
        drain=Measure(
            run=drain,
            settings=f"max_jobs {JOBS_AT_ONCE}, poll_delay {POLL_SECONDS}, keep_result 0, uvloop",
        ),
    )
