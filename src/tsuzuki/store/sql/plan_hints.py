"""Hints to the query planner: conditions that must, or must not, choose the index.

A batch's key must drive the plan, never an index on `state` or a scan, which stale statistics may make
look cheaper. `by_key` leaves the planner no other join, `guard` hides a condition from it, `likely` is a hint
to SQLite that a condition filters out next to nothing, `pair_between` walks along one value of a pair.
"""

from typing import Any

from sqlalchemy import ColumnElement, literal
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import FunctionElement
from sqlalchemy.sql.operators import OperatorType
from sqlalchemy.types import Boolean


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
    return PlanGuard(condition)


class PlanGuard(Bare):
    inherit_cache = True


@compiles(PlanGuard, "sqlite")
def _guard_sqlite(element: PlanGuard, compiler: SQLCompiler, **kw: Any) -> str:
    return f"+({compiler.process(element.clauses, **kw)})"


@compiles(PlanGuard)
def _guard(element: PlanGuard, compiler: SQLCompiler, **kw: Any) -> str:
    return f"CASE WHEN {compiler.process(element.clauses, **kw)} THEN true ELSE false END"


def likely(condition: ColumnElement[bool]) -> ColumnElement[bool]:
    """The condition, with a hint to SQLite that it filters out next to nothing. SQLite keeps no statistics
    without ANALYZE, and takes every comparison for a selective one."""
    return Likely(condition)


class Likely(Bare):
    inherit_cache = True


@compiles(Likely, "sqlite")
def _likely_sqlite(element: Likely, compiler: SQLCompiler, **kw: Any) -> str:
    return f"likelihood({compiler.process(element.clauses, **kw)}, 0.99)"


@compiles(Likely)
def _likely(element: Likely, compiler: SQLCompiler, **kw: Any) -> str:
    return compiler.process(element.clauses, **kw)


def pair_between(
    key: ColumnElement[Any], value: object, second: ColumnElement[int], low: int, high: int
) -> ColumnElement[bool]:
    """`key` is the value, and `second` from `low` to below `high`, along an index on both. On PostgreSQL they are
    compared as one row value, which no other index serves. SQLite would use only `key` of it where `second` is the
    primary key, and pass every row of the value: there the equality makes this index the cheapest by far."""
    first, end = (literal(bound, second.type) for bound in (low, high))
    return PairBetween(key, literal(value, key.type), second, first, end)


class PairBetween(Bare):
    inherit_cache = True


@compiles(PairBetween, "sqlite")
def _pair_between_sqlite(element: PairBetween, compiler: SQLCompiler, **kw: Any) -> str:
    key, value, second, low, high = (compiler.process(part, **kw) for part in element.clauses)
    return f"{key} = {value} AND {second} >= {low} AND {second} < {high}"


@compiles(PairBetween)
def _pair_between(element: PairBetween, compiler: SQLCompiler, **kw: Any) -> str:
    key, value, second, low, high = (compiler.process(part, **kw) for part in element.clauses)
    return f"({key}, {second}) >= ({value}, {low}) AND ({key}, {second}) < ({value}, {high})"
