"""Insert or update the rows of a page in one statement: INSERT … SELECT FROM batch … ON CONFLICT."""

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Table, select, true
from sqlalchemy.engine import Dialect

from tsuzuki.store.sql.dialect import insert_into


def insert_from(dialect: Dialect, table: Table, values: Mapping[str, ColumnElement[Any]]) -> Any:
    """INSERT … SELECT. The values are columns of a batch (`store.sql.batch`) and parameters; the result
    has `on_conflict_do_nothing` and `on_conflict_do_update`."""
    columns = [value.label(name) for name, value in values.items()]
    # Without a WHERE, SQLite would take ON CONFLICT for the condition of a join.
    return insert_into(dialect, table).from_select(list(values), select(*columns).where(true()))


def upsert_from(
    dialect: Dialect,
    table: Table,
    values: Mapping[str, ColumnElement[Any]],
    *,
    keep: Collection[str] = (),
) -> Any:
    """The same; a row whose primary key is stored gets the new values, except those in `keep`."""
    statement = insert_from(dialect, table, values)
    key = [column.name for column in table.primary_key]
    return statement.on_conflict_do_update(
        index_elements=key,
        set_={name: statement.excluded[name] for name in values if name not in (*key, *keep)},
    )
