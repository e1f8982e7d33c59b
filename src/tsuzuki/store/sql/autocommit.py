"""Single statements with low latency, straight to the driver: each commits by itself.

To open a transaction through SQLAlchemy costs more than a short statement, above all in a process that has just
woken up. The connections are those of the one pool. A connection that fails is not used again.
"""

from contextlib import suppress
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry

from tsuzuki.store.sql.connection_pool import ConnectionPool, pool_of

KEPT = "tsuzuki_autocommit"


class AutocommitConnection:
    """Used by one thread at a time, through `prepared.execute`."""

    def __init__(self, dialect: Dialect, pool: ConnectionPool, entry: ConnectionPoolEntry) -> None:
        self.dialect = dialect
        self._pool = pool
        self._entry = entry
        raw: Any = entry.dbapi_connection
        self.raw = raw
        """The driver's connection."""
        self._cursor = raw.cursor()

    def send(self, sql: str, values: Any = (), *, has_rows: bool = False) -> tuple[list[Any], int]:
        """Rows as the driver gives them, if it answers with any, and the row count. Raises what SQLAlchemy would
        raise."""
        cursor = self._cursor
        try:
            cursor.execute(sql, values)
            rows = cursor.fetchall() if has_rows else []
        except self.dialect.loaded_dbapi.Error as problem:
            is_lost = self.dialect.is_disconnect(problem, self.raw, cursor)
            raise _as_sqlalchemy(problem, self.dialect, sql, is_lost=is_lost) from problem
        return rows, cursor.rowcount

    @property
    def info(self) -> dict[Any, Any]:
        """What is kept with the connection."""
        return self._entry.info

    def put_back(self) -> None:
        self._pool.put_back(self._entry)

    def discard(self, problem: BaseException) -> None:
        """It failed, or is in an unknown state. If the server is lost, so is every other connection to it."""
        # A result that was not read to its end would keep an SQLite transaction open.
        with suppress(self.dialect.loaded_dbapi.Error):
            self._cursor.close()
        is_lost = isinstance(problem, DBAPIError) and problem.connection_invalidated
        self._pool.discard(self._entry, server_lost=is_lost)


def take(engine: Engine) -> AutocommitConnection:
    """From the pool of this engine."""
    pool = pool_of(engine)
    try:
        entry = pool.take()
    except engine.dialect.loaded_dbapi.Error as problem:
        raise _as_sqlalchemy(problem, engine.dialect, None, is_lost=False) from problem
    connection: AutocommitConnection | None = entry.info.get(KEPT)
    if connection is None:
        connection = entry.info[KEPT] = AutocommitConnection(engine.dialect, pool, entry)
    return connection


def _as_sqlalchemy(
    problem: Exception, dialect: Dialect, sql: str | None, *, is_lost: bool
) -> DBAPIError | Exception:
    wrapped: DBAPIError | Exception = DBAPIError.instance(
        sql,
        None,
        problem,
        dialect.loaded_dbapi.Error,
        hide_parameters=True,
        connection_invalidated=is_lost,
        dialect=dialect,
    )
    return wrapped
