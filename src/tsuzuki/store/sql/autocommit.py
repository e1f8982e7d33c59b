"""Connections in autocommit mode, outside SQLAlchemy's pool, for single statements with low latency.

Taking a connection from the pool and opening a transaction on it costs more than a short statement, above
all in a process that has just woken up. A connection that fails is not used again; if it lost the server,
every other idle connection is dropped with it.
"""

from collections import deque
from contextlib import suppress
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from tsuzuki.store.sql.dialect import is_sqlite

IDLE_CONNECTIONS_MAX = 8
"""How many are kept open while unused."""


class AutocommitConnection:
    """Used by one thread at a time, through `prepared.execute`."""

    def __init__(self, engine: Engine, generation: int) -> None:
        self.dialect = engine.dialect
        self.generation = generation
        self._pooled = engine.connect()
        raw: Any = self._pooled.connection.driver_connection
        # Out of the pool: a connection that is set up like this must never be lent to other code.
        self._pooled.detach()
        if not is_sqlite(self.dialect):
            raw.autocommit = True
        self._raw = raw
        self._cursor = raw.cursor()

    def send(self, sql: str, values: Any = ()) -> tuple[list[Any], int]:
        """Rows as the driver gives them, and the row count. Raises what SQLAlchemy would raise."""
        cursor = self._cursor
        try:
            cursor.execute(sql, values)
            rows = cursor.fetchall() if cursor.description else []
        except self.dialect.loaded_dbapi.Error as problem:
            raise DBAPIError.instance(
                sql,
                None,
                problem,
                self.dialect.loaded_dbapi.Error,
                hide_parameters=True,
                connection_invalidated=self.dialect.is_disconnect(problem, self._raw, cursor),
                dialect=self.dialect,
            ) from problem
        return rows, cursor.rowcount

    def close(self) -> None:
        # A result that was not read to its end would keep an SQLite transaction open.
        with suppress(self.dialect.loaded_dbapi.Error):
            self._cursor.close()
        with suppress(DBAPIError):
            self._pooled.close()


class AutocommitPool:
    """Idle connections, last in first out: the one used last has its statements prepared."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._generation = 0
        self._idle: deque[AutocommitConnection] = deque()

    def take(self) -> AutocommitConnection:
        try:
            return self._idle.pop()
        except IndexError:
            return AutocommitConnection(self._engine, self._generation)

    def put_back(self, connection: AutocommitConnection) -> None:
        is_current = connection.generation == self._generation
        if is_current and len(self._idle) < IDLE_CONNECTIONS_MAX:
            self._idle.append(connection)
        else:
            connection.close()

    def discard(self, connection: AutocommitConnection, problem: BaseException) -> None:
        """It failed, or is in an unknown state. If the server is lost, so is every other connection to
        it, also those in SQLAlchemy's pool."""
        connection.close()
        if isinstance(problem, DBAPIError) and problem.connection_invalidated:
            self.close()
            self._engine.dispose()

    def close(self) -> None:
        """Those in use are closed when they are put back."""
        self._generation += 1
        while self._idle:
            try:
                self._idle.pop().close()
            except IndexError:
                return
