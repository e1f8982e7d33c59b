"""DBOS on PostgreSQL or SQLite. A job is a workflow on a queue; a finished one stays, as `SUCCESS`."""

import sqlite3
import time

import sqlalchemy
from dbos import DBOS, DBOSClient, EnqueueOptions, run_dbos_database_migrations

from bench.engine.peers.protocol import Figures, HandlerCount, Measure, Order, answer, drained

POLL_SECONDS = 0.01
THREADS = 16


def drain(order: Order) -> Figures:
    done = HandlerCount(order.jobs)
    DBOS(
        config={
            "name": "bench",
            "system_database_url": order.url,
            "max_executor_threads": THREADS,
            "sys_db_pool_size": THREADS,
            "application_version": "1",
            "log_level": "ERROR",
        }
    )

    @DBOS.workflow(name="nothing")
    def nothing() -> None:
        done.one()

    engine = submitted_to_queue(order)
    succeeded = sqlalchemy.text(
        "SELECT count(*) FROM workflow_status WHERE status = 'SUCCESS'"
        if engine.dialect.name == "sqlite"
        else "SELECT count(*) FROM dbos.workflow_status WHERE status = 'SUCCESS'"
    )

    def stored() -> bool:
        with engine.connect() as connection:
            return connection.execute(succeeded).scalar() == order.jobs

    started_at = time.perf_counter()
    DBOS.launch()
    return drained(done, started_at, stored)


def submitted_to_queue(order: Order) -> sqlalchemy.Engine:
    """All jobs in one transaction, which is not measured here. On SQLite the file gets WAL, as for
    the others; DBOS does not set it."""
    if order.url.startswith("sqlite"):
        with sqlite3.connect(order.url.removeprefix("sqlite:///")) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
    run_dbos_database_migrations(order.url)
    client = DBOSClient(system_database_url=order.url)
    client.register_queue("bench", polling_interval_sec=POLL_SECONDS)
    options: EnqueueOptions = {
        "queue_name": "bench",
        "workflow_name": "nothing",
        "app_version": "1",
    }
    engine = client._sys_db.engine  # noqa: SLF001 -- its own database has no public name
    with engine.begin() as connection:
        for _ in range(order.jobs):
            client.enqueue_in_transaction(connection, options)
    return engine


if __name__ == "__main__":
    answer(
        "dbos",
        drain=Measure(
            run=drain,
            settings=f"polling_interval_sec {POLL_SECONDS}, {THREADS} threads and connections",
        ),
    )
