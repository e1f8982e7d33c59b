"""Prepared statements: compiled to SQL text once per dialect, then sent with their values only.

The one way in which the store and the collectors send a statement whose shape does not depend on its
values, in a transaction (`Connection`) and in autocommit mode (`AutocommitConnection`) alike. SQLAlchemy
writes the SQL; its own way through compilation cache, execution context and result takes several times
as long as a short statement does. So a statement goes straight to the driver's cursor, except where a
transaction is to be begun or a listener wants to see it. Statements assembled from filters go through
`Connection.execute`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import BindParameter, Connection, Table, bindparam
from sqlalchemy.engine import Dialect
from sqlalchemy.types import Float, Numeric

from tsuzuki.store.sql.autocommit import AutocommitConnection
from tsuzuki.store.sql.batch import NO_PARAMETERS, Columns, pack

AnyConnection: TypeAlias = "Connection | AutocommitConnection"
"""What a prepared statement can be sent on."""

BatchStatement: TypeAlias = Callable[[Dialect, tuple[str, ...]], Any]
"""Builds the statement of a batch, once for each dialect and each set of columns that vary in the batch."""

_Processor = Callable[[Any], Any]


class ResultRows:
    """The answer to a prepared statement: rows as tuples in the order of its columns."""

    __slots__ = ("_names", "_rows", "rowcount")

    def __init__(self, rows: list[Any], rowcount: int, names: tuple[str, ...] = ()) -> None:
        self._rows = rows
        self.rowcount = rowcount
        self._names = names

    def all(self) -> list[Any]:
        return self._rows

    def mappings(self) -> list[dict[str, Any]]:
        """Rows by the names of their columns."""
        return [dict(zip(self._names, row, strict=True)) for row in self._rows]

    def scalars(self) -> list[Any]:
        """The first column."""
        return [row[0] for row in self._rows]

    def one(self) -> Any:
        (row,) = self._rows
        return row

    def one_or_none(self) -> Any:
        if len(self._rows) > 1:
            raise RuntimeError("one row was expected at most")
        return self._rows[0] if self._rows else None

    def mapping_or_none(self) -> dict[str, Any] | None:
        row = self.one_or_none()
        return None if row is None else dict(zip(self._names, row, strict=True))

    def scalar_one(self) -> Any:
        return self.one()[0]

    def scalar_one_or_none(self) -> Any:
        row = self.one_or_none()
        return None if row is None else row[0]


def execute(
    connection: AnyConnection, statement: Any, parameters: Mapping[str, Any] = NO_PARAMETERS
) -> ResultRows:
    """Send a statement that is built once and kept: it is compiled when first sent, and remembered by
    identity. Raises what SQLAlchemy would raise."""
    prepared = _prepare(connection.dialect, statement)
    values = {**prepared.constants, **parameters}
    for name, processor in prepared.bind_processors.items():
        if name in parameters:
            values[name] = processor(values[name])
    order = prepared.parameter_order
    sent = values if order is None else tuple([values[name] for name in order])
    if isinstance(connection, AutocommitConnection):
        rows, rowcount = connection.send(prepared.sql, sent, has_rows=bool(prepared.names))
    elif connection.in_transaction() and not connection.dispatch.before_cursor_execute:
        rows, rowcount = _send(connection, prepared, sent)
    else:
        result = connection.exec_driver_sql(prepared.sql, sent)
        rowcount = result.rowcount
        rows = list(result.fetchall()) if result.returns_rows else []
    if rows and prepared.result_processors:
        rows = _processed(rows, prepared.result_processors)
    return ResultRows(rows, rowcount, prepared.names)


def _send(connection: Connection, prepared: "_Prepared", values: Any) -> tuple[list[Any], int]:
    """Rows as the driver gives them, and the row count. Whether there are any is known from the statement: psycopg
    describes each column of a result anew when it is asked."""
    cursor = connection.connection.cursor()
    try:
        cursor.execute(prepared.sql, values)
        rows: Any = cursor.fetchall() if prepared.names else []
    except connection.dialect.loaded_dbapi.Error as problem:
        # What SQLAlchemy does: wrap the error, and drop the connections of a server that is gone.
        connection._handle_dbapi_exception(problem, prepared.sql, values, cursor, None)  # noqa: SLF001 -- no public way
        raise
    rowcount = cursor.rowcount
    cursor.close()
    return rows, rowcount


def execute_batch(
    connection: AnyConnection,
    statement: BatchStatement,
    columns: Columns,
    rows: Sequence[Sequence[Any]],
    parameters: Mapping[str, Any] = NO_PARAMETERS,
) -> ResultRows:
    """Send one statement for a batch of rows, with other parameters besides; nothing is sent for none."""
    if not rows:
        return ResultRows([], 0)
    dialect = connection.dialect
    packed = pack(dialect, columns, rows)
    return execute(
        connection, statement(dialect, packed.varying), {**packed.parameters, **parameters}
    )


def parameters_for(table: Table, *names: str) -> dict[str, BindParameter[Any]]:
    """Parameters for these columns of a table, each with the column's name and type."""
    return {name: bindparam(name, type_=table.c[name].type) for name in names}


class _Prepared(NamedTuple):
    """`parameter_order` names the values for a driver with positional placeholders."""

    sql: str
    parameter_order: tuple[str, ...] | None
    constants: Mapping[str, Any]
    bind_processors: Mapping[str, _Processor]
    names: tuple[str, ...]
    result_processors: tuple[tuple[int, _Processor], ...]


@lru_cache(maxsize=512)
def _prepare(dialect: Dialect, statement: Any) -> _Prepared:
    compiled = statement.compile(dialect=dialect)
    if compiled.post_compile_params:
        raise RuntimeError(f"an IN list of any length cannot be prepared: {compiled}")
    types = {name: bind.type.dialect_impl(dialect) for name, bind in compiled.binds.items()}
    processors = {name: kind.bind_processor(dialect) for name, kind in types.items()}
    bind = {name: processor for name, processor in processors.items() if processor}
    columns = [column.type.dialect_impl(dialect) for column in statement.exported_columns]
    # Drivers give numbers as they are; SQLAlchemy would ask for the type that came back.
    readers = [
        None if isinstance(kind, Numeric | Float) else kind.result_processor(dialect, None)
        for kind in columns
    ]
    fixed = {n: value for n, value in compiled.params.items() if not compiled.binds[n].required}
    return _Prepared(
        sql=compiled.string,
        parameter_order=tuple(compiled.positiontup) if compiled.positional else None,
        constants={name: bind[name](v) if name in bind else v for name, v in fixed.items()},
        bind_processors=bind,
        names=tuple(statement.exported_columns.keys()),
        result_processors=tuple((place, reader) for place, reader in enumerate(readers) if reader),
    )


def _processed(
    rows: list[Any], processors: tuple[tuple[int, _Processor], ...]
) -> list[tuple[Any, ...]]:
    """By columns: a batch of hundreds of rows costs one call a value, and none a row."""
    columns: list[Iterable[Any]] = list(zip(*rows, strict=True))
    for place, processor in processors:
        columns[place] = map(processor, columns[place])
    return list(zip(*columns, strict=True))
