"""Which dialect it is, and the INSERT of each that can be an upsert."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, Table, true
from sqlalchemy.engine import Dialect


def is_sqlite(dialect: Dialect) -> bool:
    return dialect.name == "sqlite"


def insert_into(dialect: Dialect, table: Table) -> Any:
    """The dialect's own INSERT, which has `on_conflict_do_nothing` and `on_conflict_do_update`."""
    if is_sqlite(dialect):
        from sqlalchemy.dialects import sqlite  # noqa: PLC0415 -- each takes long to load, and one is enough

        return sqlite.insert(table)
    from sqlalchemy.dialects import postgresql  # noqa: PLC0415 -- each takes long to load, and one is enough

    return postgresql.insert(table)


def upsert_from(dialect: Dialect, table: Table, names: Sequence[str], rows: Select[Any]) -> Any:
    """The dialect's own INSERT … SELECT, which has `on_conflict_do_nothing` and `on_conflict_do_update`."""
    # Without a WHERE, SQLite takes ON CONFLICT for the condition of a join.
    return insert_into(dialect, table).from_select(names, rows.where(true()))
