"""Listeners for the wake-ups that other processes commit, one per process.

PostgreSQL: a connection of its own that blocks on LISTEN. SQLite: every commit touches the write-ahead
log, and inotify wakes the listener; `PRAGMA data_version` is the fallback.
"""

import secrets
import select
import sqlite3
import threading
from collections.abc import Collection
from typing import Any, Protocol

from sqlalchemy.exc import DBAPIError

from tsuzuki.model.errors import NotListening, Unreachable
from tsuzuki.store.sql.database import Database
from tsuzuki.store.sql.driver_errors import translate_errors
from tsuzuki.store.sql.postgresql import POOLED
from tsuzuki.store.wakeups.channels import ALL_CHANNELS, WakeupChannel, recipients
from tsuzuki.store.wakeups.file_watch import watch

NOTIFIED_SECONDS = 2.0
"""How long a notification may take through a pooler."""

POLL_SECONDS = 0.01
"""How often to poll an SQLite file where inotify is not available."""

WATCHED_POLL_SECONDS = 0.1
"""How often to poll where it is: for commits of other programs, and to be able to stop waiting."""


class Listener(Protocol):
    """Used by one thread."""

    def wait(self, seconds: float) -> Collection[str]:
        """Wait at most that long; answer what should poll now: channels, or workers by name.
        Raises `Unreachable`."""

    def close(self) -> None: ...


def listen(database: Database, channels: Collection[WakeupChannel] = ALL_CHANNELS) -> Listener:
    """Start to listen: commits from now on wake it, on these channels at least."""
    with translate_errors(database.session_engine.url):
        if database.is_sqlite:
            return SqliteListener(database)
        return PostgresListener(database, channels)


class SqliteListener:
    """Reads the counters when the log was touched. The poll reads the file's change counter first, which
    is shared memory: no query, no lock."""

    def __init__(self, database: Database) -> None:
        self._clock = database.clock
        self._never = threading.Event()
        self._connection = database.engine.connect()
        raw: Any = self._connection.connection.driver_connection
        self._raw: sqlite3.Connection = raw
        self._seen_version = self._data_version()
        self._seen_counters = self._counters()
        # The log stays the same file while any connection, such as this one, is open.
        self._watch = watch([database.write_ahead_log])

    def wait(self, seconds: float) -> Collection[WakeupChannel]:
        if self._watch is None:
            self._clock.wait(self._never, min(seconds, POLL_SECONDS))
        elif self._watch.wait(min(seconds, WATCHED_POLL_SECONDS)):
            return self._notified()
        return self._notified() if self._has_changed() else ()

    def _has_changed(self) -> bool:
        before, self._seen_version = self._seen_version, self._data_version()
        return before != self._seen_version

    def _notified(self) -> Collection[WakeupChannel]:
        before, self._seen_counters = self._seen_counters, self._counters()
        return frozenset(c for c in WakeupChannel if before.get(c) != self._seen_counters.get(c))

    def _counters(self) -> dict[str, int]:
        return dict(self._query("SELECT audience, stamp FROM tsuzuki_notices"))

    def _data_version(self) -> int:
        return int(self._query("PRAGMA data_version")[0][0])

    def _query(self, sql: str) -> list[Any]:
        try:
            return self._raw.execute(sql).fetchall()
        except sqlite3.Error as problem:
            raise Unreachable(f"cannot watch the database file: {problem}") from problem

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()
        self._connection.close()


class PostgresListener:
    """Blocks on NOTIFY. Raises `NotListening` if no notification can arrive."""

    def __init__(self, database: Database, channels: Collection[WakeupChannel]) -> None:
        self._connection = database.session_engine.connect()
        is_pooled = self._connection.info.get(POOLED)
        raw: Any = self._connection.connection.driver_connection
        # Out of the pool: a connection that listens must never be lent to other code.
        self._connection.detach()
        self._raw = raw
        try:
            self._listen(channels)
            is_notified = not is_pooled or self._is_notified(database)
        except BaseException as problem:
            self.close()
            if isinstance(problem, database.engine.dialect.loaded_dbapi.Error):
                raise _lost(problem) from problem
            raise
        if not is_notified:
            self.close()
            raise NotListening(
                "the database's connection pooler does not forward notifications (transaction mode)",
                hint="Set TSUZUKI_DATABASE_DIRECT_URL to bypass it. Until then, new work is found by "
                "polling.",
                code="listen_pooled",
            )

    def _listen(self, channels: Collection[WakeupChannel]) -> None:
        self._raw.autocommit = True
        for channel in channels:
            self._raw.execute(f'LISTEN "{channel.value}"')

    def _is_notified(self, database: Database) -> bool:
        """Whether a notification that is sent on another connection arrives here: through a pooler LISTEN succeeds,
        but in transaction mode the session that listens is not kept for us."""
        channel = f"tsuzuki_{secrets.token_hex(8)}"
        self._raw.execute(f'LISTEN "{channel}"')
        with database.statement() as connection:
            connection.send(f"NOTIFY {channel}")
        arriving = self._raw.notifies(timeout=NOTIFIED_SECONDS)
        is_notified = any(notification.channel == channel for notification in arriving)
        arriving.close()  # it locks the connection
        self._raw.execute(f'UNLISTEN "{channel}"')
        return is_notified

    def wait(self, seconds: float) -> Collection[str]:
        """The driver's own wait wakes up ten times a second, also if nothing arrives: ours sleeps on the socket."""
        try:
            notifications = self._received()
            if not notifications and self._arrives_within(seconds):
                notifications = self._received()
        except Exception as problem:
            raise _lost(problem) from problem
        return frozenset(
            name
            for notification in notifications
            for name in recipients(WakeupChannel(notification.channel), notification.payload)
        )

    def _received(self) -> list[Any]:
        return list(self._raw.notifies(timeout=0))

    def _arrives_within(self, seconds: float) -> bool:
        """Whether the server has sent something, or has closed the connection."""
        arriving = select.poll()
        arriving.register(self._raw.fileno(), select.POLLIN)
        return bool(arriving.poll(seconds * 1000))

    def close(self) -> None:
        try:
            self._connection.close()
        except DBAPIError:
            self._connection.invalidate()


def _lost(problem: Exception) -> Unreachable:
    return Unreachable(f"the LISTEN connection was lost: {problem}")
