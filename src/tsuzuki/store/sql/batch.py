"""A batch of rows as a table inside one statement, so that a hundred moves are one round trip.

PostgreSQL unnests one array per column; SQLite reads one JSON text.
"""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from sqlalchemy import (
    ARRAY,
    BindParameter,
    FromClause,
    Select,
    bindparam,
    cast,
    func,
    literal_column,
    select,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.types import Text, TypeEngine

from tsuzuki.store.sql.dialect import is_sqlite

Columns = Mapping[str, TypeEngine[Any]]
NO_PARAMETERS: Mapping[str, Any] = MappingProxyType({})


class Packed(NamedTuple):
    """Rows as parameters of a statement. `varying` are the columns that differ from row to row; they decide
    the text of the statement, and the same ones give the same prepared statement. In a single row no column
    varies: that is a plain statement, which is planned and executed faster."""

    varying: tuple[str, ...]
    parameters: dict[str, Any]

    def with_(self, **others: Any) -> dict[str, Any]:
        """All parameters of a statement that has others besides the batch."""
        return {**self.parameters, **others}


def pack(dialect: Dialect, columns: Columns, rows: Sequence[Sequence[Any]]) -> Packed:
    """Pack rows into parameters. The first column is sent for every row. Any other column that is constant
    over all rows is sent once: in most batches nearly all of them are."""
    if len(rows) == 1:
        return Packed((), {f"batch_{n}": v for n, v in zip(columns, rows[0], strict=True)})
    values = dict(zip(columns, zip(*rows, strict=True), strict=True))
    key, *others = columns
    varying = (
        key,
        *(name for name in others if not _is_constant(dialect, columns[name], values[name])),
    )
    bound = {name: _bound(dialect, columns[name], values[name]) for name in varying}
    parameters = {f"batch_{name}": values[name][0] for name in others if name not in bound}
    if is_sqlite(dialect):
        rows_text = json.dumps(list(zip(*bound.values(), strict=True)), separators=(",", ":"))
        return Packed(varying, {**parameters, "batch_rows": rows_text})
    arrays = {f"batch_{name}": array_text(column) for name, column in bound.items()}
    return Packed(varying, {**parameters, **arrays})


def unpack(dialect: Dialect, columns: Columns, varying: Sequence[str]) -> FromClause:
    """Packed rows as a FROM clause named `batch`."""
    constant = constants(columns)
    if not varying:
        return select(*(value.label(name) for name, value in constant.items())).subquery("batch")
    source = (_json_rows if is_sqlite(dialect) else _unnested)(columns, varying)
    if len(varying) == len(columns):
        return source.subquery("batch")
    inner = source.subquery("varying")
    selected = [
        inner.c[name] if name in varying else value.label(name) for name, value in constant.items()
    ]
    return select(*selected).subquery("batch")


def constants(columns: Columns) -> dict[str, BindParameter[Any]]:
    """Columns that are constant over all rows, and so sent once."""
    return {name: bindparam(f"batch_{name}", type_=kind) for name, kind in columns.items()}


def _is_constant(dialect: Dialect, kind: TypeEngine[Any], values: Sequence[Any]) -> bool:
    """Whether all values are stored as the same. Being equal is not enough: in Python 1, 1.0 and True are, and their
    JSON texts are not."""
    first = values[0]
    if values.count(first) < len(values):
        return False
    if first is None or isinstance(first, str):
        return True
    if all(value is first for value in values):
        return True
    stored = _bound(dialect, kind, values)
    return stored.count(stored[0]) == len(stored)


def _bound(dialect: Dialect, kind: TypeEngine[Any], values: Sequence[Any]) -> Sequence[Any]:
    """A column's values as the database stores them."""
    bind = kind.dialect_impl(dialect).bind_processor(dialect)
    return [bind(value) for value in values] if bind else values


def _unnested(columns: Columns, varying: Sequence[str]) -> Select[Any]:
    arrays = [
        cast(bindparam(f"batch_{name}", type_=Text()), ARRAY(columns[name], dimensions=1))
        for name in varying
    ]
    return select(*func.unnest(*arrays).table_valued(*varying, name="rows").render_derived().c)


def array_text(values: Sequence[Any]) -> str:
    """A column's values as the text of a PostgreSQL array. The driver would inspect the type of each value
    several times, which was most of the cost of a batch; we know the type."""
    if set(map(type, values)) == {int}:
        return "{" + ",".join(map(str, values)) + "}"
    return "{" + ",".join(["NULL" if value is None else _element(value) for value in values]) + "}"


def _element(value: Any) -> str:
    if isinstance(value, int):
        return str(value)
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _json_rows(columns: Columns, varying: Sequence[str]) -> Select[Any]:
    source = func.json_each(bindparam("batch_rows", type_=Text())).table_valued("value")
    return select(
        *(
            func.json_extract(
                source.c.value, literal_column(f"'$[{i}]'"), type_=columns[name]
            ).label(name)
            for i, name in enumerate(varying)
        )
    )
