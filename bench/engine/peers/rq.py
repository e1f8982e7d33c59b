"""RQ on Redis. A finished job stays for its time to live, in a registry."""

import multiprocessing
import time

import redis
from rq import Queue, SimpleWorker, Worker

from bench.engine.peers.protocol import (
    PROCESSES,
    Figures,
    Measure,
    Order,
    ProcessCount,
    answer,
    count_in_process,
)


def nothing() -> None:
    """A handler without work."""


def drain(order: Order) -> Figures:
    connection = redis.Redis.from_url(order.url)
    queue = Queue("bench", connection=connection)
    # RQ imports a job by its name, and refuses one from __main__.
    jobs = [Queue.prepare_data("bench.engine.peers.rq.nothing") for _ in range(order.jobs)]
    queue.enqueue_many(jobs)
    assert queue.count == order.jobs
    worker = SimpleWorker([queue], connection=connection)
    started_at = time.perf_counter()
    worker.work(burst=True, logging_level="ERROR")
    seconds = time.perf_counter() - started_at
    finished = queue.finished_job_registry.count
    assert finished == order.jobs, f"{finished} finished"
    return {"per_second": order.jobs / seconds}


def count() -> None:
    count_in_process()


def fork_for_each(url: str) -> None:
    connection = redis.Redis.from_url(url)
    worker = Worker([Queue("bench", connection=connection)], connection=connection)
    worker.work(burst=True, logging_level="ERROR")


def drain_processes(order: Order) -> Figures:
    done = ProcessCount(order.jobs)
    queue = Queue("bench", connection=redis.Redis.from_url(order.url))
    queue.enqueue_many(
        [Queue.prepare_data("bench.engine.peers.rq.count") for _ in range(order.jobs)]
    )
    started_at = time.perf_counter()
    for _ in range(PROCESSES):
        multiprocessing.Process(target=fork_for_each, args=(order.url,)).start()
    return done.rate(started_at)


if __name__ == "__main__":
    answer(
        "rq",
        drain=Measure(run=drain, settings="SimpleWorker (no fork), burst"),
        drain_processes=Measure(
            run=drain_processes, settings=f"{PROCESSES} workers, a fork for each job, burst"
        ),
    )
