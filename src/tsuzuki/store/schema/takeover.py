"""Taking over tables that an earlier program, or a person, has created with the specified columns.

A component names its specified tables (`FormerTables`). If some of them exist before the component has any revision,
they are checked column by column and kept with all their rows: what only this product has is added beside, everything
else is created from the definitions, and the database is at the newest revision. A table with other columns, rows that
the component refuses, or any other table under one of our names is refused before anything is changed.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    DateTime,
    Integer,
    PrimaryKeyConstraint,
    SmallInteger,
    String,
    Table,
    UniqueConstraint,
    inspect,
    text,
)
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SAWarning
from sqlalchemy.types import NullType, TypeDecorator, TypeEngine

from tsuzuki.model.errors import SchemaMismatch
from tsuzuki.store.schema.sql_scripts import run_script
from tsuzuki.store.schema.tables import PREFIX, WHERE
from tsuzuki.store.sql.dialect import is_sqlite

if TYPE_CHECKING:
    from tsuzuki.store.schema.migrate import Component

CODE = "foreign_table"
HINT = "Rename the table, or use another database (`database_url`). Nothing was changed."


@dataclass(frozen=True, kw_only=True)
class FormerTable:
    """A specified table. `columns` must be there; the rest of `table` is added."""

    table: Table
    columns: tuple[str, ...]
    defaults: Mapping[str, str] = field(default_factory=dict)
    """SQL literals for the columns that must have a value and that rows from before do not have."""


@dataclass(frozen=True, kw_only=True)
class FormerTables:
    """The specified tables of a component, and what is done about rows that are in them."""

    tables: tuple[FormerTable, ...]
    check: Callable[[Connection], None] | None = None
    """Called before any component is changed, once all specified tables have their columns. Raises `SchemaMismatch` if
    their rows cannot be taken over."""
    settle: Callable[[Connection, frozenset[str], datetime], None] | None = None
    """Called before indexes are created, with the names of the tables that were there and the time."""
    fill: Callable[[Connection, datetime], None] | None = None
    """Called once every table exists."""


class _Family(StrEnum):
    """Types that hold the same values."""

    TEXT = "text"
    INTEGER = "integer"
    TIME = "time"
    BOOLEAN = "boolean"
    UNTYPED = "untyped"
    OTHER = "other"


# SQLite stores any value in any column; a declared type is a preference.
_COMPATIBLE_ON_SQLITE = {
    _Family.TEXT: {_Family.TEXT, _Family.TIME, _Family.UNTYPED},
    _Family.TIME: {_Family.TIME, _Family.TEXT, _Family.UNTYPED},
    _Family.INTEGER: {_Family.INTEGER, _Family.BOOLEAN},
    _Family.BOOLEAN: {_Family.BOOLEAN, _Family.INTEGER},
}


def require_free(connection: Connection, component: "Component") -> frozenset[str]:
    """The specified tables that are there. Raises `SchemaMismatch` if one is not as specified, or if another table
    of the component exists: the component has no revision, so it is not ours."""
    inspector = inspect(connection)
    there = {name for name in component.metadata.tables if inspector.has_table(name)}
    former = {one.table.name: one for one in _former(component)}
    for name in sorted(there):
        if name not in former:
            raise SchemaMismatch(
                f"the database has a table {name!r} that Tsuzuki did not create",
                hint=HINT,
                code=CODE,
            )
        problems = list(_Existing(connection, former[name]).problems())
        if problems:
            raise SchemaMismatch(
                f"table {name!r} cannot be taken over: {'; '.join(problems)}",
                hint=HINT,
                code=CODE,
            )
    if there and component.former and (check := component.former().check):
        check(connection)
    return frozenset(there)


def take_over(connection: Connection, component: "Component", *, now: datetime) -> bool:
    """Bring a component that has no revision to the newest tables if specified ones are there, in the caller's
    transaction. False, and nothing is done, if there is none. Raises `SchemaMismatch`."""
    there = require_free(connection, component)
    if not there or component.former is None:
        return False
    former = component.former()
    taken = [_Existing(connection, one) for one in former.tables if one.table.name in there]
    try:
        for one in taken:
            one.complete()
        if former.settle is not None:
            former.settle(connection, there, now)
        for one in taken:
            one.index()
        component.metadata.create_all(connection, checkfirst=True)
        for script in component.trigger_scripts(connection.dialect.name):
            run_script(connection, script)
        if former.fill is not None:
            former.fill(connection, now)
        for table in component.metadata.tables.values():
            _continue_numbers(connection, table)
    except (OperationalError, InterfaceError):
        raise  # the database, not its tables
    except DBAPIError as problem:
        first_line = str(problem.orig).partition("\n")[0]
        raise SchemaMismatch(
            f"tables {', '.join(sorted(there))} cannot be taken over: {first_line}",
            hint=HINT,
            code=CODE,
        ) from problem
    return True


def differences(connection: Connection, component: "Component") -> list[str]:
    """How the specified tables of an upgraded component differ from what it needs; empty if they do not."""
    found = []
    for former in _former(component):
        if not inspect(connection).has_table(former.table.name):
            found.append(f"table {former.table.name} is missing")
            continue
        existing = _Existing(connection, former)
        found += [
            f"{former.table.name}: {words}"
            for words in [*existing.problems(), *existing.incomplete()]
        ]
    return found


def names(component: "Component") -> frozenset[str]:
    """The specified tables of a component."""
    return frozenset(one.table.name for one in _former(component))


def _former(component: "Component") -> Sequence[FormerTable]:
    return component.former().tables if component.former else ()


class _Existing:
    """A specified table as it is in the database."""

    def __init__(self, connection: Connection, former: FormerTable) -> None:
        self._connection = connection
        self._former = former
        self._table = former.table
        self._is_sqlite = is_sqlite(connection.dialect)
        name, inspector = former.table.name, inspect(connection)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SAWarning)  # a type that SQLAlchemy does not know
            columns = inspector.get_columns(name)
            options: Any = {"include_auto_indexes": True} if self._is_sqlite else {}
            indexes = inspector.get_indexes(name, **options)
        self._columns = {self._key(one["name"]): one for one in columns}
        self._indexes = {one["name"]: one for one in indexes}
        self._primary_key = [
            self._key(one) for one in inspector.get_pk_constraint(name)["constrained_columns"]
        ]

    def problems(self) -> Iterator[str]:
        """Why the table cannot be used."""
        for name in self._former.columns:
            if name not in self._columns:
                yield f"column {name!r} is missing"
        for name, column in self._columns.items():
            ours = self._table.c.get(name)
            if ours is not None and not self._is_compatible(ours, column["type"]):
                yield f"column {name!r} is {column['type']!s}, not {_family(ours.type).value}"
            elif ours is None and self._must_be_given(name):
                yield f"column {name!r} requires a value and is unknown"
        if any(name not in self._columns for name in self._former.columns):
            return
        yield from self._key_problems()
        yield from self._empty_columns()

    def incomplete(self) -> Iterator[str]:
        """What `complete` and `index` would add."""
        for column in self._table.c:
            if column.name not in self._columns:
                yield f"column {column.name!r} is missing"
        for index in self._missing_indexes():
            yield f"index {index.name!r} is missing"

    def complete(self) -> None:
        """Add the columns that only we have, and give the others types that hold every value we store."""
        for column in self._table.c:
            if column.name not in self._columns:
                self._add(column)
            elif not self._is_sqlite:
                self._widen(column)

    def index(self) -> None:
        """Create the indexes and unique keys that are missing."""
        table = self._quoted(self._table.name)
        for index in self._missing_indexes():
            kind = "UNIQUE INDEX" if index.is_unique else "INDEX"
            columns = ", ".join(map(self._quoted, index.columns))
            where = f" WHERE {index.where}" if index.where else ""
            name = self._quoted(index.name)
            self._connection.execute(
                text(f"CREATE {kind} IF NOT EXISTS {name} ON {table} ({columns}){where}")
            )

    # --- columns --------------------------------------------------------------------------------

    def _key(self, name: str) -> str:
        """SQLite does not tell upper from lower case."""
        return name.lower() if self._is_sqlite else name

    def _is_compatible(self, ours: Column[Any], found: TypeEngine[Any]) -> bool:
        wanted, there = _family(ours.type), _family(found)
        if not self._is_sqlite:
            return wanted is there
        return there in _COMPATIBLE_ON_SQLITE.get(wanted, {wanted})

    def _must_be_given(self, name: str) -> bool:
        column = self._columns[name]
        return not (
            column["nullable"]
            or column.get("default") is not None
            or column.get("identity")
            or column.get("computed")
            or self._primary_key == [name]
        )

    def _empty_columns(self) -> Iterator[str]:
        """Columns that must have a value and do not have one in some row."""
        table = self._quoted(self._table.name)
        for name in self._former.columns:
            if self._table.c[name].nullable or not self._columns[name]["nullable"]:
                continue
            found = text(f"SELECT 1 FROM {table} WHERE {self._quoted(name)} IS NULL LIMIT 1")
            if self._connection.execute(found).first() is not None:
                yield f"some rows have no {name!r}"

    def _add(self, column: Column[Any]) -> None:
        kind = column.type.compile(dialect=self._connection.dialect)
        needed = (
            "" if column.nullable else f" NOT NULL DEFAULT {self._former.defaults[column.name]}"
        )
        self._alter(f"ADD COLUMN {self._quoted(column.name)} {kind}{needed}")

    def _widen(self, column: Column[Any]) -> None:
        """PostgreSQL: times get a zone, text has no limit, and a number that we do not give is counted up."""
        name, found = self._quoted(column.name), self._columns[column.name]
        kind = found["type"]
        if isinstance(kind, DateTime) and not kind.timezone:
            self._alter(f"ALTER COLUMN {name} TYPE TIMESTAMPTZ USING {name} AT TIME ZONE 'UTC'")
        elif isinstance(kind, String) and kind.length is not None:
            self._alter(f"ALTER COLUMN {name} TYPE TEXT")
        is_given = found.get("default") is not None or found.get("identity")
        if column is self._table.autoincrement_column and not is_given:
            self._alter(f"ALTER COLUMN {name} ADD GENERATED BY DEFAULT AS IDENTITY")

    def _alter(self, change: str) -> None:
        self._connection.execute(text(f"ALTER TABLE {self._quoted(self._table.name)} {change}"))

    def _quoted(self, name: str) -> str:
        return self._connection.dialect.identifier_preparer.quote(name)

    # --- keys and indexes -----------------------------------------------------------------------

    def _key_problems(self) -> Iterator[str]:
        counted = self._table.autoincrement_column
        if counted is not None and not self._is_counted(counted.name):
            yield f"{counted.name!r} is not its INTEGER PRIMARY KEY"
        for index in _indexes_of(self._table):
            found = self._indexes.get(index.name)
            if found is None or not index.is_unique or self._serves(found, index):
                continue
            if not (index.is_key and self._has_key(index)):
                yield f"index {index.name!r} is not unique, or has other columns"

    def _is_counted(self, name: str) -> bool:
        if self._primary_key != [name]:
            return False
        if not self._is_sqlite:
            return True
        # Only a column declared with exactly this type is the row's number.
        query = text("SELECT type FROM pragma_table_info(:table) WHERE lower(name) = :name")
        values = {"table": self._table.name, "name": name}
        return str(self._connection.execute(query, values).scalar_one()).upper() == "INTEGER"

    def _missing_indexes(self) -> list["_Index"]:
        return [
            index
            for index in _indexes_of(self._table)
            if index.name not in self._indexes and not (index.is_key and self._has_key(index))
        ]

    def _has_key(self, index: "_Index") -> bool:
        """Whether another key makes the columns unique."""
        keys = [self._primary_key] + [
            self._columns_of(found)
            for found in self._indexes.values()
            if found["unique"] and _where_of(found.get("dialect_options", {})) is None
        ]
        return sorted(index.columns) in map(sorted, keys)

    def _serves(self, found: Any, index: "_Index") -> bool:
        is_as_unique = found["unique"] or not index.is_unique
        return self._columns_of(found) == list(index.columns) and is_as_unique

    def _columns_of(self, found: Any) -> list[str]:
        return [self._key(name) for name in found["column_names"] if name]


@dataclass(frozen=True, kw_only=True)
class _Index:
    """An index that a table needs."""

    name: str
    columns: tuple[str, ...]
    is_unique: bool
    where: str | None = None

    @property
    def is_key(self) -> bool:
        return self.is_unique and self.where is None


def _indexes_of(table: Table) -> Iterator[_Index]:
    """The indexes of a definition, and a unique one for each of its keys."""
    for constraint in table.constraints:
        if isinstance(constraint, PrimaryKeyConstraint | UniqueConstraint) and constraint.columns:
            columns = tuple(column.name for column in constraint.columns)
            name = PREFIX + "_".join(("key", table.name, *columns))
            yield _Index(name=name, columns=columns, is_unique=True)
    for index in table.indexes:
        options = {f"x_{k}": v for k, v in index.dialect_options["sqlite"].items()}
        where = index.info.get(WHERE, {}).get("sqlite", _where_of(options))
        yield _Index(
            name=str(index.name),
            columns=tuple(index.columns.keys()),
            is_unique=bool(index.unique),
            where=None if where is None else str(where),
        )


def _where_of(options: Mapping[str, Any]) -> Any:
    """The condition of a partial index, None for a whole one."""
    return next(
        (value for name, value in options.items() if name.endswith("_where") and value is not None),
        None,
    )


def _family(kind: TypeEngine[Any]) -> _Family:
    if isinstance(kind, TypeDecorator):
        return _family(kind.impl_instance)
    families: list[tuple[type[TypeEngine[Any]] | tuple[type[TypeEngine[Any]], ...], _Family]] = [
        (NullType, _Family.UNTYPED),
        (SmallInteger, _Family.OTHER),
        (Boolean, _Family.BOOLEAN),
        (Integer, _Family.INTEGER),
        (DateTime, _Family.TIME),
        (String, _Family.TEXT),
    ]
    return next((family for base, family in families if isinstance(kind, base)), _Family.OTHER)


def _continue_numbers(connection: Connection, table: Table) -> None:
    """PostgreSQL: number new rows behind those that are there. SQLite does so by itself."""
    counted = table.autoincrement_column
    if counted is None or is_sqlite(connection.dialect):
        return
    quoted = connection.dialect.identifier_preparer.quote
    connection.execute(
        text(
            "SELECT setval(CAST(pg_get_serial_sequence(:table, :column) AS regclass),"
            " coalesce(max(id), 1), max(id) IS NOT NULL)"
            f" FROM (SELECT {quoted(counted.name)} AS id FROM {quoted(table.name)}) AS numbered"
        ),
        {"table": quoted(table.name), "column": counted.name},
    )
