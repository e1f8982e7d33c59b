"""RQ on Redis. A finished job stays for its time to live, in a registry."""

import time

import redis
from rq import Queue, SimpleWorker

from bench.engine.peers.protocol import Figures, Measure, Order, answer


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


if __name__ == "__main__":
    answer("rq", drain=Measure(run=drain, settings="SimpleWorker (no fork), burst"))
