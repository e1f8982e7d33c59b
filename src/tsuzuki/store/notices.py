"""Wake-ups between processes. Hints only: a lost one costs a poll interval, never a run.

Called are an audience, or workers by their names: in a large fleet most have nothing to do with what one was given.

PostgreSQL: NOTIFY, sent with the commit; one listening connection per process.
SQLite: whoever has committed touches the write-ahead log, of which the kernel tells; `PRAGMA data_version` says
that something was committed, and the table `notices` for whom.
"""

import sqlite3
import threading
from collections.abc import Collection
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import Executable, Text, bindparam, func, select, update
from sqlalchemy.exc import DBAPIError

from tsuzuki.model.errors import Unreachable
from tsuzuki.store.complaints import translated
from tsuzuki.store.database import Database
from tsuzuki.store.file_watch import watch
from tsuzuki.store.line import Sender
from tsuzuki.store.tables import notices as stamps


class Audience(StrEnum):
    """Who should look."""

    LEADER = "tsuzuki_leader"
    """There is something to give out, or room for it."""

    WORKERS = "tsuzuki_workers"
    """Something was taken back, or given to more of them than can be named."""


EVERYBODY = frozenset(Audience)

NAMES_BYTES_MAX = 7_000
"""What PostgreSQL carries of names with a notice, and something to spare. When there are more, all are called."""

LOOK_SECONDS = 0.01
"""How often to look at an SQLite file where nobody tells that something was committed."""

TOLD_SECONDS = 0.1
"""How often to look where somebody tells: a net for what others than we commit, and a chance to stop waiting."""


_FOR = bindparam("for", type_=Text())
_NOTIFY: dict[str, Executable] = {
    "postgresql": select(func.pg_notify(_FOR, bindparam("whom", type_=Text()))),
    "sqlite": update(stamps).where(stamps.c.audience == _FOR).values(stamp=stamps.c.stamp + 1),
}


def notify(connection: Sender, *names: str) -> None:
    """Tell other processes when this transaction commits. On SQLite all workers hear what one is told."""
    dialect = connection.dialect.name
    for audience, whom in calls(names).items():
        said = {"for": audience.value, "whom": whom}
        connection.execute(
            _NOTIFY[dialect], said if dialect == "postgresql" else {"for": said["for"]}
        )


def calls(names: Collection[str]) -> dict[Audience, str]:
    """On which channel to call, and whom there: the names of workers, or nobody's for everybody."""
    called = {audience: "" for audience in Audience if audience in names}
    workers = " ".join(sorted(set(names) - EVERYBODY))
    if workers and Audience.WORKERS not in called:
        called[Audience.WORKERS] = workers if len(workers.encode()) <= NAMES_BYTES_MAX else ""
    return called


def called_by(audience: Audience, whom: str) -> Collection[str]:
    """Back from what was heard on a channel to the names that were called."""
    return whom.split() or {audience}


class Listener(Protocol):
    """One process's ear. Used by one thread."""

    def wait(self, seconds: float) -> Collection[str]:
        """Wait at most that long; answer who should look now: audiences, or workers by their names.
        Raises `Unreachable`."""

    def close(self) -> None: ...


def listen(database: Database, audiences: Collection[Audience] = EVERYBODY) -> Listener:
    """Begin to listen: what is committed from now on is heard. What is said to others than these may go
    unheard."""
    with translated(database.engine.url):
        if database.is_sqlite:
            return SqliteListener(database)
        return PostgresListener(database, audiences)


class SqliteListener:
    """Looks whenever the log was touched; and from time to time, where the kernel does not tell, at the
    file's change counter, a read of shared memory without a query or a lock."""

    def __init__(self, database: Database) -> None:
        self._clock = database.clock
        self._never = threading.Event()
        self._connection = database.engine.connect()
        raw: Any = self._connection.connection.driver_connection
        self._raw: sqlite3.Connection = raw
        self._seen = self._version()
        self._stamps = self._read_stamps()
        # The log stays the same file for as long as anybody, such as we, has the database open.
        self._watch = watch([Path(f"{database.path}-wal")])

    def wait(self, seconds: float) -> Collection[Audience]:
        if self._watch is None:
            self._clock.wait(self._never, min(seconds, LOOK_SECONDS))
        elif self._watch.wait(min(seconds, TOLD_SECONDS)):
            return self._news()
        return self._news() if self._has_changed() else ()

    def _has_changed(self) -> bool:
        seen, self._seen = self._seen, self._version()
        return seen != self._seen

    def _news(self) -> Collection[Audience]:
        before, self._stamps = self._stamps, self._read_stamps()
        return frozenset(who for who in Audience if before.get(who) != self._stamps.get(who))

    def _read_stamps(self) -> dict[str, int]:
        return dict(self._ask("SELECT audience, stamp FROM notices"))

    def _version(self) -> int:
        return int(self._ask("PRAGMA data_version")[0][0])

    def _ask(self, question: str) -> list[Any]:
        try:
            return self._raw.execute(question).fetchall()
        except sqlite3.Error as problem:
            raise Unreachable(f"the database file cannot be watched: {problem}") from problem

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()
        self._connection.close()


class PostgresListener:
    """Blocks on the server's notices."""

    def __init__(self, database: Database, audiences: Collection[Audience]) -> None:
        self._connection = database.engine.connect()
        raw: Any = self._connection.connection.driver_connection
        # Out of the pool: a connection that listens must never be lent to anybody else.
        self._connection.detach()
        raw.autocommit = True
        for audience in audiences:
            raw.execute(f'LISTEN "{audience.value}"')
        self._raw = raw

    def wait(self, seconds: float) -> Collection[str]:
        try:
            notices = list(self._raw.notifies(timeout=seconds, stop_after=1))
        except Exception as problem:
            raise Unreachable(f"the database stopped talking: {problem}") from problem
        return frozenset(
            name
            for notice in notices
            for name in called_by(Audience(notice.channel), notice.payload)
        )

    def close(self) -> None:
        try:
            self._connection.close()
        except DBAPIError:
            self._connection.invalidate()
