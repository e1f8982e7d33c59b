"""Poll until a condition holds, with a timeout."""

import threading
from collections.abc import Callable

from sqlalchemy import text

from tsuzuki.model.clock import SystemClock
from tsuzuki.store.sql.database import Database

TIMEOUT_SECONDS = 120.0
"""Ends a hang; says nothing about speed."""
POLL_SECONDS = 0.002
"""Between two checks: the code waited for needs the processor too."""


def wait_until(
    is_so: Callable[[], bool], what: str, *, timeout_seconds: float = TIMEOUT_SECONDS
) -> None:
    clock, never = SystemClock(), threading.Event()
    deadline = clock.monotonic() + timeout_seconds
    while not is_so():
        assert clock.monotonic() < deadline, f"timed out waiting until {what}"
        never.wait(POLL_SECONDS)


def wait_until_blocked(database: Database, connections: int = 1) -> None:
    """Wait until this many connections to a PostgreSQL database wait for a lock."""
    question = text(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )

    def is_so() -> bool:
        with database.read() as connection:
            return connection.execute(question).scalar_one() == connections

    wait_until(is_so, f"{connections} connections wait for a lock")
