"""A batch of rows as a table inside one statement, so that a hundred moves are one round trip.

PostgreSQL unnests one array per column; SQLite reads one JSON text. `unindexed` keeps a guard out of
the planner's sight: the batch's key must drive the plan, never an index on `state`, which a stale
statistic may make look cheaper.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, FromClause, bindparam, cast, func, literal_column, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import FunctionElement
from sqlalchemy.types import Text, TypeEngine


def batch(
    dialect: Dialect, columns: Mapping[str, TypeEngine[Any]], rows: Sequence[Sequence[Any]]
) -> FromClause:
    """`rows` as a FROM clause named `batch` with the given columns."""
    if dialect.name == "sqlite":
        return _json_rows(dialect, columns, rows)
    arrays = [
        cast(
            bindparam(f"batch_{name}", [row[i] for row in rows], type_=ARRAY(kind, dimensions=1)),
            ARRAY(kind, dimensions=1),
        )
        for i, (name, kind) in enumerate(columns.items())
    ]
    return func.unnest(*arrays).table_valued(*columns, name="batch").render_derived()


def _json_rows(
    dialect: Dialect, columns: Mapping[str, TypeEngine[Any]], rows: Sequence[Sequence[Any]]
) -> FromClause:
    binders = [kind.dialect_impl(dialect).bind_processor(dialect) for kind in columns.values()]
    plain = [
        [bind(value) if bind else value for bind, value in zip(binders, row, strict=True)]
        for row in rows
    ]
    source = func.json_each(bindparam("batch_rows", json.dumps(plain), type_=Text())).table_valued(
        "value"
    )
    return select(
        *(
            func.json_extract(source.c.value, literal_column(f"'$[{i}]'"), type_=kind).label(name)
            for i, (name, kind) in enumerate(columns.items())
        )
    ).subquery("batch")


def unindexed(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """The text column itself, out of reach of its indexes."""
    return Unindexed(column)


class Unindexed(FunctionElement[Any]):
    inherit_cache = True

    def __init__(self, column: ColumnElement[Any]) -> None:
        self.type = column.type
        super().__init__(column)


@compiles(Unindexed, "sqlite")
def _unindexed_sqlite(element: Unindexed, compiler: SQLCompiler, **kw: Any) -> str:
    return f"+{compiler.process(element.clauses, **kw)}"


@compiles(Unindexed)
def _unindexed(element: Unindexed, compiler: SQLCompiler, **kw: Any) -> str:
    return f"({compiler.process(element.clauses, **kw)} || '')"
