"""A batch of rows as a table inside one statement, so that a hundred moves are one round trip.

PostgreSQL unnests one array per column; SQLite reads one JSON text. The batch's key must drive the
plan, never an index on `state` or a walk through the table, which a stale statistic may make look
cheaper: `by_key` leaves the planner no other join, `guard` hides the other conditions from it.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    FromClause,
    Select,
    bindparam,
    cast,
    func,
    literal_column,
    select,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import FunctionElement
from sqlalchemy.sql.operators import OperatorType
from sqlalchemy.types import Boolean, Text, TypeEngine

Columns = Mapping[str, TypeEngine[Any]]
NO_PARAMETERS: Mapping[str, Any] = MappingProxyType({})
_Parameter = Callable[[str, TypeEngine[Any]], BindParameter[Any]]


class Packed(NamedTuple):
    """Rows as parameters of a statement. Which of its columns vary from row to row decides how the
    statement is written; with the same ones varying, it is the same statement. In a single row none
    does, and then it is a plain statement, which is planned and executed sooner."""

    varying: tuple[str, ...]
    parameters: dict[str, Any]


def pack(dialect: Dialect, columns: Columns, rows: Sequence[Sequence[Any]]) -> Packed:
    """The first column is sent for every row. Of the others, one in which all rows agree is sent
    once: in most batches nearly all of them do."""
    if len(rows) == 1:
        return Packed((), {f"batch_{n}": v for n, v in zip(columns, rows[0], strict=True)})
    values = dict(zip(columns, zip(*rows, strict=True), strict=True))
    key, *others = columns
    varying = (key, *(name for name in others if not _agree(values[name])))
    each = {name: _bound(dialect, columns[name], values[name]) for name in varying}
    parameters = {f"batch_{name}": values[name][0] for name in others if name not in each}
    if dialect.name == "sqlite":
        rows_text = json.dumps(list(zip(*each.values(), strict=True)), separators=(",", ":"))
        return Packed(varying, {**parameters, "batch_rows": rows_text})
    arrays = {f"batch_{name}": _array_text(column) for name, column in each.items()}
    return Packed(varying, {**parameters, **arrays})


def unpack(
    dialect: Dialect,
    columns: Columns,
    varying: Sequence[str],
    parameters: Mapping[str, Any] = NO_PARAMETERS,
) -> FromClause:
    """Packed rows as a FROM clause named `batch`. Whoever keeps the statement gives the parameters
    each time it is executed; else they are given here."""

    def parameter(name: str, kind: TypeEngine[Any]) -> BindParameter[Any]:
        return bindparam(name, parameters.get(name), type_=kind)

    if not varying:
        return select(
            *(value.label(name) for name, value in agreed(columns, parameters).items())
        ).subquery("batch")
    source = (_json_rows if dialect.name == "sqlite" else _unnested)(columns, varying, parameter)
    if len(varying) == len(columns):
        return source.subquery("batch")
    inner = source.subquery("varying")
    every = [
        inner.c[name] if name in varying else parameter(f"batch_{name}", kind).label(name)
        for name, kind in columns.items()
    ]
    return select(*every).subquery("batch")


def agreed(
    columns: Columns, parameters: Mapping[str, Any] = NO_PARAMETERS
) -> dict[str, BindParameter[Any]]:
    """Columns that are sent once, for all rows."""
    return {
        name: bindparam(f"batch_{name}", parameters.get(f"batch_{name}"), type_=kind)
        for name, kind in columns.items()
    }


def batch(dialect: Dialect, columns: Columns, rows: Sequence[Sequence[Any]]) -> FromClause:
    """`rows` as a FROM clause named `batch` with the given columns."""
    packed = pack(dialect, columns, rows)
    return unpack(dialect, columns, packed.varying, packed.parameters)


def _agree(values: Sequence[Any]) -> bool:
    return values.count(values[0]) == len(values)


def _bound(dialect: Dialect, kind: TypeEngine[Any], values: Sequence[Any]) -> Sequence[Any]:
    """A column's values as the database keeps them."""
    bind = kind.dialect_impl(dialect).bind_processor(dialect)
    return [bind(value) for value in values] if bind else values


def _unnested(columns: Columns, varying: Sequence[str], parameter: _Parameter) -> Select[Any]:
    arrays = [
        cast(parameter(f"batch_{name}", Text()), ARRAY(columns[name], dimensions=1))
        for name in varying
    ]
    return select(*func.unnest(*arrays).table_valued(*varying, name="rows").render_derived().c)


def _array_text(values: Sequence[Any]) -> str:
    """A column's values as PostgreSQL writes an array. The driver would look at each value to find
    out what it is, several times over; we know, and that was most of the price of a batch."""
    if set(map(type, values)) == {int}:
        return "{" + ",".join(map(str, values)) + "}"
    return "{" + ",".join(["NULL" if value is None else _element(value) for value in values]) + "}"


def _element(value: Any) -> str:
    if isinstance(value, int):
        return str(value)
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _json_rows(columns: Columns, varying: Sequence[str], parameter: _Parameter) -> Select[Any]:
    source = func.json_each(parameter("batch_rows", Text())).table_valued("value")
    return select(
        *(
            func.json_extract(
                source.c.value, literal_column(f"'$[{i}]'"), type_=columns[name]
            ).label(name)
            for i, name in enumerate(varying)
        )
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


def likely(condition: ColumnElement[bool]) -> ColumnElement[bool]:
    """The condition, with a word to SQLite that it leaves out next to nothing. SQLite keeps no
    statistics unless asked, and takes every comparison for a strict one."""
    return Likely(condition)


class Likely(Bare):
    inherit_cache = True


@compiles(Likely, "sqlite")
def _likely_sqlite(element: Likely, compiler: SQLCompiler, **kw: Any) -> str:
    return f"likelihood({compiler.process(element.clauses, **kw)}, 0.99)"


@compiles(Likely)
def _likely(element: Likely, compiler: SQLCompiler, **kw: Any) -> str:
    return compiler.process(element.clauses, **kw)
