"""Wake-ups between processes. Hints only: a lost one costs a poll interval, never a run.

PostgreSQL: NOTIFY without payload, sent with the commit; one listening connection per process.
SQLite: the kernel tells that the write-ahead log was written to, and `PRAGMA data_version` that
something was committed.
"""

import sqlite3
import threading
from collections.abc import Collection
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import Connection, Text, bindparam, func, select
from sqlalchemy.exc import DBAPIError

from tsuzuki.model.errors import Unreachable
from tsuzuki.store.database import Database, translated
from tsuzuki.store.file_watch import watch


class Audience(StrEnum):
    """Who should look."""

    LEADER = "tsuzuki_leader"
    """There is something to give out, or room for it."""

    WORKERS = "tsuzuki_workers"
    """Something was given out, or taken back."""


EVERYBODY = frozenset(Audience)

LOOK_SECONDS = 0.01
"""How often to look at an SQLite file where nobody tells that it was written to."""

TOLD_SECONDS = 0.1
"""How often to look where somebody tells: a net, and a chance to stop waiting."""

STORED_FIRST_SECONDS, STORED_LAST_SECONDS, STORED_GROWTH = 0.0002, 0.05, 1.2
"""The pauses between two looks after a write: as a disk is quick or slow, from the first to the last."""

TOGETHER_SECONDS = 0.001
"""Changes of an SQLite file within this time are one."""


_NOTIFY = select(func.pg_notify(bindparam("audience", type_=Text()), ""))


def notify(connection: Connection, audience: Audience) -> None:
    """Tell other processes when this transaction commits. SQLite's file tells by itself."""
    if connection.dialect.name == "postgresql":
        connection.execute(_NOTIFY, {"audience": audience.value})


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
    """Looks at the file's change counter, a read of shared memory without a query or a lock, whenever
    the log was written to; and from time to time, where the kernel does not tell."""

    def __init__(self, database: Database) -> None:
        self._clock = database.clock
        self._never = threading.Event()
        self._connection = database.engine.connect()
        raw: Any = self._connection.connection.driver_connection
        self._raw: sqlite3.Connection = raw
        self._seen = self._version()
        # The log stays the same file for as long as anybody, such as we, has the database open.
        self._watch = watch([Path(f"{database.path}-wal")])

    def wait(self, seconds: float) -> Collection[Audience]:
        if self._watch is None:
            self._clock.wait(self._never, min(seconds, LOOK_SECONDS))
            found = self._look()
        elif self._watch.wait(min(seconds, TOLD_SECONDS)):
            found = self._look_until_stored()
        else:
            found = self._look()
        if found:
            # What comes in quick succession is told once.
            self._clock.wait(self._never, TOGETHER_SECONDS)
        return found

    def _look_until_stored(self) -> Collection[Audience]:
        """The kernel tells that a writer has begun to write. What it wrote is seen only when all of it
        is on the disk, and of that nobody tells."""
        pause = STORED_FIRST_SECONDS
        while not (found := self._look()) and pause < STORED_LAST_SECONDS:
            self._clock.wait(self._never, pause)
            pause *= STORED_GROWTH
        return found

    def _look(self) -> Collection[Audience]:
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
        if self._watch is not None:
            self._watch.close()
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
