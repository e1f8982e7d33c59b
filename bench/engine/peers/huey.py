"""huey on SQLite or Redis. A job leaves the queue before it runs; nothing is kept of it afterwards."""

import threading
import time

from huey import Huey, RedisHuey, SqliteHuey

from bench.engine.peers.shape import (
    Done,
    Figures,
    Measure,
    Order,
    answer,
    drained,
    mark,
    starts,
)

WORKERS = 1


def opened(order: Order) -> Huey:
    if order.url.startswith("sqlite"):
        path = order.url.removeprefix("sqlite:///")
        return SqliteHuey(filename=path, fsync=True, results=False)
    return RedisHuey(url=order.url, results=False)


def drain(order: Order) -> Figures:
    done = Done(order.jobs)
    huey = opened(order)

    @huey.task()
    def nothing() -> None:
        done.one()

    for _ in range(order.jobs):
        nothing()
    assert huey.pending_count() == order.jobs
    consumer = huey.create_consumer(
        workers=WORKERS, periodic=False, initial_delay=0.001, check_worker_health=False
    )
    begun = time.perf_counter()
    consumer.start()
    return drained(done, begun, lambda: huey.pending_count() == 0)


def start(order: Order) -> Figures:
    huey = opened(order)
    return starts(order, begin_of(huey, order))


def work(order: Order) -> None:
    huey = opened(order)
    begin_of(huey, order)
    huey.create_consumer(workers=WORKERS, periodic=False, check_worker_health=False).start()
    threading.Event().wait()


def begin_of(huey: Huey, order: Order):
    @huey.task(name="begin")
    def begin() -> None:
        mark(order)

    return begin


if __name__ == "__main__":
    answer(
        "huey",
        work=work,
        drain=Measure(run=drain, settings=f"{WORKERS} thread worker, no results"),
        start=Measure(run=start, settings=f"{WORKERS} thread worker, blocking pop, no results"),
    )
