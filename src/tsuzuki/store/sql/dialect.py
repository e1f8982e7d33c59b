"""Where SQLite and PostgreSQL need different SQL for the same thing: upserts and advisory locks."""

from typing import Any

from sqlalchemy import Connection, Table, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect


def is_sqlite(dialect: Dialect) -> bool:
    return dialect.name == "sqlite"


def insert_into(dialect: Dialect, table: Table) -> Any:
    """The dialect's own INSERT, which has `on_conflict_do_nothing` and `on_conflict_do_update`."""
    return (sqlite if is_sqlite(dialect) else postgresql).insert(table)


def lock_until_commit(connection: Connection, key: int | str) -> None:
    """Take an advisory lock until this transaction ends, waiting for it if need be. SQLite has one
    writer at a time anyway."""
    if is_sqlite(connection.dialect):
        return
    number = ":key" if isinstance(key, int) else "hashtextextended(:key, 0)"
    connection.execute(text(f"SELECT pg_advisory_xact_lock({number})"), {"key": key})
