"""Schema migrations: bring a database to the tables this version needs, or refuse with a clear error.

The engine and every collector are a `Component`: a name, its tables and a folder of Alembic revisions. Each has
its own version table, so a collector that is not installed does not affect the others. All of them are upgraded
in one transaction under one lock: of several processes that start at the same time, one migrates and the others
find it done. Revisions only go forward.

Alembic does the work (`migration_steps`), and is imported only when there is something to do: its import takes
longer than most commands.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sqlalchemy import Connection, MetaData, TextClause, inspect, text

from tsuzuki.model.errors import SchemaMismatch
from tsuzuki.store.schema import tables
from tsuzuki.store.sql.database import Database
from tsuzuki.store.sql.dialect import lock_until_commit

MIGRATIONS = Path(__file__).parent / "migrations"
_REVISION = re.compile(r'^revision = "(.+)"$', re.MULTILINE)
LOCK_KEY = 0x7473757A  # "tsuz": one advisory lock for all migrations of a database


@dataclass(frozen=True, kw_only=True)
class Component:
    """A part of the product that has tables. `versions` is the folder of its Alembic revisions,
    `distribution` is what a user upgrades to get newer ones."""

    name: str
    metadata: MetaData
    versions: Path
    distribution: str = "Tsuzuki"

    @property
    def version_table(self) -> str:
        return f"schema_version_{self.name}"

    @property
    def revisions(self) -> list[str]:
        """From the first to the newest, in the order of their files."""
        return list(_revisions_in(self.versions))

    def newest(self) -> str:
        if not self.revisions:
            raise ValueError(f"{self.versions} contains no migration")
        return self.revisions[-1]


@cache
def _revisions_in(folder: Path) -> tuple[str, ...]:
    files = sorted(folder.glob("[0-9]*_*.py"))
    found = (_REVISION.search(path.read_text("utf-8")) for path in files)
    return tuple(revision[1] for revision in found if revision is not None)


ENGINE = Component(name="engine", metadata=tables.metadata, versions=MIGRATIONS / "versions")


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
    revision: str | None = connection.execute(_revision_query(component)).scalar_one_or_none()
    return revision


def _revision_query(component: Component) -> TextClause:
    return text(f"SELECT version_num FROM {component.version_table}")


def upgrade(
    database: Database, components: Sequence[Component] = (ENGINE,), *, to: str = "head"
) -> list[Upgrade]:
    """Bring every component to its newest revision (or, in tests, to a named one)."""
    if to == "head" and (done := _already_current(database, components)):
        return done
    with database.write() as connection:
        lock_until_commit(connection, LOCK_KEY)
        return [_upgrade_one(connection, component, to) for component in components]


def require_current(database: Database, components: Sequence[Component] = (ENGINE,)) -> None:
    """Raise `SchemaMismatch` if the tables are those of another version."""
    with database.read() as connection:
        for component in components:
            found = current_revision(connection, component)
            _require_known(component, found)
            if found != component.newest():
                raise SchemaMismatch(
                    f"the database is at revision {found or 'none'} of {component.name}, "
                    f"this version needs {component.newest()}",
                    hint="Run: tsuzuki db upgrade",
                )


class SchemaWatch:
    """Whether the tables are still those this process started with. One row is read per component."""

    def __init__(self, components: Sequence[Component] = (ENGINE,)) -> None:
        self._expected = [
            (component, component.newest(), _revision_query(component)) for component in components
        ]

    def check(self, connection: Connection) -> None:
        """Raise `SchemaMismatch` if another version has upgraded the tables since."""
        for component, expected, query in self._expected:
            found = connection.execute(query).scalar_one_or_none()
            if found != expected:
                raise SchemaMismatch(
                    f"the database was brought to revision {found} of {component.name} "
                    f"while this process worked with {expected}",
                    hint="It was upgraded by another version: "
                    f"upgrade {component.distribution} here and start again.",
                )


def _already_current(database: Database, components: Iterable[Component]) -> list[Upgrade]:
    path = database.path
    if path is not None and not path.exists():
        return []
    done: list[Upgrade] = []
    with database.read() as connection:
        for component in components:
            found = current_revision(connection, component)
            _require_known(component, found)
            if found != component.newest():
                return []
            done.append(Upgrade(component=component.name, before=found, after=found))
    return done


def _upgrade_one(connection: Connection, component: Component, to: str) -> Upgrade:
    from tsuzuki.store.schema.migration_steps import run  # noqa: PLC0415 -- slow to load, rarely needed

    before = current_revision(connection, component)
    _require_known(component, before)
    run(connection, component, to=to)
    after = current_revision(connection, component)
    if after is None:
        raise ValueError(f"the migrations of {component.name} left no revision")
    return Upgrade(component=component.name, before=before, after=after)


def _require_known(component: Component, revision: str | None) -> None:
    if revision is not None and revision not in component.revisions:
        raise SchemaMismatch(
            f"the database is at revision {revision} of {component.name}, "
            f"which this version of {component.distribution} does not know",
            hint=f"It was written by a newer version: upgrade {component.distribution} here too. "
            "Nothing was changed.",
        )


def table_names(connection: Connection) -> set[str]:
    """Every table in the database, ours or not."""
    return set(inspect(connection).get_table_names())
