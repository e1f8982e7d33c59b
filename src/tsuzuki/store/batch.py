"""A batch of rows as a table inside one statement, so that a hundred moves are one round trip.

PostgreSQL unnests one array per column; SQLite reads one JSON text. The batch's key must drive the
plan, never an index on `state` or a walk through the table, which a stale statistic may make look
cheaper: `by_key` leaves the planner no other join, `guard` hides the other conditions from it.
"""

import json
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Table,
    TableClause,
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
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import FunctionElement
from sqlalchemy.sql.operators import OperatorType
from sqlalchemy.types import Boolean, Text, TypeEngine


def batch(
    dialect: Dialect, columns: Mapping[str, TypeEngine[Any]], rows: Sequence[Sequence[Any]]
) -> FromClause:
    """`rows` as a FROM clause named `batch` with the given columns."""
    if dialect.name == "sqlite":
        return _json_rows(dialect, columns, rows)
    arrays = [
        cast(
            bindparam(f"batch_{name}", _array_text(dialect, kind, values), type_=Text()),
            ARRAY(kind, dimensions=1),
        )
        for (name, kind), values in zip(columns.items(), zip(*rows, strict=True), strict=True)
    ]
    return func.unnest(*arrays).table_valued(*columns, name="batch").render_derived()


def _bound(dialect: Dialect, kind: TypeEngine[Any], values: Sequence[Any]) -> Sequence[Any]:
    """A column's values as the database keeps them."""
    bind = kind.dialect_impl(dialect).bind_processor(dialect)
    return [bind(value) for value in values] if bind else values


def _array_text(dialect: Dialect, kind: TypeEngine[Any], values: Sequence[Any]) -> str:
    """A column's values as PostgreSQL writes an array. The driver would look at each value to find
    out what it is, several times over; we know, and that was most of the price of a batch."""
    bound = _bound(dialect, kind, values)
    return "{" + ",".join(["NULL" if value is None else _element(value) for value in bound]) + "}"


def _element(value: Any) -> str:
    if isinstance(value, int):
        return str(value)
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _json_rows(
    dialect: Dialect, columns: Mapping[str, TypeEngine[Any]], rows: Sequence[Sequence[Any]]
) -> FromClause:
    plain = [
        _bound(dialect, kind, values)
        for kind, values in zip(columns.values(), zip(*rows, strict=True), strict=True)
    ]
    text = json.dumps(list(zip(*plain, strict=True)), separators=(",", ":"))
    source = func.json_each(bindparam("batch_rows", text, type_=Text())).table_valued("value")
    return select(
        *(
            func.json_extract(source.c.value, literal_column(f"'$[{i}]'"), type_=kind).label(name)
            for i, (name, kind) in enumerate(columns.items())
        )
    ).subquery("batch")


def locked_batch(
    dialect: Dialect,
    table: Table,
    columns: Mapping[str, TypeEngine[Any]],
    rows: Sequence[Sequence[Any]],
    *,
    skip_locked: bool = False,
) -> FromClause:
    """The same, for a statement that changes rows of `table`; the first column is their id.

    With `skip_locked`, rows that somebody is just writing are left out instead of waited for.

    PostgreSQL locks those rows one by one, always in the order of their ids: two batches that name
    the same rows wait for each other in one direction, never in a circle. SQLite has one writer.
    """
    chosen = batch(dialect, columns, sorted(rows, key=itemgetter(0)))
    if dialect.name == "sqlite":
        return chosen
    row = TableClause(table.name, column("id")).alias("row")
    lock = (
        select(row.c.id)
        .where(row.c.id == chosen.c.id)
        .with_for_update(key_share=True, skip_locked=skip_locked)
    )
    # OFFSET keeps the planner from moving another join in between, and so from another order.
    return (
        select(*chosen.c)
        .select_from(chosen.join(lock.lateral("locked"), true()))
        .offset(literal_column("0"))
        .subquery("batch")
    )


def by_key(primary: ColumnElement[Any], key: ColumnElement[Any]) -> ColumnElement[bool]:
    """`primary = key`, joined by looking each key up."""
    return ByKey(primary, key)


class Bare(FunctionElement[bool]):
    """A condition written as it is, where SQLAlchemy would append `= 1` for SQLite."""

    type = Boolean()
    inherit_cache = True

    def self_group(self, against: OperatorType | None = None) -> "Bare":  # noqa: ARG002
        return self


class ByKey(Bare):
    inherit_cache = True


@compiles(ByKey, "sqlite")
def _by_key_sqlite(element: ByKey, compiler: SQLCompiler, **kw: Any) -> str:
    primary, key = (compiler.process(side, **kw) for side in element.clauses)
    return f"{primary} = {key}"


@compiles(ByKey)
def _by_key(element: ByKey, compiler: SQLCompiler, **kw: Any) -> str:
    primary, key = (compiler.process(side, **kw) for side in element.clauses)
    return f"{primary} = ANY (ARRAY[{key}])"  # an index can serve this, a hash cannot


def guard(condition: ColumnElement[bool]) -> ColumnElement[bool]:
    """The condition itself, out of reach of indexes and estimates."""
    return Guard(condition)


class Guard(Bare):
    inherit_cache = True


@compiles(Guard, "sqlite")
def _guard_sqlite(element: Guard, compiler: SQLCompiler, **kw: Any) -> str:
    return f"+({compiler.process(element.clauses, **kw)})"


@compiles(Guard)
def _guard(element: Guard, compiler: SQLCompiler, **kw: Any) -> str:
    return f"CASE WHEN {compiler.process(element.clauses, **kw)} THEN true ELSE false END"
