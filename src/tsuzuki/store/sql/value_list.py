"""A list of values as one parameter, so that a prepared statement takes lists of any length.

PostgreSQL gets an array, SQLite a JSON text.
"""

import json
from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, Dialect, Text, TypeDecorator, bindparam
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler

from tsuzuki.store.sql.batch import array_text
from tsuzuki.store.sql.dialect import is_sqlite
from tsuzuki.store.sql.plan_hints import Bare


def in_list(column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    """`column IN (…)`. The list, of numbers or of texts, is the statement's parameter `name`."""
    return InList(column, bindparam(name, type_=ListText()))


def in_long_list(column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    """The same for a list of hundreds and a column without an index: PostgreSQL hashes it instead of comparing each
    row with each value."""
    return InLongList(column, bindparam(name, type_=ListText()))


class ListText(TypeDecorator[Collection[Any]]):
    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Collection[Any] | None, dialect: Dialect) -> str:
        values = list(value or ())
        return json.dumps(values) if is_sqlite(dialect) else array_text(values)


class InList(Bare):
    inherit_cache = True


@compiles(InList, "sqlite")
def _in_list_sqlite(element: InList, compiler: SQLCompiler, **kw: Any) -> str:
    column, values = (compiler.process(side, **kw) for side in element.clauses)
    return f"{column} IN (SELECT value FROM json_each({values}))"


@compiles(InList)
def _in_list(element: InList, compiler: SQLCompiler, **kw: Any) -> str:
    column, values = (compiler.process(side, **kw) for side in element.clauses)
    kind = compiler.dialect.type_compiler_instance.process(next(iter(element.clauses)).type)
    return f"{column} = ANY (CAST({values} AS {kind}[]))"


class InLongList(InList):
    inherit_cache = True


@compiles(InLongList, "postgresql")
def _in_long_list(element: InLongList, compiler: SQLCompiler, **kw: Any) -> str:
    column, values = (compiler.process(side, **kw) for side in element.clauses)
    kind = compiler.dialect.type_compiler_instance.process(next(iter(element.clauses)).type)
    return f"{column} IN (SELECT unnest(CAST({values} AS {kind}[])))"
