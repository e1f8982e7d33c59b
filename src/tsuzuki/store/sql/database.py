"""One database and the ways in: `read()`, `write()` for a transaction, `statement()` for a single statement.

SQLite: WAL, `BEGIN IMMEDIATE` for writes and one writer at a time per process, so a writer waits for its
turn instead of failing half-way; writers of other processes wait on the file for `sqlite.LOCK_TIMEOUT_SECONDS`.
PostgreSQL: READ COMMITTED; every guard is in the statement itself. A read, or a single statement, is sent
in autocommit mode: BEGIN and COMMIT would make three round trips of one.

Driver errors about an unreachable, full or read-only database leave here as `Unreachable`
(`driver_errors`).
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection, Engine, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from tsuzuki.model.clock import Clock
from tsuzuki.store.sql import postgresql, sqlite
from tsuzuki.store.sql.autocommit import AutocommitConnection, AutocommitPool
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.database_url import invalid_url
from tsuzuki.store.sql.dialect import is_sqlite
from tsuzuki.store.sql.driver_errors import translate_errors
from tsuzuki.store.sql.prepared import execute
from tsuzuki.store.wakeups.file_watch import touch

__all__ = ["Connection", "Database", "open_database"]

_NOW = select(db_now())


class _ThreadState(threading.local):
    """Whether this thread is inside a write transaction. A second one would deadlock with the first: on
    SQLite always, on PostgreSQL as soon as both touch the same row."""

    is_writing = False


class Database:
    """Opened with `open_database`; shared by all threads of a process."""

    def __init__(self, engine: Engine, *, clock: Clock) -> None:
        self.engine = engine
        self.clock = clock
        self.is_sqlite = is_sqlite(engine.dialect)
        self.write_ahead_log = Path(f"{engine.url.database}-wal")
        """Beside the file of an SQLite database."""
        self._reader = (
            engine if self.is_sqlite else engine.execution_options(isolation_level="AUTOCOMMIT")
        )
        self._autocommit_pool = AutocommitPool(engine)
        self._write_lock = threading.Lock()
        self._thread = _ThreadState()

    @property
    def path(self) -> Path | None:
        """The file of an SQLite database."""
        name = self.engine.url.database
        return Path(name) if self.is_sqlite and name else None

    @property
    def is_writing(self) -> bool:
        """Whether this thread is in a write transaction."""
        return self._thread.is_writing

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Read only. What it sees is a snapshot (SQLite), or one per statement (PostgreSQL)."""
        with (
            translate_errors(self.engine.url),
            self._reader.connect() as connection,
            connection.begin(),
        ):
            yield connection

    @contextmanager
    def stream(self) -> Iterator[Connection]:
        """Read more than fits into memory: a transaction, which a server-side cursor needs."""
        with (
            translate_errors(self.engine.url),
            self.engine.connect() as connection,
            connection.begin(),
        ):
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that is committed on leaving, or rolled back if anything is raised."""
        with (
            translate_errors(self.engine.url),
            self._exclusive(),
            self.engine.connect() as connection,
        ):
            connection.execution_options(tsuzuki_write=True)
            with connection.begin():
                yield connection
            self._wake_watchers()

    @contextmanager
    def statement(self) -> Iterator[AutocommitConnection]:
        """For one write, perhaps after a read: on PostgreSQL each statement commits by itself, on SQLite
        they are one transaction."""
        with translate_errors(self.engine.url), self._exclusive():
            connection = self._autocommit_pool.take()
            try:
                if self.is_sqlite:
                    connection.send("BEGIN IMMEDIATE")
                yield connection
                if self.is_sqlite:
                    connection.send("COMMIT")
                    self._wake_watchers()
            except BaseException as problem:
                self._autocommit_pool.discard(connection, problem)
                raise
            self._autocommit_pool.put_back(connection)

    def _wake_watchers(self) -> None:
        """After a commit: wake the processes that watch an SQLite file. PostgreSQL notifies by itself."""
        if self.is_sqlite:
            touch(self.write_ahead_log)

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """One write transaction per thread, and on SQLite one per process."""
        if self._thread.is_writing:
            raise RuntimeError("a write transaction was opened inside another one")
        with self._write_lock if self.is_sqlite else nullcontext():
            self._thread.is_writing = True
            try:
                yield
            finally:
                self._thread.is_writing = False

    def now(self, connection: Connection) -> datetime:
        """The database's clock, for decisions that all processes must agree on."""
        if self.is_sqlite:
            return self.clock.now()
        moment: datetime = execute(connection, _NOW).scalar_one()
        return moment

    def adopt(self, connection: Connection) -> None:
        """Prepare a caller's own connection to the same database for our statements."""
        if self.is_sqlite:
            sqlite.register_clock(connection.connection.driver_connection, self.clock)

    def close(self) -> None:
        self._autocommit_pool.close()
        self.engine.dispose()


def open_database(url: str, *, clock: Clock) -> Database:
    """Prepare a database for use. Nothing is read or written yet."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise invalid_url("the database URL cannot be read") from None
    match parsed.get_backend_name():
        case "sqlite":
            return Database(sqlite.create_engine(parsed, clock), clock=clock)
        case "postgresql" | "postgres":
            return Database(postgresql.create_engine(parsed), clock=clock)
        case other:
            raise invalid_url(f"{other} is not a database Tsuzuki can use")
