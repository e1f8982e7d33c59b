"""The floor: the least work of a durable queue, as raw SQL on the same database.

One table. *In batches*: claim, start and finish are three UPDATEs of 500 rows, each committed. *Per job*: one
commit to claim a job and one to finish it. No guards, no history, no retries, no fencing.
Of commands it is a bare loop, and xargs: nothing is stored, no output is read.
"""

import sqlite3
import subprocess
import time

import psycopg

from bench.engine.peers.protocol import Figures, Measure, Order, answer, submitted

BATCH = 500


# --- PostgreSQL ---------------------------------------------------------------------------------


def postgres_filled(order: Order) -> psycopg.Connection:
    connection = psycopg.connect(order.url, autocommit=True)
    connection.execute("CREATE TABLE floor (id bigserial PRIMARY KEY, state text NOT NULL)")
    connection.execute("CREATE INDEX floor_state ON floor (state)")
    connection.execute(
        "INSERT INTO floor (state) SELECT 'waiting' FROM generate_series(1, %s)", (order.jobs,)
    )
    connection.execute("VACUUM ANALYZE floor")
    return connection


def drain_postgres_in_batches(order: Order) -> Figures:
    connection = postgres_filled(order)
    started_at = time.perf_counter()
    waiting = "SELECT id FROM floor WHERE state = 'waiting' LIMIT %s"
    while ids := [row[0] for row in connection.execute(waiting, (BATCH,))]:
        for state in ("given", "running", "done"):
            connection.execute("UPDATE floor SET state = %s WHERE id = ANY(%s)", (state, ids))
    return _rate(order, started_at, connection)


def drain_postgres_per_job(order: Order) -> Figures:
    connection = postgres_filled(order)
    started_at = time.perf_counter()
    claim = (
        "UPDATE floor SET state = 'running' WHERE id ="
        " (SELECT id FROM floor WHERE state = 'waiting' LIMIT 1 FOR UPDATE SKIP LOCKED)"
        " RETURNING id"
    )
    while claimed := connection.execute(claim).fetchone():
        connection.execute("UPDATE floor SET state = 'done' WHERE id = %s", claimed)
    return _rate(order, started_at, connection)


def insert_array(order: Order) -> Figures:
    with psycopg.connect(order.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE floor (id bigserial PRIMARY KEY, arguments text NOT NULL)")
        statement = "INSERT INTO floor (arguments) SELECT unnest(%s::text[]) RETURNING id"
        arguments = ["{}"] * order.jobs
        return submitted(
            order.jobs,
            lambda: connection.execute(statement, (arguments,)).fetchall(),
            lambda: connection.execute("SELECT count(*) FROM floor").fetchone()[0],
        )


# --- SQLite -------------------------------------------------------------------------------------


def sqlite_filled(order: Order) -> sqlite3.Connection:
    connection = sqlite3.connect(order.url.removeprefix("sqlite:///"), isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE floor (id INTEGER PRIMARY KEY, state TEXT NOT NULL)")
    connection.execute("CREATE INDEX floor_state ON floor (state)")
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO floor (state) VALUES (?)", [("waiting",)] * order.jobs)
    connection.execute("COMMIT")
    return connection


def drain_sqlite_in_batches(order: Order) -> Figures:
    connection = sqlite_filled(order)
    started_at = time.perf_counter()
    waiting = "SELECT id FROM floor WHERE state = 'waiting' LIMIT ?"
    while ids := [row[0] for row in connection.execute(waiting, (BATCH,))]:
        for state in ("given", "running", "done"):
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(
                "UPDATE floor SET state = ? WHERE id = ?", [(state, one) for one in ids]
            )
            connection.execute("COMMIT")
    return _rate(order, started_at, connection)


def drain_sqlite_per_job(order: Order) -> Figures:
    connection = sqlite_filled(order)
    started_at = time.perf_counter()
    claim = (
        "UPDATE floor SET state = 'running' WHERE id ="
        " (SELECT id FROM floor WHERE state = 'waiting' LIMIT 1) RETURNING id"
    )
    while claimed := connection.execute(claim).fetchall():
        connection.execute("UPDATE floor SET state = 'done' WHERE id = ?", claimed[0])
    return _rate(order, started_at, connection)


# --- commands -----------------------------------------------------------------------------------


def run_in_a_loop(order: Order) -> Figures:
    started_at = time.perf_counter()
    for _ in range(order.jobs):
        subprocess.run(["true"], check=True)
    return {"per_second": order.jobs / (time.perf_counter() - started_at)}


def run_by_xargs(order: Order) -> Figures:
    started_at = time.perf_counter()
    words = "\n".join(["x"] * order.jobs)
    subprocess.run(["xargs", "-P", "4", "-n", "1", "true"], input=words, text=True, check=True)
    return {"per_second": order.jobs / (time.perf_counter() - started_at)}


def _rate(
    order: Order, started_at: float, connection: psycopg.Connection | sqlite3.Connection
) -> Figures:
    seconds = time.perf_counter() - started_at
    done = connection.execute("SELECT count(*) FROM floor WHERE state = 'done'").fetchone()[0]
    assert done == order.jobs
    return {"per_second": order.jobs / seconds}


if __name__ == "__main__":
    batch = f"three UPDATEs and commits per {BATCH} jobs, no guards, no history"
    per_job = "two UPDATEs and commits per job, no guards, no history"
    answer(
        None,
        drain_postgres_in_batches=Measure(run=drain_postgres_in_batches, settings=batch),
        drain_postgres_per_job=Measure(run=drain_postgres_per_job, settings=per_job),
        insert_array=Measure(run=insert_array, settings="one INSERT … SELECT unnest, ids returned"),
        drain_sqlite_in_batches=Measure(run=drain_sqlite_in_batches, settings=batch),
        drain_sqlite_per_job=Measure(run=drain_sqlite_per_job, settings=per_job),
        run_in_a_loop=Measure(run=run_in_a_loop, settings="subprocess.run in a loop, `true`"),
        run_by_xargs=Measure(run=run_by_xargs, settings="xargs -P 4, `true`"),
    )
