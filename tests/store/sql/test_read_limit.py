"""The time limit of reads: a slow one is cancelled and says so, and the connections stay usable."""

import threading
from typing import Any

import pytest
from sqlalchemy import text

from tsuzuki.model.errors import ReadTimedOut
from tsuzuki.store.sql.database import Connection, Database
from tsuzuki.store.sql.read_limit import limited_reads

SLOW = {
    "sqlite": "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 1000000000)"
    " SELECT count(*) FROM s",
    "postgresql": "SELECT pg_sleep(600)",
}


def slow(connection: Connection) -> None:
    connection.execute(text(SLOW[connection.dialect.name]))


def one(connection: Connection) -> int:
    return int(connection.execute(text("SELECT 1")).scalar_one())


def test_a_slow_read_is_cancelled_and_the_next_ones_are_not(live_database: Database) -> None:
    with limited_reads(0.05), pytest.raises(ReadTimedOut) as told, live_database.read() as reader:
        slow(reader)
    assert told.value.specific_code == "read_timed_out"
    assert "Narrow" in str(told.value.hint)
    for _ in range(20):
        with limited_reads(60.0), live_database.read() as reader:
            assert one(reader) == 1


def test_the_innermost_limit_holds_and_says_what_to_do(live_database: Database) -> None:
    with (
        limited_reads(600.0),
        limited_reads(0.05, hint="Ask the server."),
        pytest.raises(ReadTimedOut) as told,
        live_database.read() as reader,
    ):
        slow(reader)
    assert told.value.hint == "Ask the server."


@pytest.fixture
def cancelled(live_database: Database, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when something was cancelled."""
    happened = threading.Event()
    watch = live_database._read_watch
    cancel = watch._cancel

    def noted(raw: Any) -> None:
        cancel(raw)
        happened.set()

    monkeypatch.setattr(watch, "_cancel", noted)
    return happened


def test_the_limit_is_that_of_all_statements_of_a_read(
    live_database: Database, cancelled: threading.Event
) -> None:
    """Also of one that starts after the time is over."""

    def read() -> None:
        with live_database.read() as reader:
            assert cancelled.wait(60)
            slow(reader)

    with limited_reads(0.01), pytest.raises(ReadTimedOut):
        read()


def test_a_read_that_ends_before_it_is_cancelled_has_its_answer(
    live_database: Database, cancelled: threading.Event
) -> None:
    with limited_reads(0.01), live_database.read() as reader:
        found = one(reader)
        assert cancelled.wait(60)
    assert found == 1
    with live_database.read() as reader:
        assert one(reader) == 1


def test_other_errors_stay_what_they_are(live_database: Database) -> None:
    with limited_reads(60.0), live_database.read() as reader, pytest.raises(ZeroDivisionError):
        raise ZeroDivisionError
    with live_database.read() as reader:
        assert one(reader) == 1
