"""huey on SQLite or Redis: a job leaves the queue before it runs and is not kept."""

import threading
import time

from huey import Huey, RedisHuey, SqliteHuey
from huey.consumer import Consumer

from bench.engine.peers.protocol import (
    Figures,
    HandlerCount,
    Measure,
    Order,
    answer,
    drained,
    mark,
    starts,
)

# SQLite has one writer; on Redis one thread waits for I/O while another works.
WORKERS_SQLITE = 1
WORKERS_REDIS = 8


def opened(order: Order) -> Huey:
    if is_sqlite(order):
        path = order.url.removeprefix("sqlite:///")
        return SqliteHuey(filename=path, fsync=True, results=False)
    return RedisHuey(url=order.url, results=False)


def is_sqlite(order: Order) -> bool:
    return order.url.startswith("sqlite")


def consumer_of(huey: Huey, order: Order) -> Consumer:
    workers = WORKERS_SQLITE if is_sqlite(order) else WORKERS_REDIS
    return huey.create_consumer(
        workers=workers, periodic=False, initial_delay=0.001, check_worker_health=False
    )


def drain(order: Order) -> Figures:
    done = HandlerCount(order.jobs)
    huey = opened(order)

    @huey.task()
    def nothing() -> None:
        done.one()

    for _ in range(order.jobs):
        nothing()
    assert huey.pending_count() == order.jobs
    consumer = consumer_of(huey, order)
    started_at = time.perf_counter()
    consumer.start()
    return drained(done, started_at, lambda: huey.pending_count() == 0)


def start(order: Order) -> Figures:
    huey = opened(order)
    return starts(order, begin_of(huey, order))


def work(order: Order) -> None:
    huey = opened(order)
    begin_of(huey, order)
    consumer_of(huey, order).start()
    threading.Event().wait()


def begin_of(huey: Huey, order: Order):
    @huey.task(name="begin")
    def begin() -> None:
        mark(order)

    return begin


if __name__ == "__main__":
    on_redis = f"{WORKERS_REDIS} threads, no results"
    answer(
        "huey",
        work=work,
        drain_sqlite=Measure(run=drain, settings=f"fsync, {WORKERS_SQLITE} thread, no results"),
        drain_redis=Measure(run=drain, settings=on_redis),
        start=Measure(run=start, settings=f"{on_redis}, blocking pop"),
    )
