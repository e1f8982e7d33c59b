"""The open transaction of a caller, in whatever library it was opened, as a connection for our statements.

Never committed, rolled back or closed here: that is the caller's. What cannot take part is refused with the reason.
"""

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import sqlalchemy
from sqlalchemy import Connection, Engine
from sqlalchemy.pool import NullPool

from tsuzuki.model.errors import UsageError
from tsuzuki.store.sql.database import Database
from tsuzuki.store.sql.dialect import is_sqlite

if TYPE_CHECKING:
    import psycopg
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
    from sqlalchemy.orm import Session, scoped_session


class DjangoConnection(Protocol):
    """`django.db.connection`, inside `transaction.atomic()`."""

    @property
    def in_atomic_block(self) -> bool: ...
    def ensure_connection(self) -> None: ...


if TYPE_CHECKING:
    SyncConnection: TypeAlias = (
        Connection
        | Session
        | scoped_session[Session]
        | psycopg.Connection[Any]
        | sqlite3.Connection
        | DjangoConnection
    )
    CallerConnection: TypeAlias = SyncConnection | AsyncConnection | AsyncSession
else:  # these libraries are loaded by those who use them
    SyncConnection = CallerConnection = Any
"""What a caller can have a transaction on. The asynchronous ones only for asynchronous calls."""


@contextmanager
def borrowed(caller: CallerConnection, database: Database) -> Iterator[Connection]:
    """The caller's connection while the block runs. Raises `UsageError` if its transaction cannot have our rows."""
    found: Any = caller
    if hasattr(found, "run_sync"):
        raise _refused("it is asynchronous", "Submit with submit_async().", "connection_async")
    if hasattr(found, "in_atomic_block"):  # Django
        if not found.in_atomic_block:
            raise _not_in_transaction("Submit inside `with transaction.atomic():`.")
        found.ensure_connection()
        found = found.connection
    if isinstance(found, Connection):
        yield _checked(found, database)
    elif (session := _session(found)) is not None:
        yield _checked(session.connection(), database)
    elif isinstance(found, sqlite3.Connection) or _is_psycopg(found):
        with _lent(found, database) as connection:
            yield connection
    else:
        raise _refused(
            f"a {type(found).__module__}.{type(found).__qualname__} is not known",
            "Use an SQLAlchemy connection or session, a psycopg or sqlite3 connection, or Django's connection.",
            "connection_unknown",
        )


def _session(found: Any) -> Any:
    """An SQLAlchemy session; None if it is something else. Whoever has one has loaded the module."""
    orm = sys.modules.get("sqlalchemy.orm")
    if orm is None:
        return None
    if isinstance(found, orm.scoped_session):
        return found()
    return found if isinstance(found, orm.Session) else None


def _is_psycopg(found: Any) -> bool:
    psycopg = sys.modules.get("psycopg")
    if psycopg is not None and isinstance(found, psycopg.AsyncConnection):
        raise _refused(
            "an asynchronous psycopg connection cannot send our statements",
            "Use an SQLAlchemy AsyncSession or AsyncConnection, or a psycopg.Connection.",
            "connection_async",
        )
    return psycopg is not None and isinstance(found, psycopg.Connection)


def _checked(connection: Connection, database: Database) -> Connection:
    if connection.dialect.driver == "aiosqlite":
        raise _refused(
            "aiosqlite executes statements in a thread of its own, where our functions cannot be registered",
            "Submit after the commit, or use a sync connection.",
            "connection_async",
        )
    _check_database(connection, database)
    if _commits_each_statement(connection.connection.driver_connection):
        raise _not_in_transaction("Use a connection without isolation_level AUTOCOMMIT.")
    return connection


def _commits_each_statement(raw: Any) -> bool:
    """Whether a driver's connection is in autocommit mode, and no transaction was begun by a statement."""
    if isinstance(raw, sqlite3.Connection):
        return raw.isolation_level is None and not raw.in_transaction
    psycopg = sys.modules.get("psycopg")
    if psycopg is None or not isinstance(raw, psycopg.Connection | psycopg.AsyncConnection):
        return False
    return bool(raw.autocommit and raw.info.transaction_status.name == "IDLE")


def _check_database(connection: Connection, database: Database) -> None:
    if is_sqlite(connection.dialect) != database.is_sqlite:
        raise _other_database()
    if database.path is not None:
        files = connection.exec_driver_sql("PRAGMA database_list").all()
        path = next((file for _, name, file in files if name == "main"), "")
        if not path or not Path(path).exists() or not Path(path).samefile(database.path):
            raise _other_database()


# --- a driver's own connection ------------------------------------------------------------------

_LENT: "ContextVar[_Lent]" = ContextVar("tsuzuki_lent")


class _Lent:
    """A driver's connection for SQLAlchemy, which may neither end its transaction nor change or close it."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw

    def cursor(self, *arguments: Any, **named: Any) -> Any:
        """Rows are tuples, whatever the caller's connection makes of them."""
        cursor = self._raw.cursor(*arguments, **named)
        if isinstance(self._raw, sqlite3.Connection):
            cursor.row_factory = None
        else:
            from psycopg.rows import tuple_row  # noqa: PLC0415 -- loaded by its connection

            cursor.row_factory = tuple_row
        return cursor

    def _do_nothing(self, *_arguments: Any) -> None:
        """It is the caller's."""

    commit = rollback = close = add_notice_handler = _do_nothing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)


@cache
def _lending_engine(url: str, **options: Any) -> Engine:
    return sqlalchemy.create_engine(
        url, creator=_LENT.get, poolclass=NullPool, hide_parameters=True, **options
    )


@contextmanager
def _lent(raw: Any, database: Database) -> Iterator[Connection]:
    if _commits_each_statement(raw):
        raise _not_in_transaction("Begin a transaction first.")
    if isinstance(raw, sqlite3.Connection):
        engine = _lending_engine("sqlite://")
    else:
        engine = _lending_engine("postgresql+psycopg://", use_native_hstore=False)
    token = _LENT.set(_Lent(raw))
    try:
        with engine.connect() as connection:
            _check_database(connection, database)
            yield connection
    finally:
        _LENT.reset(token)


# --- refusals -----------------------------------------------------------------------------------


def _refused(why: str, hint: str, code: str) -> UsageError:
    return UsageError(
        f"this connection cannot be submitted in, because {why}", hint=hint, code=code
    )


def _not_in_transaction(hint: str) -> UsageError:
    return _refused("it has no open transaction", hint, "connection_autocommit")


def _other_database() -> UsageError:
    return _refused(
        "it is to another database", "Use the database of Tsuzuki.", "connection_other_database"
    )
