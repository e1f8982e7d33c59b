"""The database's clock in SQL, which leases and heartbeats are compared by."""

from typing import Any

from sqlalchemy import ColumnElement
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from tsuzuki.store.sql.types import UtcTime


def db_now(offset_seconds: float | ColumnElement[float] = 0.0) -> ColumnElement[Any]:
    """The database's clock, shifted. On PostgreSQL a function of the schema: the server's time at the
    start of the statement, so that a wait for a lock never makes a lease look longer. On SQLite the
    clock injected into this process, because file and process share a machine."""
    is_number = isinstance(offset_seconds, int | float)
    return _Now(float(offset_seconds) if is_number else offset_seconds)


class _Now(FunctionElement[Any]):
    type = UtcTime()
    inherit_cache = True


@compiles(_Now)
def _now(element: _Now, compiler: SQLCompiler, **kw: Any) -> str:
    # A scalar subquery is evaluated once per statement; a bare call would be made for every row.
    return f"(SELECT tsuzuki_now({compiler.process(element.clauses, **kw)}))"
