"""Absurd on PostgreSQL. A finished task stays, as `completed`."""

import threading
import time

import psycopg
from absurd_sdk import Absurd
from absurdctl import BUNDLED_SCHEMA_SQL

from bench.engine.peers.protocol import Figures, HandlerCount, Measure, Order, answer, drained

BATCH = 100


def drain(order: Order) -> Figures:
    done = HandlerCount(order.jobs)
    looker = psycopg.connect(order.url, autocommit=True)
    looker.execute(BUNDLED_SCHEMA_SQL)
    app = Absurd(order.url, queue_name="bench")
    app.create_queue()

    @app.register_task("nothing")
    def nothing(_params: object, _context: object) -> None:
        done.one()

    submit_all(order)
    looker.execute("VACUUM ANALYZE")
    completed = "SELECT count(*) FROM absurd.t_bench WHERE state = 'completed'"

    def stored() -> bool:
        return looker.execute(completed).fetchone()[0] == order.jobs

    worker = threading.Thread(
        target=app.start_worker, kwargs={"batch_size": BATCH, "poll_interval": 0.01}, daemon=True
    )
    started_at = time.perf_counter()
    worker.start()
    return drained(done, started_at, stored)


def submit_all(order: Order) -> None:
    """In one transaction: submitting is not measured here."""
    with psycopg.connect(order.url) as connection:
        app = Absurd(connection, queue_name="bench")
        for _ in range(order.jobs):
            app.spawn("nothing", {}, queue="bench")


if __name__ == "__main__":
    answer("absurd-sdk", drain=Measure(run=drain, settings=f"one connection, batch_size {BATCH}"))
