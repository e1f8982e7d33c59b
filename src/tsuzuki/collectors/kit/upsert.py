"""Insert or update the rows of a page, in one statement unless there are more than one can hold."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, bindparam, select
from sqlalchemy.engine import Dialect

from tsuzuki.store.sql.batch import Columns, pack, unpack
from tsuzuki.store.sql.dialect import insert_into, is_sqlite, upsert_from
from tsuzuki.store.sql.prepared import execute

ROWS_MAX = 1_000
"""Rows in one statement."""

SQLITE_VARIABLES_MAX = 32_766
"""Parameters in one statement; some builds allow more. PostgreSQL allows 65,535, and a batch has one for each
column."""


def insert_from(dialect: Dialect, table: Table, values: Mapping[str, ColumnElement[Any]]) -> Any:
    """INSERT … SELECT. The values are columns of a batch (`store.sql.batch`) and parameters; the result
    has `on_conflict_do_nothing` and `on_conflict_do_update`."""
    columns = [value.label(name) for name, value in values.items()]
    return upsert_from(dialect, table, list(values), select(*columns))


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
        self._statements: dict[tuple[Dialect, int | tuple[str, ...]], Any] = {}
        self._row_names: list[list[str]] = []
        self._sqlite_rows_max = min(
            SQLITE_VARIABLES_MAX // (len(columns) + len(constants)), ROWS_MAX
        )

    def send(
        self, connection: Connection, rows: Sequence[tuple[Any, ...]], constants: Mapping[str, Any]
    ) -> None:
        """Store `rows`, each in the order of `columns`. The order of `constants` does not matter."""
        rows_max = self._sqlite_rows_max if is_sqlite(connection.dialect) else ROWS_MAX
        for first in range(0, len(rows), rows_max):
            self._send(connection, rows[first : first + rows_max], constants)

    def _send(
        self, connection: Connection, rows: Sequence[tuple[Any, ...]], constants: Mapping[str, Any]
    ) -> None:
        dialect = connection.dialect
        if is_sqlite(dialect):
            # To read a page of books as a batch takes SQLite half as long again.
            values = dict(constants)
            for number, row in enumerate(rows):
                values.update(zip(self._row_parameters(number), row, strict=True))
            execute(connection, self._statement(dialect, len(rows)), values)
        else:
            packed = pack(dialect, self._columns, rows)
            execute(connection, self._statement(dialect, packed.varying), packed.with_(**constants))

    def _statement(self, dialect: Dialect, shape: int | tuple[str, ...]) -> Any:
        """The statement for so many rows, or for a batch in which these columns vary; built once."""
        key = dialect, shape
        if key not in self._statements:
            insert = (
                self._insert_values(dialect, shape)
                if isinstance(shape, int)
                else self._insert_batch(dialect, shape)
            )
            self._statements[key] = self._on_conflict(insert)
        return self._statements[key]

    def _insert_batch(self, dialect: Dialect, varying: tuple[str, ...]) -> Any:
        page = unpack(dialect, self._columns, varying)
        return insert_from(dialect, self._table, {**dict(page.c.items()), **self._parameters()})

    def _insert_values(self, dialect: Dialect, count: int) -> Any:
        """INSERT … VALUES with `count` rows."""
        rows = [
            self._parameters()
            | {
                column: bindparam(parameter, type_=kind)
                for parameter, (column, kind) in zip(
                    self._row_parameters(number), self._columns.items(), strict=True
                )
            }
            for number in range(count)
        ]
        return insert_into(dialect, self._table).values(rows)

    def _row_parameters(self, number: int) -> list[str]:
        """The names of the parameters of one row, in the order of `columns`."""
        while len(self._row_names) <= number:
            prefix = f"row_{len(self._row_names)}"
            self._row_names.append([f"{prefix}_{name}" for name in self._columns])
        return self._row_names[number]

    def _on_conflict(self, statement: Any) -> Any:
        if self._keep is None:
            return statement.on_conflict_do_nothing()
        key = [column.name for column in self._table.primary_key]
        written = {*self._columns, *self._constants} - {*key, *self._keep}
        return statement.on_conflict_do_update(
            index_elements=key, set_={name: statement.excluded[name] for name in sorted(written)}
        )

    def _parameters(self) -> dict[str, Any]:
        return {name: bindparam(name, type_=kind) for name, kind in self._constants.items()}
