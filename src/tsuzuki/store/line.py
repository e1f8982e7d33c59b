"""The shortest way to the database, for single statements that somebody waits for.

SQLAlchemy writes these statements, once; what is sent each time is the text it wrote, and the values. Its own way
there, through pool, transaction, cache and result, takes several times as long as the statement itself in
a process that has slept for a moment; and sleeping is what a process does that waits for work.

A line is a connection of its own, kept open between two uses. One that fails is not used again, and if it lost
the server, no other connection is either.
"""

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import Connection, Engine
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import DBAPIError

from tsuzuki.store.batch import NO_PARAMETERS

KEPT = 8
"""So many lines are kept while nobody uses them: as many as connections."""

_Processor = Callable[[Any], Any]

Sender: TypeAlias = "Connection | Line"
"""Whatever sends a statement that is written once and kept."""


class _Written(NamedTuple):
    """A statement as it is sent. `order` has the names of its values for a driver that counts them."""

    sql: str
    order: tuple[str, ...] | None
    values: Mapping[str, Any]
    bind: Mapping[str, _Processor]
    read: tuple[tuple[int, _Processor], ...]


@lru_cache(maxsize=256)
def _write(dialect: Dialect, statement: Any) -> _Written:
    compiled = statement.compile(dialect=dialect)
    if compiled.post_compile_params:
        raise RuntimeError(f"a list of any length cannot be written once: {compiled}")
    kinds = {name: bind.type.dialect_impl(dialect) for name, bind in compiled.binds.items()}
    processors = {name: kind.bind_processor(dialect) for name, kind in kinds.items()}
    bind = {name: processor for name, processor in processors.items() if processor}
    columns = [column.type.dialect_impl(dialect) for column in statement.exported_columns]
    readers = [kind.result_processor(dialect, None) for kind in columns]
    fixed = {n: value for n, value in compiled.params.items() if not compiled.binds[n].required}
    return _Written(
        sql=compiled.string,
        order=tuple(compiled.positiontup) if compiled.positional else None,
        values={name: bind[name](v) if name in bind else v for name, v in fixed.items()},
        bind=bind,
        read=tuple((place, reader) for place, reader in enumerate(readers) if reader),
    )


class Answer:
    """What came back. Has of SQLAlchemy's results what the store asks single statements for."""

    __slots__ = ("_rows", "rowcount")

    def __init__(self, rows: list[Any], rowcount: int) -> None:
        self._rows = rows
        self.rowcount = rowcount

    def all(self) -> list[Any]:
        return self._rows

    def scalars(self) -> "Answer":
        return Answer([row[0] for row in self._rows], self.rowcount)

    def scalar_one_or_none(self) -> Any:
        if len(self._rows) > 1:
            raise RuntimeError("one row was expected at most")
        return self._rows[0][0] if self._rows else None


class Line:
    """Used by one thread at a time. It executes what is written once and kept, and nothing else."""

    def __init__(self, engine: Engine, generation: int) -> None:
        self.dialect = engine.dialect
        self.generation = generation
        self._lent = engine.connect()
        raw: Any = self._lent.connection.driver_connection
        # Out of the pool: whatever becomes of this one, nobody else is ever lent it as it is set up here.
        self._lent.detach()
        if self.dialect.name != "sqlite":
            raw.autocommit = True
        self._raw = raw
        self._cursor = raw.cursor()

    def execute(self, statement: Any, parameters: Mapping[str, Any] = NO_PARAMETERS) -> Answer:
        """Each statement is remembered with its text."""
        written = _write(self.dialect, statement)
        values = {**written.values, **parameters}
        for name, processor in written.bind.items():
            if name in parameters:
                values[name] = processor(values[name])
        order = written.order
        rows = self.send(written.sql, values if order is None else [values[name] for name in order])
        if written.read:
            rows = [_processed(row, written.read) for row in rows]
        return Answer(rows, self._cursor.rowcount)

    def send(self, sql: str, values: Any = ()) -> list[Any]:
        """The rows of the answer, as the driver gives them. Raises what SQLAlchemy would raise."""
        cursor = self._cursor
        try:
            cursor.execute(sql, values)
            return cursor.fetchall() if cursor.description else []
        except self.dialect.loaded_dbapi.Error as problem:
            raise DBAPIError.instance(
                sql,
                None,
                problem,
                self.dialect.loaded_dbapi.Error,
                hide_parameters=True,
                connection_invalidated=self.dialect.is_disconnect(problem, self._raw, cursor),
                dialect=self.dialect,
            ) from problem

    def close(self) -> None:
        # An answer that was not read to its end would keep an SQLite transaction open.
        with suppress(self.dialect.loaded_dbapi.Error):
            self._cursor.close()
        with suppress(DBAPIError):
            self._lent.close()


def _processed(row: Any, readers: tuple[tuple[int, _Processor], ...]) -> tuple[Any, ...]:
    values = list(row)
    for place, reader in readers:
        values[place] = reader(values[place])
    return tuple(values)


class Lines:
    """The lines of a process: the one used last is used next, because it knows its statements already."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._generation = 0
        self._idle: deque[Line] = deque()

    def take(self) -> Line:
        try:
            return self._idle.pop()
        except IndexError:
            return Line(self._engine, self._generation)

    def give_back(self, line: Line) -> None:
        if line.generation == self._generation and len(self._idle) < KEPT:
            self._idle.append(line)
        else:
            line.close()

    def give_up(self, line: Line, problem: BaseException) -> None:
        """It failed, or nobody knows in which state it was left. If the server is lost, so is every
        other connection to it, also those that SQLAlchemy keeps."""
        line.close()
        if isinstance(problem, DBAPIError) and problem.connection_invalidated:
            self.close()
            self._engine.dispose()

    def close(self) -> None:
        """Those in use are closed when they come back."""
        self._generation += 1
        while self._idle:
            try:
                self._idle.pop().close()
            except IndexError:
                return
