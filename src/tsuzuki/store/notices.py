"""Wake-ups between processes. Hints only: a lost one costs a poll interval, never a run.

PostgreSQL: NOTIFY without payload, sent with the commit; one listening connection per process.
SQLite: `PRAGMA data_version` tells that another process has committed something.
"""

import sqlite3
from collections.abc import Collection
from enum import StrEnum
from typing import Any, Protocol

from sqlalchemy import Connection, func, select
from sqlalchemy.exc import DBAPIError

from tsuzuki.model.errors import Unreachable
from tsuzuki.store.database import Database, translated


class Audience(StrEnum):
    """Who should look."""

    LEADER = "tsuzuki_leader"
    """There is something to give out, or room for it."""

    WORKERS = "tsuzuki_workers"
    """Something was given out, or taken back."""


EVERYBODY = frozenset(Audience)


def notify(connection: Connection, audience: Audience) -> None:
    """Tell other processes when this transaction commits. SQLite's file tells by itself."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_notify(audience.value, "")))


class Listener(Protocol):
    """One process's ear. Used by one thread."""

    def wait(self, seconds: float) -> Collection[Audience]:
        """Wait at most that long; answer who should look now. Raises `Unreachable`."""

    def close(self) -> None: ...


def listen(database: Database) -> Listener:
    """Begin to listen: what is committed from now on is heard."""
    with translated(database.engine.url):
        return SqliteListener(database) if database.is_sqlite else PostgresListener(database)


class SqliteListener:
    """Looks at the file's change counter: a read of shared memory, no query and no lock."""

    def __init__(self, database: Database) -> None:
        self._connection = database.engine.connect()
        raw: Any = self._connection.connection.driver_connection
        self._raw: sqlite3.Connection = raw
        self._seen = self._version()

    def wait(self, seconds: float) -> Collection[Audience]:
        del seconds  # the caller paces itself: there is nothing here to block on
        try:
            version = self._version()
        except sqlite3.Error as problem:
            raise Unreachable(f"the database file cannot be watched: {problem}") from problem
        if version == self._seen:
            return ()
        self._seen = version
        return EVERYBODY

    def _version(self) -> int:
        return int(self._raw.execute("PRAGMA data_version").fetchone()[0])

    def close(self) -> None:
        self._connection.close()


class PostgresListener:
    """Blocks on the server's notices."""

    def __init__(self, database: Database) -> None:
        self._connection = database.engine.connect()
        raw: Any = self._connection.connection.driver_connection
        # Out of the pool: a connection that listens must never be lent to anybody else.
        self._connection.detach()
        raw.autocommit = True
        for audience in Audience:
            raw.execute(f'LISTEN "{audience.value}"')
        self._raw = raw

    def wait(self, seconds: float) -> Collection[Audience]:
        try:
            notices = list(self._raw.notifies(timeout=seconds, stop_after=1))
        except Exception as problem:
            raise Unreachable(f"the database stopped talking: {problem}") from problem
        return frozenset(Audience(notice.channel) for notice in notices)

    def close(self) -> None:
        try:
            self._connection.close()
        except DBAPIError:
            self._connection.invalidate()
