"""One database, and the ways in: `read()` to look, `write()` for a transaction, `statement()` for a single one.

SQLite: WAL, `BEGIN IMMEDIATE` for writes and one writer at a time per process, so a writer waits for
its turn instead of failing half-way; other processes' writers wait on the file for `BUSY_SECONDS`.
PostgreSQL: READ COMMITTED; every guard is in the statement itself. A look, or a single statement, is not
wrapped into BEGIN and COMMIT there: that would be three round trips for one.

Whatever the driver says about a database that is away, full or read-only leaves here as
`Unreachable`, in our own words (`complaints`).
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, create_engine, event, select
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.exc import DatabaseError as SqlDatabaseError
from sqlalchemy.exc import OperationalError as SqlOperationalError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import ConfigurationError, Unreachable
from tsuzuki.store.complaints import BUSY_SECONDS, translated
from tsuzuki.store.file_watch import touch
from tsuzuki.store.line import Line, Lines
from tsuzuki.store.types import UtcTime, to_text

__all__ = ["Connection", "Database", "db_now", "open_database"]

WAL_PAUSE_SECONDS = 0.01
IDLE_TRANSACTION_SECONDS = 60
UNANSWERED_SECONDS = 10
"""Of what was sent and never arrived. Keepalives only find out about a connection on which nothing is
under way; without this the system goes on sending for a quarter of an hour, ever more rarely."""

SQLITE_OLDEST = (3, 35, 0)
SYNCHRONOUS = ("full", "normal", "off", "extra")


def db_now(offset_seconds: float | ColumnElement[float] = 0.0) -> ColumnElement[Any]:
    """The database's clock, shifted. On PostgreSQL a function of the schema (the server's time at
    the start of the statement, so that a wait for a lock never makes a lease look longer); on SQLite
    the clock this process was given, because file and process share a machine."""
    is_number = isinstance(offset_seconds, int | float)
    return _Now(float(offset_seconds) if is_number else offset_seconds)


AHEAD_SECONDS = 1.0
"""Whatever was written down as now and lies further ahead than this was written before the clock was put
back. It would look recent for as long as the clock was put back by."""


class _Now(FunctionElement[Any]):
    type = UtcTime()
    inherit_cache = True


@compiles(_Now)
def _now(element: _Now, compiler: SQLCompiler, **kw: Any) -> str:
    # A scalar subquery is asked once for a statement; a bare call would be made for every row.
    return f"(SELECT tsuzuki_now({compiler.process(element.clauses, **kw)}))"


_WHAT_TIME = select(db_now())


class _Here(threading.local):
    """Whether the thread that asks is inside a write transaction. On SQLite a second one would
    wait for the first for ever; on PostgreSQL for as soon as both touch the same row."""

    writes = False


class Database:
    """Opened with `open_database`; shared by all threads of a process."""

    def __init__(self, engine: Engine, *, clock: Clock) -> None:
        self.engine = engine
        self.clock = clock
        self._at_once = (
            engine if self.is_sqlite else engine.execution_options(isolation_level="AUTOCOMMIT")
        )
        self._log = Path(f"{self.path}-wal") if self.is_sqlite else None
        self._lines = Lines(engine)
        self._writer = threading.Lock()
        self._here = _Here()

    @property
    def is_sqlite(self) -> bool:
        return self.engine.dialect.name == "sqlite"

    @property
    def path(self) -> Path | None:
        """The file of an SQLite database."""
        return (
            Path(self.engine.url.database) if self.is_sqlite and self.engine.url.database else None
        )

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Only to look. What it sees is of one moment (SQLite) or of one per statement."""
        with translated(self.engine.url), self._at_once.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def stream(self) -> Iterator[Connection]:
        """To look at more than fits into memory: a transaction, which a server's cursor needs."""
        with translated(self.engine.url), self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that is committed on leaving, or rolled back if anything is raised."""
        with translated(self.engine.url), self._turn(), self.engine.connect() as connection:
            connection.execution_options(tsuzuki_write=True)
            with connection.begin():
                yield connection
            if self._log is not None:
                touch(self._log)

    @contextmanager
    def statement(self) -> Iterator[Line]:
        """For one statement that changes something, after a look perhaps: on PostgreSQL each statement is
        committed when it has been answered, on SQLite they are one transaction."""
        with translated(self.engine.url), self._turn():
            line = self._lines.take()
            try:
                if self._log is not None:
                    line.send("BEGIN IMMEDIATE")
                yield line
                if self._log is not None:
                    line.send("COMMIT")
                    touch(self._log)
            except BaseException as problem:
                self._lines.give_up(line, problem)
                raise
            self._lines.give_back(line)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if self._here.writes:
            raise RuntimeError("a write transaction was opened inside another one")
        with self._writer if self.is_sqlite else nullcontext():
            self._here.writes = True
            try:
                yield
            finally:
                self._here.writes = False

    def now(self, connection: Connection) -> datetime:
        """The database's clock, for decisions that all processes must agree on."""
        if self.is_sqlite:
            return self.clock.now()
        moment: datetime = connection.execute(_WHAT_TIME).scalar_one()
        return moment

    def adopt(self, connection: Connection) -> None:
        """Let our statements run on a connection that somebody else opened to the same database."""
        if self.is_sqlite:
            _lend_clock(connection.connection.driver_connection, self.clock)

    def close(self) -> None:
        self._lines.close()
        self.engine.dispose()


def open_database(url: str, *, clock: Clock) -> Database:
    """Prepare a database for use. Nothing is read or written yet."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise _not_a_url("the database URL cannot be read") from None
    match parsed.get_backend_name():
        case "sqlite":
            return Database(_sqlite_engine(parsed, clock), clock=clock)
        case "postgresql" | "postgres":
            return Database(_postgres_engine(parsed), clock=clock)
        case other:
            raise _not_a_url(f"{other} is not a database Tsuzuki can use")


def _not_a_url(problem: str) -> ConfigurationError:
    return ConfigurationError(
        problem,
        hint="Write sqlite:///path/to/file.db or postgresql://user@host/name.",
        code="database_url",
    )


def _sqlite_engine(url: URL, clock: Clock) -> Engine:
    if sqlite3.sqlite_version_info < SQLITE_OLDEST:
        raise Unreachable(
            f"this Python brings SQLite {sqlite3.sqlite_version}, which is too old",
            hint="Use a Python built with SQLite 3.35 or newer, or PostgreSQL.",
            code="sqlite_too_old",
        )
    if url.database in (None, "", ":memory:"):
        raise _not_a_url("an SQLite database needs a file, which several processes can share")
    synchronous = str(url.query.get("synchronous", "full")).lower()
    if synchronous not in SYNCHRONOUS:
        raise ConfigurationError(
            f"synchronous={synchronous} is not known",
            hint=f"Use one of: {', '.join(SYNCHRONOUS)}.",
            code="database_url",
        )
    engine = create_engine(
        url.difference_update_query(["synchronous"]),
        connect_args={"timeout": BUSY_SECONDS},
        pool_size=8,
        max_overflow=16,
        pool_use_lifo=True,
    )

    @event.listens_for(engine, "connect")
    def prepare(raw: sqlite3.Connection, _record: object) -> None:
        raw.isolation_level = None  # we say BEGIN ourselves
        _lend_clock(raw, clock)
        _use_wal(raw)
        for pragma in (
            f"synchronous = {synchronous}",
            "foreign_keys = ON",
            "temp_store = MEMORY",
            "cache_size = -16000",
            "journal_size_limit = 67108864",
        ):
            raw.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("tsuzuki_write", False)
        # Straight to the driver: the way through the library takes longer than all of it.
        raw: Any = connection.connection.driver_connection
        order = "BEGIN IMMEDIATE" if writes else "BEGIN"
        try:
            raw.execute(order)
        except sqlite3.OperationalError as problem:
            raise SqlOperationalError(order, None, problem) from problem
        except sqlite3.DatabaseError as problem:
            raise SqlDatabaseError(order, None, problem) from problem

    return engine


def _lend_clock(raw: Any, clock: Clock) -> None:
    raw.create_function(
        "tsuzuki_now", 1, lambda offset: to_text(clock.now() + timedelta(seconds=offset))
    )


def _use_wal(raw: sqlite3.Connection) -> None:
    """Switch the file to WAL, which it stays in. Only the first connection ever has to; SQLite does
    not wait by itself when several try at once, so we do."""
    pause = threading.Event()
    for _ in range(int(BUSY_SECONDS / WAL_PAUSE_SECONDS)):
        try:
            if raw.execute("PRAGMA journal_mode = WAL").fetchone()[0] in ("wal", "memory"):
                return
        except sqlite3.OperationalError as problem:
            if "locked" not in str(problem):
                raise
        pause.wait(WAL_PAUSE_SECONDS)
    raise sqlite3.OperationalError("database is locked")


def _postgres_engine(url: URL) -> Engine:
    connect_timeout = str(url.query.get("connect_timeout", 5))
    if not connect_timeout.isdecimal():
        raise _not_a_url("connect_timeout is a whole number of seconds")
    try:
        engine = create_engine(
            url.set(drivername="postgresql+psycopg"),
            connect_args={
                "connect_timeout": int(connect_timeout),
                "application_name": "tsuzuki",
                "keepalives_idle": 15,
                "keepalives_interval": 5,
                "keepalives_count": 3,
                "prepare_threshold": 2,
                "tcp_user_timeout": UNANSWERED_SECONDS * 1000,
            },
            pool_size=8,
            max_overflow=16,
            pool_timeout=30,
            # The connection used last knows its statements already, prepared and planned.
            pool_use_lifo=True,
        )
    except (ModuleNotFoundError, NoSuchModuleError):
        raise ConfigurationError(
            "PostgreSQL is asked for, but its driver is not installed",
            hint="Install it with: pip install 'tsuzuki[postgres]'",
            code="driver_missing",
        ) from None

    @event.listens_for(engine, "connect")
    def prepare(raw: Any, _record: object) -> None:
        # Whoever dies, or is paused, inside a transaction must not hold its rows for ever: the
        # server ends such a session, and notices a host that is gone without a word.
        raw.execute(
            f"SET idle_in_transaction_session_timeout = '{IDLE_TRANSACTION_SECONDS}s';"
            " SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5;"
            " SET tcp_keepalives_count = 3;"
            # The rows of a queue are in memory. At the price of a spinning disk a plan would rather
            # read and sort all that waits than walk along the index that has it in order.
            " SET random_page_cost = 1.1"
        )
        raw.commit()

    return engine
