"""procrastinate on PostgreSQL. A finished job stays, as `succeeded`."""

import asyncio
import threading
import time

import psycopg
from procrastinate import App, PsycopgConnector, SyncPsycopgConnector

from bench.engine.peers.protocol import (
    Figures,
    HandlerCount,
    Measure,
    Order,
    answer,
    drained_async,
    mark,
    starts,
    submitted,
)

CONCURRENCY = 30


def count(order: Order, status: str) -> int:
    with psycopg.connect(order.url) as connection:
        statement = "SELECT count(*) FROM procrastinate_jobs WHERE status = %s"
        return int(connection.execute(statement, (status,)).fetchone()[0])


def installed(order: Order) -> App:
    """For submitting from a synchronous program."""
    app = App(connector=SyncPsycopgConnector(conninfo=order.url))
    app.open()
    app.schema_manager.apply_schema()
    return app


def drain(order: Order) -> Figures:
    done = HandlerCount(order.jobs)
    submitting = installed(order)
    submitting.configure_task("nothing").batch_defer(*[{} for _ in range(order.jobs)])
    with psycopg.connect(order.url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")

    async def measure() -> Figures:
        app = App(connector=PsycopgConnector(conninfo=order.url, min_size=4, max_size=CONCURRENCY))

        @app.task(name="nothing")
        async def nothing() -> None:
            done.one()

        async def stored() -> bool:
            return await asyncio.to_thread(count, order, "succeeded") == order.jobs

        async with app.open_async():
            started_at = time.perf_counter()
            working = asyncio.create_task(
                app.run_worker_async(concurrency=CONCURRENCY, install_signal_handlers=False)
            )
            figures = await drained_async(done, started_at, stored)
            working.cancel()
            return figures

    return asyncio.run(measure())


def submit_each(order: Order) -> Figures:
    nothing = installed(order).configure_task("nothing")
    nothing.defer()

    def one_by_one() -> None:
        for _ in range(order.jobs):
            nothing.defer()

    return submitted(order.jobs, one_by_one, lambda: count(order, "todo"))


def submit_many(order: Order) -> Figures:
    nothing = installed(order).configure_task("nothing")
    nothing.defer()
    arguments = [{} for _ in range(order.jobs)]
    return submitted(
        order.jobs, lambda: nothing.batch_defer(*arguments), lambda: count(order, "todo")
    )


def start(order: Order) -> Figures:
    begin = installed(order).configure_task("begin")
    return starts(order, begin.defer)


def work(order: Order) -> None:
    app = App(connector=PsycopgConnector(conninfo=order.url))

    @app.task(name="begin")
    async def begin() -> None:
        mark(order)

    app.run_worker(concurrency=CONCURRENCY)
    threading.Event().wait()


if __name__ == "__main__":
    answer(
        "procrastinate",
        work=work,
        drain=Measure(
            run=drain, settings=f"psycopg pool, concurrency {CONCURRENCY}, async handler"
        ),
        submit_each=Measure(run=submit_each, settings="SyncPsycopgConnector, defer"),
        submit_many=Measure(run=submit_many, settings="SyncPsycopgConnector, batch_defer"),
        start=Measure(
            run=start, settings=f"LISTEN/NOTIFY, concurrency {CONCURRENCY}, async handler"
        ),
    )
