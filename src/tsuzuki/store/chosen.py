"""The rows of a table that a batch names, for a statement that changes them.

PostgreSQL locks those rows one by one, always in the order of their ids: two batches that name the same rows
wait for each other in one direction, never in a circle. SQLite has one writer.

How the batch and the table meet depends on what varies from row to row. Mostly it is nothing but the id; then
the ids are one array and there is no join at all.
"""

from collections.abc import Mapping, Sequence
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

from tsuzuki.store.batch import NO_PARAMETERS, Columns, agreed, by_key, unpack


class Chosen(NamedTuple):
    """`c` has, by name, what the batch says of each row; `meant` is true of the rows that it names."""

    c: Any
    meant: ColumnElement[bool]


def chosen(
    dialect: Dialect,
    table: Table,
    columns: Columns,
    varying: Sequence[str],
    *,
    parameters: Mapping[str, Any] = NO_PARAMETERS,
    skip_locked: bool = False,
) -> Chosen:
    """The rows of a packed batch, whose first column, `id`, must be in order. With `skip_locked`, rows
    that somebody is just writing are left out instead of waited for."""
    if dialect.name == "sqlite":
        batch = unpack(dialect, columns, varying, parameters)
        return Chosen(batch.c, by_key(table.c.id, batch.c.id))
    row = TableClause(table.name, column("id", BigInteger())).alias("row")
    lock = select(row.c.id).with_for_update(key_share=True, skip_locked=skip_locked)
    if len(varying) > 1:
        batch = _joined(unpack(dialect, columns, varying, parameters), row, lock)
        return Chosen(batch.c, by_key(table.c.id, batch.c.id))
    given = agreed(columns, parameters)
    if varying:
        ids = bindparam("batch_id", parameters.get("batch_id"), type_=Text())
        named = row.c.id == func.any(cast(ids, ARRAY(BigInteger(), dimensions=1)))
        locked = lock.where(named).order_by(row.c.id).scalar_subquery()
        meant = table.c.id == func.any(func.array(locked))
    elif skip_locked:
        meant = table.c.id == lock.where(row.c.id == given["id"]).scalar_subquery()
    else:
        meant = table.c.id == given["id"]
    return Chosen(SimpleNamespace(**given), meant)


def _joined(batch: FromClause, row: FromClause, lock: Select[Any]) -> FromClause:
    """The batch, each row of it locked when its turn comes."""
    each = lock.where(row.c.id == batch.c.id).lateral("locked")
    # OFFSET keeps the planner from moving another join in between, and so from another order.
    return (
        select(*batch.c)
        .select_from(batch.join(each, true()))
        .offset(literal_column("0"))
        .subquery("batch")
    )
