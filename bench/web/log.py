"""A log of a million lines on the page of its run: opening the end, the middle, and searching all of it."""

import http.client
from typing import Any

from sqlalchemy import insert

from bench.web.pages import listening, timed_page
from bench.web.served import server
from tsuzuki.model.clock import SystemClock
from tsuzuki.store.schema.tables import job_run_logs
from tsuzuki.store.sql.database import open_database

RUN = 1
BATCH = 10_000
OPENED_MS = 200.0
SEARCHED_MS = 1_000.0


def measure(url: str, *, lines: int, rounds: int) -> dict[str, dict[str, Any]]:
    _write(url, lines)
    bounds = {
        f"/runs/{RUN}": OPENED_MS,
        f"/runs/{RUN}?line={lines // 2}": OPENED_MS,
        f"/runs/{RUN}?search=needle": SEARCHED_MS,
        f"/runs/{RUN}?search=nothing+has+this": SEARCHED_MS,
    }
    with server(url) as port:
        process = listening(port)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        return {
            f"{path}, {lines} lines": timed_page(connection, process, path, rounds, bound_ms=bound)
            for path, bound in bounds.items()
        }


def _write(url: str, lines: int) -> None:
    database = open_database(url, clock=SystemClock())
    now = database.clock.now()
    try:
        for first in range(1, lines + 1, BATCH):
            rows = [
                {
                    "run_id": RUN,
                    "seq": seq,
                    "at": now,
                    "stream": "stdout",
                    "body": _body(seq, lines),
                }
                for seq in range(first, min(first + BATCH, lines + 1))
            ]
            with database.write() as connection:
                connection.execute(insert(job_run_logs), rows)
    finally:
        database.close()


def _body(seq: int, lines: int) -> str:
    found = " needle" if seq in (lines // 3, lines - 1) else ""
    return f"{seq} collected page {seq % 997} of the catalogue, 40 rows stored{found}"
