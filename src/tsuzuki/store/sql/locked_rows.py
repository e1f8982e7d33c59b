"""The rows of a table that a batch names, locked, for the UPDATE that changes them.

PostgreSQL locks those rows one by one, always in the order of their ids: two batches that name the same
rows queue up and cannot deadlock. SQLite has one writer.

How batch and table are joined depends on which columns vary from row to row. Mostly it is the id alone;
then the ids are one array and there is no join at all.
"""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from sqlalchemy import (
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
from sqlalchemy.dialects.postgresql import ARRAY
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
    skip_locked: bool = False,
) -> LockedRows:
    """The rows of a packed batch, whose first column, `id`, must be sorted. With `skip_locked`, rows
    that another transaction holds are left out instead of waited for."""
    if is_sqlite(dialect):
        batch = unpack(dialect, columns, varying)
        return LockedRows(batch.c, by_key(table.c.id, batch.c.id))
    row = TableClause(table.name, column("id", BigInteger())).alias("row")
    lock = select(row.c.id).with_for_update(key_share=True, skip_locked=skip_locked)
    if len(varying) > 1:
        batch = _joined(unpack(dialect, columns, varying), row, lock)
        return LockedRows(batch.c, by_key(table.c.id, batch.c.id))
    constant = constants(columns)
    if varying:
        ids = bindparam("batch_id", type_=Text())
        named = row.c.id == func.any(cast(ids, ARRAY(BigInteger(), dimensions=1)))
        locked = lock.where(named).order_by(row.c.id).scalar_subquery()
        matches = table.c.id == func.any(func.array(locked))
    elif skip_locked:
        matches = table.c.id == lock.where(row.c.id == constant["id"]).scalar_subquery()
    else:
        matches = table.c.id == constant["id"]
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
