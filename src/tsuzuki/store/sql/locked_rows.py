"""The rows of a table that a batch names, locked, for the UPDATE that changes them.

On PostgreSQL a row that another transaction holds is left out, never waited for: a handler may hold the row of its
run for as long as its transaction takes. Without a wait there is no deadlock either. SQLite has one writer.

A row is locked in one of three ways. A move takes FOR UPDATE, which no other lock goes with. A handler's transaction
and its progress take FOR NO KEY UPDATE, and log lines FOR KEY SHARE: these two go together, so lines are stored while
a handler's transaction is open, but no run is moved while lines of it are being committed.

How batch and table are joined depends on which columns vary from row to row. Mostly it is the id alone;
then the ids are one array and there is no join at all.
"""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    FromClause,
    Select,
    Table,
    TableClause,
    Text,
    bindparam,
    cast,
    column,
    func,
    literal_column,
    select,
    true,
)
from sqlalchemy.engine import Dialect

from tsuzuki.store.sql.batch import Columns, constants, unpack
from tsuzuki.store.sql.dialect import is_sqlite
from tsuzuki.store.sql.plan_hints import by_key


class LockedRows(NamedTuple):
    """`c` has the batch's columns by name; `matches` is true of the table's rows that it names."""

    c: Any
    matches: ColumnElement[bool]


def locked_rows(
    dialect: Dialect,
    table: Table,
    columns: Columns,
    varying: Sequence[str],
    *,
    key_share: bool = False,
) -> LockedRows:
    """The rows of a packed batch whose first column is `id`, without those that another transaction holds; with
    `key_share`, one that is held FOR KEY SHARE is not left out."""
    if is_sqlite(dialect):
        batch = unpack(dialect, columns, varying)
        return LockedRows(batch.c, by_key(table.c.id, batch.c.id))
    row = TableClause(table.name, column("id", BigInteger())).alias("row")
    lock = select(row.c.id).with_for_update(key_share=key_share, skip_locked=True)
    if len(varying) > 1:
        batch = _joined(unpack(dialect, columns, varying), row, lock)
        return LockedRows(batch.c, by_key(table.c.id, batch.c.id))
    constant = constants(columns)
    if varying:
        ids = bindparam("batch_id", type_=Text())
        named = row.c.id == func.any(cast(ids, ARRAY(BigInteger(), dimensions=1)))
        locked = lock.where(named).order_by(row.c.id).scalar_subquery()
        matches = table.c.id == func.any(func.array(locked))
    else:
        matches = table.c.id == lock.where(row.c.id == constant["id"]).scalar_subquery()
    return LockedRows(SimpleNamespace(**constant), matches)


def _joined(batch: FromClause, row: FromClause, lock: Select[Any]) -> FromClause:
    """The batch, with each of its rows locked in turn."""
    each = lock.where(row.c.id == batch.c.id).lateral("locked")
    # OFFSET 0 is an optimization fence: the planner must not reorder the joins, and so the locks.
    return (
        select(*batch.c)
        .select_from(batch.join(each, true()))
        .offset(literal_column("0"))
        .subquery("batch")
    )
