"""Celery on Redis. A job is acknowledged before it runs, which is its default; results are ignored."""

import threading
import time

import redis
from celery import Celery

from bench.engine.peers.protocol import (
    PROCESSES,
    Figures,
    HandlerCount,
    Measure,
    Order,
    ProcessCount,
    answer,
    count_in_process,
    drained,
    mark,
    starts,
)

PREFETCH = 100


def opened(order: Order) -> Celery:
    app = Celery("bench", broker=order.url.replace("unix://", "redis+socket://"))
    app.conf.update(
        task_ignore_result=True,
        worker_prefetch_multiplier=PREFETCH,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        broker_connection_retry_on_startup=True,
    )
    return app


def worker_of(app: Celery):
    return app.Worker(
        pool="solo",
        concurrency=1,
        loglevel="ERROR",
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )


def drain(order: Order) -> Figures:
    done = HandlerCount(order.jobs)
    app = opened(order)

    @app.task(name="nothing")
    def nothing() -> None:
        done.one()

    with app.producer_pool.acquire(block=True) as producer:
        for _ in range(order.jobs):
            nothing.apply_async(producer=producer)
    client = redis.Redis.from_url(order.url)
    assert client.llen("celery") == order.jobs
    worker = worker_of(app)
    started_at = time.perf_counter()
    threading.Thread(target=worker.start, daemon=True).start()
    return drained(
        done, started_at, lambda: client.llen("celery") == 0 and client.hlen("unacked") == 0
    )


def drain_processes(order: Order) -> Figures:
    done = ProcessCount(order.jobs)
    app = opened(order)
    task = app.task(name="count")(count_in_process)
    with app.producer_pool.acquire(block=True) as producer:
        for _ in range(order.jobs):
            task.apply_async(producer=producer)
    worker = app.Worker(
        pool="prefork",
        concurrency=PROCESSES,
        loglevel="ERROR",
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )
    started_at = time.perf_counter()
    threading.Thread(target=worker.start, daemon=True).start()
    return done.rate(started_at)


def start(order: Order) -> Figures:
    return starts(order, begin_of(opened(order), order).delay)


def work(order: Order) -> None:
    app = opened(order)
    begin_of(app, order)
    worker_of(app).start()


def begin_of(app: Celery, order: Order):
    @app.task(name="begin")
    def begin() -> None:
        mark(order)

    return begin


if __name__ == "__main__":
    quiet = "solo pool, no results, gossip, mingle or heartbeat"
    answer(
        "celery",
        work=work,
        drain=Measure(run=drain, settings=f"{quiet}, prefetch {PREFETCH}"),
        drain_processes=Measure(
            run=drain_processes, settings=f"prefork pool of {PROCESSES}, prefetch {PREFETCH}"
        ),
        start=Measure(run=start, settings=quiet),
    )
