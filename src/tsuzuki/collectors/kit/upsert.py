"""Insert or update the rows of a page in one statement."""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, bindparam, select, true
from sqlalchemy.engine import Dialect

from tsuzuki.store.sql.batch import Columns, pack, unpack
from tsuzuki.store.sql.dialect import insert_into, is_sqlite
from tsuzuki.store.sql.prepared import execute


def insert_from(dialect: Dialect, table: Table, values: Mapping[str, ColumnElement[Any]]) -> Any:
    """INSERT … SELECT. The values are columns of a batch (`store.sql.batch`) and parameters; the result
    has `on_conflict_do_nothing` and `on_conflict_do_update`."""
    columns = [value.label(name) for name, value in values.items()]
    # Without a WHERE, SQLite would take ON CONFLICT for the condition of a join.
    return insert_into(dialect, table).from_select(list(values), select(*columns).where(true()))


class PageUpsert:
    """The rows of small pages into one table. `columns` differ from row to row, `constants` are the same
    in a page. A row whose key is stored gets the new values, except those in `keep`; with None it stays
    as it is."""

    def __init__(
        self, table: Table, *, columns: Columns, constants: Columns, keep: Collection[str] | None
    ) -> None:
        self._table = table
        self._columns = columns
        self._constants = constants
        self._keep = keep
        self._from_batch: dict[tuple[Dialect, tuple[str, ...]], Any] = {}
        self._from_values: dict[int, tuple[str, Callable[[Any], Any]]] = {}

    def send(
        self, connection: Connection, rows: Sequence[tuple[Any, ...]], constants: Mapping[str, Any]
    ) -> None:
        if is_sqlite(connection.dialect):
            self._send_values(connection, rows, constants)
            return
        packed = pack(connection.dialect, self._columns, rows)
        key = connection.dialect, packed.varying
        if key not in self._from_batch:
            self._from_batch[key] = self._insert_batch(*key)
        execute(connection, self._from_batch[key], packed.with_(**constants))

    def _insert_batch(self, dialect: Dialect, varying: tuple[str, ...]) -> Any:
        page = unpack(dialect, self._columns, varying)
        values = {**dict(page.c.items()), **self._parameters(self._constants)}
        return self._on_conflict(insert_from(dialect, self._table, values))

    def _send_values(
        self, connection: Connection, rows: Sequence[tuple[Any, ...]], constants: Mapping[str, Any]
    ) -> None:
        """INSERT … VALUES, sent to the driver as it is: the one raw statement of the collectors. On
        SQLite, to read a page of books as a batch takes half as long again, which is a twentieth of the
        whole collection; and a driver that is given row by row lets other threads in at every one."""
        dialect = connection.dialect
        if len(rows) not in self._from_values:
            self._from_values[len(rows)] = self._insert_values(dialect, len(rows))
        sql, in_order = self._from_values[len(rows)]
        same = tuple(_bound(dialect, self._constants[name], constants[name]) for name in constants)
        values = chain.from_iterable(in_order((*row, *same)) for row in rows)
        connection.exec_driver_sql(sql, tuple(values))

    def _insert_values(self, dialect: Dialect, count: int) -> tuple[str, Callable[[Any], Any]]:
        names = [*self._columns, *self._constants]
        parameters = self._parameters({**self._columns, **self._constants})
        statement = insert_into(dialect, self._table).values(parameters)
        compiled = self._on_conflict(statement).compile(dialect=dialect)
        row = f"({', '.join('?' * len(names))})"
        sql = compiled.string.replace(row, ", ".join([row] * count), 1)
        return sql, itemgetter(*(names.index(name) for name in compiled.positiontup))

    def _on_conflict(self, statement: Any) -> Any:
        if self._keep is None:
            return statement.on_conflict_do_nothing()
        key = [column.name for column in self._table.primary_key]
        written = {*self._columns, *self._constants} - {*key, *self._keep}
        return statement.on_conflict_do_update(
            index_elements=key, set_={name: statement.excluded[name] for name in sorted(written)}
        )

    def _parameters(self, columns: Columns) -> dict[str, Any]:
        return {name: bindparam(name, type_=kind) for name, kind in columns.items()}


def _bound(dialect: Dialect, kind: Any, value: Any) -> Any:
    """A value as the driver takes it."""
    bind = kind.dialect_impl(dialect).bind_processor(dialect)
    return bind(value) if bind else value
