"""SQLite: who holds the write lock for long is named, and a run's transaction that takes too long is ended."""

import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from support.dialects import only_on_sqlite
from support.moving_clock import MovingClock
from support.threads import in_background
from support.waiting import wait_until
from tsuzuki.engine.lock_watch import HOLD_LONG_SECONDS, LockWatch
from tsuzuki.engine.log import fields_of
from tsuzuki.model.errors import UsageError
from tsuzuki.model.settings import EngineSettings
from tsuzuki.store.sql.database import Connection, Database
from tsuzuki.store.sql.sqlite_lock import lock_holder
from tsuzuki.store.sql.write_hold import LockUser

pytestmark = only_on_sqlite

SETTINGS = EngineSettings().checked()
USER = LockUser(run_id=7, job="import")

NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
"""Without an end."""

LOCKING = """
import sqlite3, sys
other = sqlite3.connect(sys.argv[1], isolation_level=None)
other.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def watch(database: Database) -> LockWatch:
    with database.write() as connection:
        connection.execute(text("CREATE TABLE imported (n INTEGER)"))
    return LockWatch(database=database, settings=lambda: SETTINGS)


@pytest.fixture
def file(database: Database) -> Path:
    assert database.path is not None
    return database.path


def add(connection: Connection) -> None:
    connection.execute(text("INSERT INTO imported VALUES (1)"))


def imported(database: Database) -> int:
    with database.read() as connection:
        return int(connection.execute(text("SELECT count(*) FROM imported")).scalar_one())


def write_beside(database: Database) -> None:
    """Write as another process does that waits for no lock."""
    with closing(sqlite3.connect(str(database.path), timeout=0)) as other:
        other.execute("INSERT INTO imported VALUES (2)")
        other.commit()


def test_a_run_that_holds_the_lock_for_long_is_named_until_it_ends(
    database: Database, clock: MovingClock, watch: LockWatch, file: Path
) -> None:
    started_at = clock.now()
    with database.write(user=USER) as connection:
        add(connection)
        clock.advance(HOLD_LONG_SECONDS - 0.1)
        watch.tick()
        short = lock_holder(file)
        clock.advance(0.1)
        watch.tick()
        long = lock_holder(file)
    assert (short and short.run_id, short and short.since) == (None, None)
    assert long is not None
    assert (long.run_id, long.job, long.since) == (7, "import", started_at)
    assert lock_holder(file) is None
    assert [path.name for path in file.parent.glob("*-holder*")] == []
    assert imported(database) == 1


def test_a_transaction_that_takes_too_long_is_rolled_back_and_releases_the_lock(
    database: Database, clock: MovingClock, watch: LockWatch
) -> None:
    def take_too_long() -> None:
        with database.write(user=USER) as connection:
            add(connection)
            clock.advance(SETTINGS.transaction_seconds_max)
            watch.tick()
            write_beside(database)

    with pytest.raises(UsageError) as caught:
        take_too_long()
    assert caught.value.specific_code == "transaction_too_long"
    with database.read() as connection:
        assert connection.execute(text("SELECT n FROM imported")).scalars().all() == [2]
    with database.write(user=USER) as connection:
        add(connection)
    assert imported(database) == 2


def test_nothing_is_written_after_the_rollback_though_the_handler_goes_on(
    database: Database, clock: MovingClock, watch: LockWatch
) -> None:
    def go_on() -> None:
        with database.write(user=USER) as connection:
            add(connection)
            clock.advance(SETTINGS.transaction_seconds_max)
            watch.tick()
            add(connection)

    with pytest.raises(UsageError) as caught:
        go_on()
    assert caught.value.specific_code == "transaction_too_long"
    assert imported(database) == 0


def test_a_statement_under_way_is_interrupted(
    database: Database, clock: MovingClock, watch: LockWatch
) -> None:
    def insert() -> None:
        with database.write(user=USER) as connection:
            connection.execute(text(f"{NUMBERS} INSERT INTO imported SELECT max(i) FROM n"))

    running = in_background(insert)
    wait_until(lambda: database.write_hold is not None, "the transaction has the lock")
    clock.advance(SETTINGS.transaction_seconds_max)
    watch.tick()
    with pytest.raises(UsageError) as caught:
        running.result(30)
    assert caught.value.specific_code == "transaction_too_long"
    assert imported(database) == 0


def test_a_result_that_is_not_read_to_its_end_does_not_keep_the_lock(
    database: Database, clock: MovingClock, watch: LockWatch
) -> None:
    def stop_in_the_middle() -> None:
        with database.write(user=USER) as connection:
            for _ in range(3):
                add(connection)
            rows = connection.execute(text("SELECT n FROM imported"))
            assert rows.fetchone() is not None
            clock.advance(SETTINGS.transaction_seconds_max)
            watch.tick()
            write_beside(database)
            rows.fetchall()
            add(connection)

    with pytest.raises(UsageError) as caught:
        stop_in_the_middle()
    assert caught.value.specific_code == "transaction_too_long"
    assert imported(database) == 1


def test_a_long_query_inside_the_loop_over_another_does_not_keep_the_lock(
    database: Database, clock: MovingClock, watch: LockWatch
) -> None:
    interrupted, is_released = threading.Event(), threading.Event()

    def query() -> None:
        with database.write(user=USER) as connection:
            add(connection)
            rows = connection.execute(text("SELECT 1 UNION ALL SELECT 2"))
            assert rows.fetchone() is not None
            with pytest.raises(DBAPIError):
                connection.execute(text(f"{NUMBERS} SELECT max(i) FROM n"))
            interrupted.set()
            assert is_released.wait(30)

    running = in_background(query)
    wait_until(lambda: database.write_hold is not None, "the transaction has the lock")
    clock.advance(SETTINGS.transaction_seconds_max)
    watch.tick()
    assert interrupted.wait(30)
    write_beside(database)
    is_released.set()
    with pytest.raises(UsageError) as caught:
        running.result(30)
    assert caught.value.specific_code == "transaction_too_long"
    assert imported(database) == 1


class FailingConnection:
    """A driver's connection whose first rollback fails."""

    def __init__(self, raw: Any) -> None:
        self.execute, self.set_progress_handler = raw.execute, raw.set_progress_handler
        self._rollback = raw.rollback
        self._failures = 1

    def rollback(self) -> None:
        if self._failures:
            self._failures -= 1
            raise sqlite3.OperationalError("disk I/O error")
        self._rollback()


def test_a_rollback_that_fails_is_repeated_and_nothing_is_committed_in_between(
    database: Database, clock: MovingClock, watch: LockWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def take_too_long(*, is_repeated: bool) -> None:
        with database.write(user=USER) as connection:
            add(connection)
            hold = database.write_hold
            assert hold is not None
            raw = connection.connection.driver_connection
            monkeypatch.setattr(hold, "_raw", FailingConnection(raw))
            clock.advance(SETTINGS.transaction_seconds_max)
            with pytest.raises(sqlite3.OperationalError):
                watch.tick()
            if is_repeated:
                watch.tick()
                write_beside(database)

    for is_repeated in (False, True):
        with pytest.raises(UsageError) as caught:
            take_too_long(is_repeated=is_repeated)
        assert caught.value.specific_code == "transaction_too_long"
    assert imported(database) == 1
    with database.write(user=USER) as connection:
        add(connection)
    assert imported(database) == 2


def test_a_handler_that_catches_the_interruption_cannot_write_before_the_rollback(
    database: Database, clock: MovingClock, watch: LockWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite ends the transaction of an aborted write by itself: the next write would be a transaction of its own."""
    went_on = threading.Event()

    def insert_and_go_on() -> None:
        with database.write(user=USER) as connection:
            with pytest.raises(DBAPIError):
                connection.execute(text(f"{NUMBERS} INSERT INTO imported SELECT max(i) FROM n"))
            with suppress(DBAPIError):
                add(connection)
            went_on.set()

    class LateConnection:
        """A driver's connection that becomes read-only only after the handler has had its chance."""

        def __init__(self, raw: Any) -> None:
            self.rollback, self.set_progress_handler = raw.rollback, raw.set_progress_handler
            self._execute = raw.execute

        def execute(self, sql: str) -> None:
            assert went_on.wait(30)
            self._execute(sql)

    running = in_background(insert_and_go_on)
    wait_until(lambda: database.write_hold is not None, "the transaction has the lock")
    hold = database.write_hold
    assert hold is not None
    wait_for_end = hold.wait_for_end

    def note_and_wait() -> None:
        went_on.set()
        wait_for_end()

    monkeypatch.setattr(hold, "_raw", LateConnection(hold._raw))
    monkeypatch.setattr(hold, "wait_for_end", note_and_wait)
    clock.advance(SETTINGS.transaction_seconds_max)
    watch.tick()
    with pytest.raises(UsageError) as caught:
        running.result(30)
    assert caught.value.specific_code == "transaction_too_long"
    assert imported(database) == 0


@pytest.mark.parametrize(
    ("way", "purpose"), [("write", "app.transaction()"), ("statement", "thread MainThread")]
)
def test_a_writer_without_a_run_is_named_with_its_process_until_it_ends(
    database: Database,
    clock: MovingClock,
    watch: LockWatch,
    file: Path,
    caplog: pytest.LogCaptureFixture,
    way: str,
    purpose: str,
) -> None:
    started_at = clock.now()
    user = {"user": LockUser(purpose=purpose)} if way == "write" else {}
    with getattr(database, way)(**user):
        clock.advance(HOLD_LONG_SECONDS - 0.1)
        watch.tick()
        short = lock_holder(file)
        clock.advance(0.1)
        watch.tick()
        watch.tick()
        long = lock_holder(file)
    assert short is not None
    assert (short.purpose, short.since) == ("", None)
    assert long is not None
    assert (long.pid, long.purpose, long.since) == (os.getpid(), purpose, started_at)
    assert str(long).startswith(f"{purpose} in process {os.getpid()} (")
    (logged,) = [fields_of(record) for record in caplog.records]
    assert logged["event"] == "transaction holds the write lock"
    assert (logged["purpose"], logged["pid"], logged["seconds"]) == (purpose, os.getpid(), 5.0)
    assert lock_holder(file) is None
    assert [path.name for path in file.parent.glob("*-holder*")] == []


def test_a_transaction_of_no_run_is_not_ended(
    database: Database, clock: MovingClock, watch: LockWatch
) -> None:
    with database.write() as connection:
        add(connection)
        clock.advance(SETTINGS.transaction_seconds_max * 2)
        watch.tick()
    assert imported(database) == 1


def test_another_program_that_holds_the_lock_is_named_by_a_process_that_waits(
    database: Database, clock: MovingClock, watch: LockWatch, file: Path
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", LOCKING, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"locked\n"

        def write() -> None:
            with database.write() as connection:
                add(connection)

        waiting = in_background(write)
        wait_until(lambda: database._lock_wanted_at is not None, "the writer waits")
        since = clock.now()
        clock.advance(HOLD_LONG_SECONDS)
        watch.tick()
        holder = lock_holder(file)
        other.communicate()
        waiting.result(30)
    assert holder is not None
    assert (holder.pid, holder.run_id, holder.since) == (other.pid, None, since)
    watch.tick()
    assert [path.name for path in file.parent.glob("*-holder*")] == []
