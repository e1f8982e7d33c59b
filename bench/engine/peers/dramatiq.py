"""dramatiq on Redis: a job is acknowledged after it ran and not kept."""

import time

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from bench.engine.peers.protocol import Figures, HandlerCount, Measure, Order, answer, drained

THREADS = 8


def drain(order: Order) -> Figures:
    done = HandlerCount(order.jobs)
    broker = RedisBroker(url=order.url)
    dramatiq.set_broker(broker)

    @dramatiq.actor(queue_name="bench")
    def nothing() -> None:
        done.one()

    for _ in range(order.jobs):
        nothing.send()
    assert broker.do_qsize("bench") == order.jobs
    worker = dramatiq.Worker(broker, worker_threads=THREADS)
    started_at = time.perf_counter()
    worker.start()
    return drained(done, started_at, lambda: broker.do_qsize("bench") == 0)


if __name__ == "__main__":
    answer("dramatiq", drain=Measure(run=drain, settings=f"{THREADS} threads, no results"))
