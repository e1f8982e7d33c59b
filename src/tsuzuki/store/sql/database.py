"""One database and the ways in: `read()`, `write()` for a transaction, `statement()` for a single statement,
`single_read()` for a look at one row.

SQLite: WAL, `BEGIN IMMEDIATE` for writes and one writer at a time per process, so a writer waits for its
turn instead of failing half-way; writers of other processes wait on the file for `sqlite.LOCK_TIMEOUT_SECONDS`.
PostgreSQL: READ COMMITTED; every guard is in the statement itself. A read, or a single statement, is sent
in autocommit mode: BEGIN and COMMIT would make three round trips of one. All take their connections from one
pool (`connection_pool`).

Driver errors about an unreachable, full or read-only database leave here as `Unreachable`
(`driver_errors`).
"""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection, Engine, select

from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import Unreachable
from tsuzuki.store.sql import autocommit, postgresql, sqlite
from tsuzuki.store.sql.autocommit import AutocommitConnection
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.connection_pool import Use, pool_of
from tsuzuki.store.sql.database_url import invalid_url, parse_url
from tsuzuki.store.sql.dialect import is_sqlite
from tsuzuki.store.sql.driver_errors import translate_errors
from tsuzuki.store.sql.prepared import execute
from tsuzuki.store.sql.read_limit import ReadWatch
from tsuzuki.store.wakeups.file_watch import touch

__all__ = ["Connection", "Database", "Use", "open_database"]

_NOW = select(db_now())


class _ThreadState(threading.local):
    """Whether this thread is inside a write transaction. A second one would deadlock with the first: on
    SQLite always, on PostgreSQL as soon as both touch the same row."""

    is_writing = False


class Database:
    """Opened with `open_database`; shared by all threads of a process."""

    def __init__(
        self, engine: Engine, *, clock: Clock, session_engine: Engine | None = None
    ) -> None:
        self.engine = engine
        self.session_engine = session_engine or engine
        """For what needs a session of its own, such as LISTEN: not through a connection pooler."""
        self.clock = clock
        self.is_sqlite = is_sqlite(engine.dialect)
        self.write_ahead_log = Path(f"{engine.url.database}-wal")
        """Beside the file of an SQLite database."""
        self._reader = engine.execution_options(**{postgresql.NO_TRANSACTION: True})
        self._read_watch = ReadWatch(
            clock=clock, cancel=sqlite.cancel if self.is_sqlite else postgresql.cancel
        )
        self._write_lock = threading.Lock()
        self._thread = _ThreadState()
        self._lock_wanted_at: float | None = None
        """Since when the writer of this process waits for the lock of an SQLite file."""

    @property
    def path(self) -> Path | None:
        """The file of an SQLite database."""
        name = self.engine.url.database
        return Path(name) if self.is_sqlite and name else None

    def may_become_reachable(self, problem: Unreachable) -> bool:
        """Whether waiting can help after this error: the server is not there, is starting, or has no connection
        left, or is a standby. It cannot if the server refuses us, and an SQLite file does not come by itself."""
        if self.is_sqlite or problem.permanent:
            return False
        cause = getattr(problem.__cause__, "orig", None)
        return (
            postgresql.is_out_of_connections(cause)
            or postgresql.is_standby(cause)
            or not postgresql.answers(self.engine)
        )

    def used_for(self, use: Use) -> AbstractContextManager[None]:
        """Connections that this thread takes inside the block are for this use."""
        return pool_of(self.engine).used_for(use)

    def name_sessions(self, name: str) -> None:
        """How the server lists the connections of this process (PostgreSQL: `pg_stat_activity`)."""
        if not self.is_sqlite:
            for engine in {self.engine, self.session_engine}:
                postgresql.name_sessions(engine, name)
            pool_of(self.engine).close_idle()

    @property
    def is_writing(self) -> bool:
        """Whether this thread is in a write transaction."""
        return self._thread.is_writing

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Read only. What it sees is a snapshot (SQLite), or one per statement (PostgreSQL). Never waits for a writer.
        Raises `ReadTimedOut` if it takes longer than the caller's limit (`read_limit`)."""
        with (
            translate_errors(self.engine.url),
            self._reader.connect() as connection,
            self._read_watch.limit(connection),
            connection.begin(),
        ):
            yield connection

    @contextmanager
    def single_read(self) -> Iterator[AutocommitConnection]:
        """For one read that a key makes short: without a transaction, which would take longer, and without a time
        limit."""
        with translate_errors(self.engine.url):
            connection = autocommit.take(self.engine)
            try:
                yield connection
            except BaseException as problem:
                connection.discard(problem)
                raise
            connection.put_back()

    @contextmanager
    def stream(self) -> Iterator[Connection]:
        """Read more than fits into memory: a transaction, which a server-side cursor needs."""
        with (
            translate_errors(self.engine.url),
            self.used_for(Use.UNBOUNDED),
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
                self._lock_wanted_at = None
                yield connection
            self._wake_watchers()

    @contextmanager
    def statement(self) -> Iterator[AutocommitConnection]:
        """For one write, perhaps after a read: on PostgreSQL each statement commits by itself, on SQLite
        they are one transaction."""
        with translate_errors(self.engine.url), self._exclusive():
            connection = autocommit.take(self.engine)
            try:
                if self.is_sqlite:
                    sqlite.begin_write(connection.send)
                    self._lock_wanted_at = None
                yield connection
                if self.is_sqlite:
                    connection.send("COMMIT")
                    self._wake_watchers()
            except BaseException as problem:
                connection.discard(problem)
                raise
            connection.put_back()

    @contextmanager
    def statements(self) -> Iterator[AutocommitConnection]:
        """The same for a few writes that belong together: one transaction on PostgreSQL too."""
        with self.statement() as connection:
            if not self.is_sqlite:
                connection.send(postgresql.begin_statement(connection.info))
            yield connection  # after an error the connection is discarded, and with it the transaction
            if not self.is_sqlite:
                connection.send("COMMIT")

    def is_write_locked(self) -> bool:
        """Whether another process holds SQLite's write lock, and for longer than a write takes."""
        return self.path is not None and sqlite.is_write_locked(self.path)

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
            self._lock_wanted_at = self.clock.monotonic() if self.is_sqlite else None
            try:
                yield
            finally:
                self._thread.is_writing = False
                self._lock_wanted_at = None

    def lock_wait_seconds(self) -> float:
        """How long the writer of this process has been waiting for the write lock of an SQLite file; 0 if it is
        not."""
        wanted_at = self._lock_wanted_at
        return 0.0 if wanted_at is None else self.clock.monotonic() - wanted_at

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
        self.engine.dispose()
        self.session_engine.dispose()


def open_database(url: str, *, clock: Clock, direct_url: str | None = None) -> Database:
    """Prepare a database for use. Nothing is read or written yet. `direct_url` leads to the same PostgreSQL past a
    connection pooler, for what needs a session of its own."""
    parsed = parse_url(url)
    direct = parse_url(direct_url) if direct_url else None
    match parsed.get_backend_name():
        case "sqlite":
            return Database(sqlite.create_engine(parsed, clock), clock=clock)
        case "postgresql" | "postgres":
            return Database(
                postgresql.create_engine(parsed, clock),
                clock=clock,
                session_engine=postgresql.create_engine(direct, clock) if direct else None,
            )
        case other:
            raise invalid_url(f"{other} is not a database Tsuzuki can use")
