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
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection, Engine, func, select
from sqlalchemy.exc import DBAPIError

from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import DatabaseReplaced, Unreachable, UsageError
from tsuzuki.store.sql import autocommit, postgresql, sqlite
from tsuzuki.store.sql.autocommit import AutocommitConnection
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.connection_pool import ConnectionUse, pool_of
from tsuzuki.store.sql.database_url import invalid_url, parse_url
from tsuzuki.store.sql.dialect import is_sqlite
from tsuzuki.store.sql.driver_errors import translate_errors
from tsuzuki.store.sql.file_identity import FileIdentity
from tsuzuki.store.sql.forks import on_fork
from tsuzuki.store.sql.open_transactions import OpenTransactions
from tsuzuki.store.sql.prepared import execute
from tsuzuki.store.sql.read_limit import ReadWatch
from tsuzuki.store.sql.write_hold import HOLD, LockUser, WriteHold
from tsuzuki.store.wakeups.file_watch import touch

__all__ = ["Connection", "ConnectionUse", "Database", "open_database"]

LOCK_WAIT_LONG_SECONDS = 0.5
"""Waits for SQLite's write lock that are longer are remembered."""

LOCK_WAITS_MAX = 64
"""How many of them."""

_NOW = select(db_now())
_ISOLATION = select(func.current_setting("transaction_isolation"))


class Database:
    """Opened with `open_database`; shared by all threads of a process."""

    def __init__(
        self,
        engine: Engine,
        *,
        clock: Clock,
        session_engine: Engine | None = None,
        identity: FileIdentity | None = None,
    ) -> None:
        self._identity = identity
        self.engine = engine
        self.session_engine = session_engine or engine
        """For what needs a session of its own, such as LISTEN: not through a connection pooler."""
        self.clock = clock
        self.is_sqlite = is_sqlite(engine.dialect)
        self.write_ahead_log = Path(f"{engine.url.database}-wal")
        """Beside the file of an SQLite database."""
        self._reader = engine.execution_options(**{postgresql.NO_TRANSACTION: True})
        self.forget_parent()
        on_fork(self)

    def forget_parent(self) -> None:
        """Start with locks and a read watch of its own, also in a forked child."""
        self._read_watch = ReadWatch(
            clock=self.clock, cancel=sqlite.cancel if self.is_sqlite else postgresql.cancel
        )
        self._write_lock = threading.Lock()
        self._transactions = OpenTransactions(one_writer=self.is_sqlite)
        self._lock_wanted_at: float | None = None
        """Since when the writer of this process waits for the lock of an SQLite file."""
        self._lock_asked_at = 0.0
        """Since when, including the wait for other writers of this process."""
        self._lock_waits: deque[tuple[float, float]] = deque(maxlen=LOCK_WAITS_MAX)
        """The last long waits: when each ended, by the monotonic clock, and how long it was."""
        self.write_hold: WriteHold | None = None
        """The transaction of this process that holds the write lock of an SQLite file."""

    @property
    def path(self) -> Path | None:
        """The file of an SQLite database."""
        name = self.engine.url.database
        return Path(name) if self.is_sqlite and name else None

    def may_become_reachable(self, problem: Unreachable) -> bool:
        """Whether waiting can help after this error: the server is not there, is starting, has no connection left, is a
        standby, or a disk is full. It cannot if the server refuses us, and an SQLite file does not come by itself."""
        if problem.permanent:
            return False
        if self.is_sqlite:
            return problem.retry_after_seconds is not None
        cause = getattr(problem.__cause__, "orig", None)
        return (
            postgresql.is_out_of_connections(cause)
            or postgresql.is_standby(cause)
            or postgresql.is_out_of_space(cause)
            or not postgresql.answers(self.engine)
        )

    def used_for(self, use: ConnectionUse) -> AbstractContextManager[None]:
        """Connections taken inside the block, by the same task or thread, are for this use."""
        return pool_of(self.engine).used_for(use)

    def reserve_connection(self) -> bool:
        """Count a connection that an isolated process of ours is about to open; false if there may be no more."""
        return pool_of(self.engine).reserve()

    def release_connection(self) -> None:
        """That connection is closed."""
        pool_of(self.engine).release()

    def end_sessions(self, name: str) -> None:
        """End the server's sessions of this name: their process was killed, and a statement or a row lock of it may
        outlive it. SQLite needs no such thing, because the kernel releases the locks of a process."""
        if not self.is_sqlite:
            with translate_errors(self.engine.url), self._reader.connect() as connection:
                postgresql.end_sessions(connection, name)

    def name_sessions(self, name: str, *, is_key: bool = False) -> None:
        """How the server lists the connections of this process (PostgreSQL: `pg_stat_activity`). With `is_key` also if
        the URL says otherwise, so that `end_sessions` finds them."""
        if not self.is_sqlite:
            for engine in {self.engine, self.session_engine}:
                postgresql.name_sessions(engine, name, is_key=is_key)
            pool_of(self.engine).close_idle()

    @property
    def is_writing(self) -> bool:
        """Whether the caller is in a write transaction, or keeps another coroutine from ending its own."""
        return self._transactions.is_any_held_up

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Read only. What it sees is a snapshot (SQLite), or one per statement (PostgreSQL). Never waits for a writer.
        Raises `ReadTimedOut` if it takes longer than the caller's limit (`read_limit`), and `DatabaseReplaced` instead
        of reading a file that is gone: a caller that waits for a change would wait for ever."""
        self.check_file()
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
                with postgresql.single_statement(connection):
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
            self.used_for(ConnectionUse.UNBOUNDED),
            self.engine.connect() as connection,
            connection.begin(),
        ):
            yield connection

    @contextmanager
    def write(self, *, user: LockUser | None = None) -> Iterator[Connection]:
        """A transaction that is committed on leaving, or rolled back if anything is raised. On PostgreSQL a statement
        that failed fails the transaction, even if the block caught its error; a savepoint prevents that. On SQLite a
        watch names the `user`, and can end the transaction of a run (`write_hold`)."""
        with (
            translate_errors(self.engine.url),
            self._exclusive(user),
            self.engine.connect() as connection,
            self._on_its_file(connection),
        ):
            connection.execution_options(tsuzuki_write=True)
            with connection.begin():
                self._on_lock_taken()
                with self._held(user, connection):
                    yield connection
                self._check_file(connection)
                if not self.is_sqlite:
                    postgresql.check_commit(connection.connection.driver_connection)
            self._check_file(connection)
            self._wake_watchers()

    @contextmanager
    def statement(self) -> Iterator[AutocommitConnection]:
        """For one write, perhaps after a read: on PostgreSQL each statement commits by itself, on SQLite
        they are one transaction."""
        with translate_errors(self.engine.url), self._exclusive():
            connection = autocommit.take(self.engine)
            try:
                with self._on_its_file(connection):
                    if self.is_sqlite:
                        sqlite.begin_write(connection.send)
                        self._on_lock_taken()
                    with self._held(), postgresql.single_statement(connection):
                        yield connection
                    if self.is_sqlite:
                        self._check_file(connection)
                        connection.send("COMMIT")
                        self._check_file(connection)
                        self._wake_watchers()
            except BaseException as problem:
                connection.discard(problem)
                raise
            connection.put_back()

    @contextmanager
    def statements(self) -> Iterator[AutocommitConnection]:
        """The same for a few writes that belong together: one transaction on PostgreSQL too."""
        with self.statement() as connection:
            is_open = self.is_sqlite or connection.info.get(postgresql.OTHER_DEFAULTS)
            with nullcontext() if is_open else postgresql.transaction(connection):
                yield connection

    @property
    def replaced(self) -> DatabaseReplaced | None:
        """Why nothing can be written any more, once the file was found to be deleted or replaced."""
        return self._identity.problem if self._identity else None

    def check_file(self) -> None:
        """Raise `DatabaseReplaced` if the file of an SQLite database is not the one that was opened."""
        if self._identity is not None:
            self._identity.check()

    def _check_file(self, connection: Connection | AutocommitConnection) -> None:
        """The same, and the files beside it. Called before a commit, so that none goes to a file that is gone; and
        after it, before it is confirmed."""
        if self._identity is not None:
            self._identity.check(connection.info)

    @contextmanager
    def _on_its_file(self, connection: Connection | AutocommitConnection) -> Iterator[None]:
        """A file that was replaced may first be noticed by an error, such as a damaged page: the cause is raised."""
        try:
            yield
        except DBAPIError:
            self._check_file(connection)
            raise

    @property
    def wal_bytes(self) -> int:
        """The size of SQLite's write-ahead log; 0 without one."""
        try:
            return self.write_ahead_log.stat().st_size if self.is_sqlite else 0
        except OSError:
            return 0

    def shorten_wal(self) -> None:
        """Empty a long write-ahead log. Waits for no reader and no writer: beside one it stays for now."""
        if self.path is not None and self.wal_bytes > sqlite.WAL_KEPT_BYTES:
            sqlite.truncate_wal(self.path)

    def is_write_locked(self) -> bool:
        """Whether another process holds SQLite's write lock, and for longer than a write takes."""
        return self.path is not None and sqlite.is_write_locked(self.path)

    def _wake_watchers(self) -> None:
        """After a commit: wake the processes that watch an SQLite file. PostgreSQL notifies by itself."""
        if self.is_sqlite:
            touch(self.write_ahead_log)

    @contextmanager
    def _exclusive(self, user: LockUser | None = None) -> Iterator[None]:
        """One write transaction per task, and on SQLite one per process."""
        self._transactions.check(user)
        asked_at = self.clock.monotonic() if self.is_sqlite else 0.0
        with (
            self._write_lock if self.is_sqlite else nullcontext(),
            self._transactions.opened(user),
        ):
            self._lock_asked_at = asked_at
            self._lock_wanted_at = self.clock.monotonic() if self.is_sqlite else None
            try:
                yield
            finally:
                self._lock_wanted_at = None

    def _on_lock_taken(self) -> None:
        self._lock_wanted_at = None
        now = self.clock.monotonic() if self.is_sqlite else 0.0
        waited = now - self._lock_asked_at
        if waited > LOCK_WAIT_LONG_SECONDS:
            self._lock_waits.append((now, waited))

    @contextmanager
    def _held(
        self, user: LockUser | None = None, connection: Connection | None = None
    ) -> Iterator[None]:
        """Let a watch see who has SQLite's write lock, and end the transaction if it is a run's."""
        if not self.is_sqlite:
            yield
            return
        ends = connection if user is not None and user.run_id is not None else None
        hold = self.write_hold = WriteHold(
            user or LockUser(),
            taken_at=self.clock.monotonic(),
            raw=ends.connection.driver_connection if ends is not None else None,
        )
        if ends is not None:
            ends.execution_options(**{HOLD: hold})
        try:
            yield
        except DBAPIError:
            hold.finish()  # a transaction that was ended from outside refuses every statement: raise that instead
            raise
        except BaseException:
            with suppress(UsageError):
                hold.finish()
            raise
        else:
            hold.finish()
        finally:
            self.write_hold = None
            if ends is not None and hold.is_ended and not ends.closed:
                ends.detach()  # so that it is closed and not put back: it is read-only

    def lock_waited_until(self, *, longer_than_seconds: float) -> float:
        """When the last wait for the write lock of an SQLite file ended that was longer, by the monotonic clock; 0 if
        there was none. Waits for other writers of this process count."""
        waits = list(self._lock_waits)
        return max((end for end, seconds in waits if seconds > longer_than_seconds), default=0.0)

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

    def can_commit_beside(self, connection: Connection) -> bool:
        """Whether a transaction of our own can commit while this transaction of a caller's is open, and the caller
        sees what it stored. SQLite has one writer; a snapshot (REPEATABLE READ, SERIALIZABLE) does not see it."""
        if self.is_sqlite or self.is_writing:
            return False
        return bool(execute(connection, _ISOLATION).scalar_one() == "read committed")

    def close(self) -> None:
        self.engine.dispose()
        self.session_engine.dispose()
        if self._identity is not None:
            self._identity.forget()


def open_database(url: str, *, clock: Clock, direct_url: str | None = None) -> Database:
    """Prepare a database for use. Nothing is read or written yet. `direct_url` leads to the same PostgreSQL past a
    connection pooler, for what needs a session of its own."""
    parsed = parse_url(url)
    direct = parse_url(direct_url) if direct_url else None
    match parsed.get_backend_name():
        case "sqlite":
            identity = FileIdentity(parsed.database or "")
            engine = sqlite.create_engine(parsed, clock, identity)
            return Database(engine, clock=clock, identity=identity)
        case "postgresql" | "postgres":
            return Database(
                postgresql.create_engine(parsed, clock),
                clock=clock,
                session_engine=postgresql.create_engine(direct, clock) if direct else None,
            )
        case other:
            raise invalid_url(f"{other} databases are not supported")
