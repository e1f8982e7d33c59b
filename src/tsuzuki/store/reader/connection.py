"""A driver's connection for reading: `sqlite3`, or `psycopg` in autocommit mode."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import quote

LOCK_TIMEOUT_SECONDS = 0.5
CONNECT_TIMEOUT_SECONDS = 2
"""Both short: the ordinary way waits longer, and says what it waits for."""


class CannotRead(Exception):
    """The short way does not lead there. No error for a user: the ordinary way is tried instead."""


Send = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]
"""Send a statement with its values; rows as the driver gives them."""


@contextmanager
def connect(url: str) -> Iterator[tuple[Send, bool]]:
    """A way to send, and whether it is SQLite. Both raise `CannotRead` for any error of the driver."""
    scheme, _, rest = url.partition("://")
    if scheme == "sqlite" and rest.startswith("/"):
        with closing(_open_sqlite(rest[1:])) as raw:
            send = _sender(lambda sql, values: raw.execute(sql, values).fetchall(), sqlite3.Error)
            send("BEGIN", ())
            yield send, True
    elif scheme.startswith("postgresql"):
        with _open_postgresql(f"postgresql://{rest}") as send:
            yield send, False
    else:
        raise CannotRead(f"{scheme} is no database of ours")


def _open_sqlite(location: str) -> sqlite3.Connection:
    path, _, query = location.partition("?")
    if query and not query.startswith("synchronous="):
        raise CannotRead("the parameters of the URL matter")
    try:
        # Never make a file: there is none to read from.
        return sqlite3.connect(
            f"file:{quote(path)}?mode=rw",
            uri=True,
            timeout=LOCK_TIMEOUT_SECONDS,
            isolation_level=None,
        )
    except sqlite3.Error as problem:
        raise CannotRead(str(problem)) from problem


@contextmanager
def _open_postgresql(url: str) -> Iterator[Send]:
    try:
        import psycopg  # noqa: PLC0415 -- an extra, and slow to load
    except ImportError as problem:
        raise CannotRead(str(problem)) from problem
    hosts = url.partition("://")[2].partition("/")[0].rpartition("@")[2]
    needs_primary = "," in hosts and "target_session_attrs" not in url
    try:
        raw = psycopg.connect(
            url,
            autocommit=True,
            connect_timeout=CONNECT_TIMEOUT_SECONDS,
            application_name="tsuzuki",
            prepare_threshold=None,
            target_session_attrs="read-write" if needs_primary else None,
        )
    except psycopg.Error as problem:
        raise CannotRead(str(problem)) from problem
    with closing(raw):
        # In our texts a `?` is always a value, and there is no `%`.
        yield _sender(
            lambda sql, values: raw.execute(sql.replace("?", "%s").encode(), values).fetchall(),
            psycopg.Error,
        )


def _sender(send: Send, driver_error: type[Exception]) -> Send:
    def translated(sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        try:
            return send(sql, values)
        except driver_error as problem:
            raise CannotRead(str(problem)) from problem

    return translated
