"""Number of PostgreSQL connections held by idle processes."""

import time

import psycopg

from bench.engine.peers.protocol import Figures, Order
from bench.engine.processes import client, processes, wait_until

PROCESSES = 8
WATCH_SECONDS = 30.0
LOOK_SECONDS = 1.0


def hold_connections(order: Order) -> Figures:
    """Connections of one process that leads and works and seven that work: maximum, and mean per process."""
    with client(order.url):
        pass  # the tables are made, and its own connections are closed
    with psycopg.connect(order.url, autocommit=True) as connection, processes(order.url) as started:
        started.start("up", "--no-web")
        for _ in range(PROCESSES - 1):
            started.start("worker")
        wait_until(lambda: _count(connection, _WORKERS) == PROCESSES, "the processes")
        time.sleep(WATCH_SECONDS)
        looks = []
        for _ in range(int(WATCH_SECONDS / LOOK_SECONDS)):
            looks.append(_count(connection, _CONNECTIONS))
            time.sleep(LOOK_SECONDS)
        started.end_all()
    return {"most": max(looks), "per_process": sum(looks) / len(looks) / PROCESSES}


_WORKERS = "SELECT count(*) FROM tsuzuki_workers"
_CONNECTIONS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


def _count(connection: psycopg.Connection, statement: str) -> int:
    row = connection.execute(statement).fetchone()
    assert row is not None
    return int(row[0])
