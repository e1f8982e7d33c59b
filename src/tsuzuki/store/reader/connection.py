"""A driver's connection for reading: `sqlite3`, or `psycopg` in autocommit mode."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
    """A way to send, and whether it is SQLite. Raises `CannotRead` for any error of the driver, inside the block
    too."""
    scheme, _, rest = url.partition("://")
    if scheme == "sqlite" and rest.startswith("/"):
        with _sqlite(rest[1:]) as send:
            yield send, True
    elif scheme.startswith("postgresql"):
        with _postgresql(f"postgresql://{rest}") as send:
            yield send, False
    else:
        raise CannotRead(scheme)


@contextmanager
def _sqlite(location: str) -> Iterator[Send]:
    path, _, query = location.partition("?")
    if query and not query.startswith("synchronous="):
        raise CannotRead(query)
    try:
        # Never make a file: there is none to read from.
        raw = sqlite3.connect(
            f"file:{quote(path)}?mode=rw",
            uri=True,
            timeout=LOCK_TIMEOUT_SECONDS,
            isolation_level=None,
        )
        try:
            raw.execute("BEGIN")
            yield lambda sql, values: raw.execute(sql, values).fetchall()
        finally:
            raw.close()
    except sqlite3.Error as problem:
        raise CannotRead(str(problem)) from problem


@contextmanager
def _postgresql(url: str) -> Iterator[Send]:
    try:
        import psycopg  # noqa: PLC0415 -- an extra, and slow to load
    except ImportError as problem:
        raise CannotRead(str(problem)) from problem

    try:
        with psycopg.connect(
            url,
            autocommit=True,
            connect_timeout=CONNECT_TIMEOUT_SECONDS,
            application_name="tsuzuki",
        ) as raw:
            # The texts are ours and have no `%` or `?` but for values.
            yield lambda sql, values: raw.execute(
                sql.replace("?", "%s").encode(), values or None
            ).fetchall()
    except psycopg.Error as problem:
        raise CannotRead(str(problem)) from problem
