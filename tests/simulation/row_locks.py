"""Row locks of handlers, as PostgreSQL has them, on a store with one connection.

A handler that keeps its transaction open locks the row of its run. Meanwhile an UPDATE with SKIP LOCKED leaves that row
out, and an UPDATE that would wait for the lock violates an invariant. So does an UPDATE that may wait while its
transaction holds rows of earlier statements: two of them could deadlock. Whether an UPDATE has SKIP LOCKED is read
from the statement built for PostgreSQL, and marked by a comment in the statement for SQLite.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from sqlalchemy import literal_column, select
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.sqlite.base import SQLiteCompiler
from sqlalchemy.engine import Dialect

from tsuzuki.store.runs import moves, progress
from tsuzuki.store.sql import locked_rows as original
from tsuzuki.store.sql.locked_rows import LockedRows

SKIPS = "/* skip locked */"
POSTGRESQL = postgresql.dialect()  # type: ignore[no-untyped-call]

LOCKS_SQL = """
CREATE TRIGGER sim_lock BEFORE UPDATE ON tsuzuki_job_runs WHEN sim_lock(OLD.id) BEGIN
    SELECT CASE sim_lock(OLD.id)
        WHEN 1 THEN RAISE(IGNORE)
        WHEN 2 THEN RAISE(ABORT, 'it waits for a row that a handler holds')
        ELSE RAISE(ABORT, 'it may wait for a row while it holds others') END;
END;
"""


class MarkingCompiler(SQLiteCompiler):
    def for_update_clause(self, select: Any, **_options: Any) -> str:
        return f" {SKIPS}" if select._for_update_arg.skip_locked else ""


class SeenCursor(sqlite3.Cursor):
    connection: "SeenConnection"

    def execute(self, sql: str, values: Any = (), /) -> sqlite3.Cursor:
        self.connection.statement = sql
        return super().execute(sql, values)


class SeenConnection(sqlite3.Connection):
    """Knows the statement that is being executed."""

    statement = ""

    def cursor(self, factory: Any = SeenCursor) -> Any:
        return super().cursor(factory)


class RowLocks:
    def __init__(self, raw: SeenConnection, dialect: Dialect) -> None:
        self._raw = raw
        self._dialect = dialect
        self._holders: dict[int, object] = {}
        self._current: object = None
        self._taken: dict[int, str] = {}
        """The rows that the current transaction has changed, each with the statement."""
        self.met = 0
        """How often a statement of another met a locked row."""
        raw.create_function("sim_lock", 1, self._meets)
        dialect.statement_compiler = MarkingCompiler

    def begin(self, owner: object) -> None:
        """A transaction of this one begins, or goes on; a holder meets no lock of its own."""
        self._current = owner
        self._taken.clear()

    @contextmanager
    def held(self, run_id: int, holder: object) -> Iterator[None]:
        self._holders[run_id] = holder
        try:
            yield
        finally:
            del self._holders[run_id]

    @contextmanager
    def marked(self) -> Iterator[None]:
        """Mark the batches that skip locked rows on PostgreSQL."""
        with (
            patch.object(moves, "locked_rows", self._marking),
            patch.object(progress, "locked_rows", self._marking),
        ):
            yield

    def _marking(self, dialect: Dialect, *arguments: Any, **options: Any) -> LockedRows:
        rows = original.locked_rows(dialect, *arguments, **options)
        if dialect is not self._dialect:
            return rows
        on_server = select(original.locked_rows(POSTGRESQL, *arguments, **options).matches)
        if "SKIP LOCKED" not in str(on_server.compile(dialect=POSTGRESQL)):
            return rows
        return LockedRows(rows.c, rows.matches & literal_column(f"(1 {SKIPS})"))

    def _meets(self, run_id: int) -> int:
        statement = self._raw.statement
        skips = self.skips(statement)
        if run_id in self._holders and self._holders[run_id] is not self._current:
            self.met += 1
            return 1 if skips else 2
        holds_others = any(earlier != statement for earlier in self._taken.values())
        if holds_others and not skips and run_id not in self._taken:
            return 3
        self._taken.setdefault(run_id, statement)
        return 0

    def skips(self, statement: str) -> bool:
        return SKIPS in statement
