"""SQLAlchemy's engine for SQLite: WAL, explicit BEGIN, pragmas, and our clock as an SQL function."""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import sqlalchemy
from sqlalchemy import Connection, Engine, event
from sqlalchemy.engine import URL, ExceptionContext
from sqlalchemy.exc import DatabaseError, OperationalError

from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import ConfigurationError, Unreachable
from tsuzuki.store.sql.connection_pool import ConnectionPool, pool_of
from tsuzuki.store.sql.database_url import check_parameters, invalid_url
from tsuzuki.store.sql.file_identity import FileIdentity
from tsuzuki.store.sql.sqlite_snapshot import SNAPSHOT, SnapshotReader
from tsuzuki.store.sql.stored_values import to_text
from tsuzuki.store.sql.write_hold import HOLD

LOCK_TIMEOUT_SECONDS = 60.0
"""SQLite's busy timeout: how long a writer waits for the write lock of another process."""

SIGNAL_CHECK_SECONDS = 0.25
"""How long the main thread waits for the write lock without looking for signals."""

LOCK_CHECK_SECONDS = 1.0
"""How long `is_write_locked` waits: longer than a write takes."""

WAL_PAUSE_SECONDS = 0.01
WAL_KEPT_BYTES = 8 * 2**20
"""A write-ahead log of this size is used again and again; a longer one is the trace of a long reader."""

VERSION_OLDEST = (3, 35, 0)
PARAMETERS = ("synchronous", "timeout", "uri", "mode", "cache", "immutable", "nolock", "vfs")
"""Of the URL: our own, those of Python's driver, and those of SQLite."""

SYNCHRONOUS = ("full", "normal", "off", "extra")


class SqlitePool(ConnectionPool):
    def is_clean(self, raw: Any) -> bool:
        return not raw.in_transaction

    def is_full(self, _problem: BaseException) -> bool:
        return False

    def is_closed_by_server(self, _raw: Any) -> bool:
        return False


def create_engine(url: URL, clock: Clock, identity: FileIdentity) -> Engine:
    if sqlite3.sqlite_version_info < VERSION_OLDEST:
        raise Unreachable(
            f"SQLite {sqlite3.sqlite_version} of this Python is too old",
            hint="Use a Python built with SQLite 3.35 or newer, or PostgreSQL.",
            code="sqlite_too_old",
        )
    if url.database in (None, "", ":memory:"):
        raise invalid_url("an SQLite database must be a file that processes can share")
    check_parameters(url, PARAMETERS)
    synchronous = _synchronous(url)
    engine = sqlalchemy.create_engine(
        url.difference_update_query(["synchronous"]),
        connect_args={"timeout": LOCK_TIMEOUT_SECONDS},
        poolclass=SqlitePool,
        # Values of a statement may be secrets, and an error is stored with its run.
        hide_parameters=True,
    )

    pool_of(engine).clock = clock

    @event.listens_for(engine, "connect")
    def prepare(raw: sqlite3.Connection, record: Any) -> None:
        identity.note()
        raw.isolation_level = None  # `_begin` below sends BEGIN
        register_clock(raw, clock)
        if SNAPSHOT in record.info:
            raw.execute("PRAGMA query_only = ON")
        else:
            _use_wal(raw)
        for pragma in (
            f"synchronous = {synchronous}",
            "foreign_keys = ON",
            "temp_store = MEMORY",
            "cache_size = -16000",
            "journal_size_limit = 67108864",
        ):
            raw.execute(f"PRAGMA {pragma}")
        if SNAPSHOT not in record.info:
            identity.note_beside(record.info)

    @event.listens_for(engine, "do_connect")
    def check_file(*_arguments: object) -> None:
        identity.check()  # before a new file is made in place of the one that is gone

    event.listen(engine, "do_connect", _make_private_file)
    event.listen(engine, "do_connect", SnapshotReader())
    event.listen(engine, "begin", _begin)
    event.listen(engine, "handle_error", _wait_for_end_of_hold)
    return engine


def cancel(raw: Any) -> None:
    """End the statement that another thread executes on this connection."""
    raw.interrupt()


def is_write_locked(path: Path) -> bool:
    """Whether the write lock of a file is not to be had. Nothing is written."""
    try:
        with closing(_connect_existing(path, timeout=LOCK_CHECK_SECONDS)) as raw:
            raw.execute("BEGIN IMMEDIATE")
            raw.execute("ROLLBACK")
    except sqlite3.OperationalError as problem:
        return "locked" in str(problem)
    return False


def truncate_wal(path: Path) -> bool:
    """Move what is in the write-ahead log into the file and empty the log. Waits for no lock; whether it was done."""
    try:
        with closing(_connect_existing(path, timeout=0.0)) as raw:
            # First what needs no lock, so that writers wait only for the rest.
            raw.execute("PRAGMA wal_checkpoint(PASSIVE)")
            is_busy, *_ = raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.OperationalError:
        return False
    return not is_busy


def _connect_existing(path: Path, *, timeout: float) -> sqlite3.Connection:
    """A connection beside the pool. A file that was deleted is not made again."""
    location = f"{path.absolute().as_uri()}?mode=rw"
    return sqlite3.connect(location, timeout=timeout, isolation_level=None, uri=True)


def _make_private_file(
    _dialect: object, _record: object, arguments: list[Any], _named: Any
) -> None:
    """A new file is for its owner only; SQLite gives the files beside it (WAL) the same mode. What cannot be
    made is reported when it is opened."""
    with suppress(OSError):
        os.close(os.open(arguments[0], os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def register_clock(raw: Any, clock: Clock) -> None:
    """Make `tsuzuki_now` read this clock."""
    raw.create_function(
        "tsuzuki_now", 1, lambda offset: to_text(clock.now() + timedelta(seconds=offset))
    )


def _synchronous(url: URL) -> str:
    synchronous = str(url.query.get("synchronous", "full")).lower()
    if synchronous not in SYNCHRONOUS:
        raise ConfigurationError(
            f"unknown value synchronous={synchronous}",
            hint=f"Use one of: {', '.join(SYNCHRONOUS)}.",
            code="database_url",
        )
    return synchronous


def _begin(connection: Connection) -> None:
    is_write = connection.get_execution_options().get("tsuzuki_write", False)
    # Straight to the driver: SQLAlchemy's way takes longer than the statement.
    raw: Any = connection.connection.driver_connection
    begin = "BEGIN IMMEDIATE" if is_write else "BEGIN"
    try:
        if is_write:
            begin_write(raw.execute)
        else:
            raw.execute(begin)
    except sqlite3.OperationalError as problem:
        raise OperationalError(begin, None, problem) from problem
    except sqlite3.DatabaseError as problem:
        raise DatabaseError(begin, None, problem) from problem


def _wait_for_end_of_hold(context: ExceptionContext) -> None:
    """Keep an error from its handler until the transaction that it aborted is rolled back (`write_hold`)."""
    connection = context.connection
    hold = None if connection is None else connection.get_execution_options().get(HOLD)
    if hold is not None:
        hold.wait_for_end()


class _Waiting:
    in_steps = False


@contextmanager
def answering_signals() -> Iterator[None]:
    """Inside the block the main thread waits for the write lock in short steps. SQLite waits without a look at
    signals, and a command answers ^C at once."""
    before, _Waiting.in_steps = _Waiting.in_steps, True
    try:
        yield
    finally:
        _Waiting.in_steps = before


def begin_write(execute: Callable[[str], object]) -> None:
    """Take the write lock."""
    if not _Waiting.in_steps or threading.current_thread() is not threading.main_thread():
        execute("BEGIN IMMEDIATE")
        return
    execute(f"PRAGMA busy_timeout = {SIGNAL_CHECK_SECONDS * 1000:.0f}")
    try:
        for _ in range(int(LOCK_TIMEOUT_SECONDS / SIGNAL_CHECK_SECONDS) - 1):
            if _takes_lock(execute):
                return
        execute("BEGIN IMMEDIATE")
    finally:
        execute(f"PRAGMA busy_timeout = {LOCK_TIMEOUT_SECONDS * 1000:.0f}")


def _takes_lock(execute: Callable[[str], object]) -> bool:
    try:
        execute("BEGIN IMMEDIATE")
    except (sqlite3.OperationalError, OperationalError) as problem:
        if "locked" not in str(problem):
            raise
        return False
    return True


def _use_wal(raw: sqlite3.Connection) -> None:
    """Switch the file to WAL, which it stays in. Only the first connection ever has to. SQLite does not
    wait for the lock here when several processes race for it, so we do."""
    pause = threading.Event()
    for _ in range(int(LOCK_TIMEOUT_SECONDS / WAL_PAUSE_SECONDS)):
        try:
            if raw.execute("PRAGMA journal_mode = WAL").fetchone()[0] in ("wal", "memory"):
                return
        except sqlite3.OperationalError as problem:
            if "locked" not in str(problem):
                raise
        pause.wait(WAL_PAUSE_SECONDS)
    raise sqlite3.OperationalError("database is locked")
