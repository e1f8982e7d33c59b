"""Schema migrations: bring a database to the tables this version needs, or refuse with a clear error.

The engine and every collector are a `Component`: a name, its tables and a folder of Alembic revisions. Each has
its own version table, so a collector that is not installed does not affect the others. Each is upgraded in one
transaction of its own, the engine first, so a collector whose migration fails leaves the others upgraded. All
take one lock: of several processes that start at the same time, one migrates and the others find it done.
Revisions only go forward.

A migration that says `expands = True` only adds what older versions need not know: they go on beside it
(`compatibility`).

Ours are SQL in files, one for each database (`sql_scripts`), and begin with one baseline per component. Alembic does
the work (`migration_steps`), and is imported only when there is something to do: its import takes
longer than most commands.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from sqlalchemy import (
    CompoundSelect,
    Connection,
    MetaData,
    Select,
    Text,
    column,
    inspect,
    literal,
    select,
    table,
    union_all,
)
from sqlalchemy.exc import DBAPIError

from tsuzuki.model.errors import SchemaMismatch
from tsuzuki.store.schema import access_tables, history_tables, operation_tables, tables, takeover
from tsuzuki.store.schema.compatibility import is_compatible, store_compatibility
from tsuzuki.store.schema.sql_scripts import scripts, triggers_in
from tsuzuki.store.schema.takeover import FormerTables, require_free, take_over
from tsuzuki.store.sql.advisory_lock import lock_until_commit
from tsuzuki.store.sql.database import Database
from tsuzuki.store.sql.prepared import execute

MIGRATIONS = Path(__file__).parent / "migrations"
_REVISION = re.compile(
    r"""^(revision|down_revision)\s*(?::[^=\n]+)?=\s*(?:None|["']([^"']+)["'])""", re.MULTILINE
)
"""How a migration names itself and the one before it, with or without a type annotation."""

_EXPANDS = re.compile(r"^expands\s*(?::[^=\n]+)?=\s*True\b", re.MULTILINE)

FORMER = "schema_version_engine"
"""The version table of databases from before the first release."""

LOCK_KEY = 0x7473757A  # "tsuz": one advisory lock for all migrations of a database


@dataclass(frozen=True, kw_only=True)
class Component:
    """A part of the product that has tables. `versions` is the folder of its Alembic revisions,
    `distribution` is what a user upgrades to get newer ones."""

    name: str
    metadata: MetaData
    versions: Path
    distribution: str = "Tsuzuki"
    former: Callable[[], FormerTables] | None = None
    """Tables that another program may have created before; None if there are none."""
    inspect: Callable[[Connection], list[str]] | None = None
    """Problems of what its tables hold, for `tsuzuki db check`."""

    @property
    def version_table(self) -> str:
        return f"tsuzuki_schema_version_{self.name}"

    @property
    def revisions(self) -> list[str]:
        """From the first to the newest, as each names the one before it."""
        return list(_revisions_in(self.versions))

    def trigger_scripts(self, dialect: str) -> list[Path]:
        """What its migrations create beside tables, for a database that has some of the tables already."""
        return [path for path in scripts(self.versions, dialect) if "_triggers." in path.name]

    def triggers(self, dialect: str) -> list[str]:
        """The names of its triggers."""
        return triggers_in(self.trigger_scripts(dialect))

    def newest(self) -> str:
        if not self.revisions:
            raise ValueError(f"{self.versions} contains no migration")
        return self.revisions[-1]

    def oldest_compatible(self) -> str:
        """The oldest revision whose version can work on the newest tables: every migration since only expands."""
        expanding = _expanding_in(self.versions)
        since = [revision for revision in self.revisions if revision not in expanding]
        return since[-1] if since else self.revisions[0]


@cache
def _expanding_in(folder: Path) -> frozenset[str]:
    texts = [path.read_text("utf-8") for path in folder.glob("*.py")]
    named = [dict(_REVISION.findall(text)) for text in texts if _EXPANDS.search(text)]
    return frozenset(names["revision"] for names in named if names.get("revision"))


@cache
def _revisions_in(folder: Path) -> tuple[str, ...]:
    following: dict[str | None, str] = {}
    for path in folder.glob("*.py"):
        named = {name: value or None for name, value in _REVISION.findall(path.read_text("utf-8"))}
        before, revision = named.get("down_revision"), named.get("revision")
        if revision is None:
            continue
        if before in following:
            raise ValueError(f"{folder} has two migrations after {before or 'nothing'}")
        following[before] = revision
    ordered: list[str] = []
    while (revision := following.get(ordered[-1] if ordered else None)) is not None:
        ordered.append(revision)
    return tuple(ordered)


def _metadata_of(*modules: ModuleType) -> MetaData:
    """The one metadata to which all these modules add their tables."""
    found: set[MetaData] = {module.metadata for module in modules}
    (metadata,) = found
    return metadata


ENGINE = Component(
    name="engine",
    metadata=_metadata_of(tables, access_tables, history_tables, operation_tables),
    versions=MIGRATIONS / "versions",
)


@dataclass(frozen=True, kw_only=True)
class Upgrade:
    """The upgrade of one component; `before` is None for a new database."""

    component: str
    before: str | None
    after: str

    @property
    def changed(self) -> bool:
        return self.before != self.after


def current_revision(connection: Connection, component: Component) -> str | None:
    """The revision a database is at; None if it has no tables of the component."""
    if not inspect(connection).has_table(component.version_table):
        return None
    query = _revision_query(component.version_table)
    revision: str | None = execute(connection, query).scalar_one_or_none()
    return revision


@cache
def _revision_query(version_table: str) -> Select[Any]:
    return select(column("version_num", Text())).select_from(table(version_table))


def _revisions_of(connection: Connection, components: Sequence[Component]) -> dict[str, str]:
    """By version table; one that is empty is missing."""
    tables_of_versions = tuple(component.version_table for component in components)
    if not tables_of_versions:
        return {}
    rows = execute(connection, _revisions_query(tables_of_versions)).all()
    return dict(rows)


@cache
def _revisions_query(version_tables: tuple[str, ...]) -> CompoundSelect[Any]:
    return union_all(
        *(
            select(literal(name, Text()), column("version_num", Text())).select_from(table(name))
            for name in version_tables
        )
    )


def upgrade(
    database: Database, components: Sequence[Component] = (ENGINE,), *, to: str = "head"
) -> list[Upgrade]:
    """Bring every component to its newest revision (or, in tests, to a named one), the engine first."""
    if to == "head" and (done := _already_current(database, components)):
        return done
    _require_free(database, components)
    engine_first = sorted(components, key=lambda component: component is not ENGINE)
    return [_upgrade_one(database, component, to) for component in engine_first]


def require_current(database: Database, components: Sequence[Component] = (ENGINE,)) -> None:
    """Raise `SchemaMismatch` if the tables are those of another version."""
    with database.read() as connection:
        for component in components:
            found = current_revision(connection, component)
            if not _is_usable(connection, component, found):
                raise SchemaMismatch(
                    f"the database is at revision {found or 'none'} of {component.name}, "
                    f"this version needs {component.newest()}",
                    hint="Run: tsuzuki db upgrade",
                )


def in_use(database: Database, components: Iterable[Component]) -> list[Component]:
    """Those that have tables in the database, of whatever version."""
    if database.path is not None and not database.path.exists():
        return []
    with database.read() as connection:
        return [one for one in components if current_revision(connection, one) is not None]


class SchemaWatch:
    """Whether the tables are still those this process works with, in one query for all components. `components` may
    grow: the tables of a collector are created when it is first used."""

    def __init__(self, components: Callable[[], Iterable[Component]] = lambda: (ENGINE,)) -> None:
        self._components = components
        self._expected: dict[str, str] = {}

    def check(self, connection: Connection) -> dict[str, str]:
        """Raise `SchemaMismatch` if another version has changed the tables since, other than by adding to them.
        Returns the components that were expanded since the last check, with their revisions."""
        expanded: dict[str, str] = {}
        components = list(self._components())
        revisions = _revisions_of(connection, components)
        for component in components:
            expected = self._expected.setdefault(component.name, component.newest())
            found = revisions.get(component.version_table)
            if (
                found is not None
                and found != expected
                and is_compatible(connection, component, found)
            ):
                self._expected[component.name] = found
                expanded[component.name] = found
            elif found != expected:
                raise SchemaMismatch(
                    f"the database was upgraded to revision {found} of {component.name} while this "
                    f"process worked with {expected}",
                    hint=f"Upgrade {component.distribution} here to the version that did this, and start "
                    "again.",
                )
        return expanded


def _already_current(database: Database, components: Iterable[Component]) -> list[Upgrade]:
    path = database.path
    if path is not None and not path.exists():
        return []
    done: list[Upgrade] = []
    with database.read() as connection:
        for component in components:
            found = current_revision(connection, component)
            if found is None or not _is_usable(connection, component, found):
                return []
            done.append(Upgrade(component=component.name, before=found, after=found))
    return done


def _require_free(database: Database, components: Iterable[Component]) -> None:
    """Raise `SchemaMismatch` before any component is upgraded if one of them cannot be."""
    if database.path is not None and not database.path.exists():
        return
    with database.read() as connection:
        for component in components:
            if current_revision(connection, component) is None:
                _require_free_of(connection, component)


def _require_free_of(connection: Connection, component: Component) -> None:
    if component is ENGINE and inspect(connection).has_table(FORMER):
        raise SchemaMismatch(
            "the database was created by a version of Tsuzuki before 0.1.0, whose tables cannot be upgraded",
            hint="Use another database (`database_url`), or move this one away and run: tsuzuki db "
            "upgrade. Nothing was changed.",
        )
    try:
        require_free(connection, component)
    except SchemaMismatch:
        if current_revision(connection, component) is None:
            raise
        # Another process has created the tables between the two questions.


def _upgrade_one(database: Database, component: Component, to: str) -> Upgrade:
    from tsuzuki.store.schema.migration_steps import run, stamp  # noqa: PLC0415 -- slow to load, rarely needed

    with database.write() as connection:
        lock_until_commit(connection, LOCK_KEY)
        before = current_revision(connection, component)
        if before is not None and before not in component.revisions:
            _is_usable(connection, component, before)
            return Upgrade(component=component.name, before=before, after=before)
        is_new = before is None and to == "head"
        if is_new and take_over(connection, component, now=database.clock.now()):
            stamp(connection, component)
        else:
            try:
                run(connection, component, to=to)
            except DBAPIError as problem:
                if refusal := _foreign_name(component, problem):
                    raise refusal from problem
                raise
        after = current_revision(connection, component)
        if after == component.newest():
            store_compatibility(connection, component)
    if after is None:
        raise ValueError(f"the migrations of {component.name} left no revision")
    return Upgrade(component=component.name, before=before, after=after)


def _foreign_name(component: Component, problem: DBAPIError) -> SchemaMismatch | None:
    """What is wrong if another program has an index or a view under one of the names; tables are checked before."""
    first_line = str(problem.orig).partition("\n")[0]
    if "already exists" not in first_line:
        return None
    return SchemaMismatch(
        f"cannot create the tables of {component.name}: {first_line}",
        hint=takeover.HINT,
        code=takeover.CODE,
    )


def _is_usable(connection: Connection, component: Component, revision: str | None) -> bool:
    """Whether the tables are ours, or newer and compatible. Raises `SchemaMismatch` if they are newer and not."""
    if revision is None or revision in component.revisions:
        return revision == component.newest()
    if is_compatible(connection, component, revision):
        return True
    raise SchemaMismatch(
        f"the database is at revision {revision} of {component.name}, which this version "
        f"of {component.distribution} does not know",
        hint=f"A newer version wrote it: upgrade {component.distribution} here too. Nothing was "
        "changed.",
    )
