"""Runs Alembic: upgrades from one revision to another, and compares tables with their definitions."""

import warnings
from typing import Any

from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection
from sqlalchemy.exc import SAWarning

from tsuzuki.store.schema import tables, takeover
from tsuzuki.store.schema.migrate import MIGRATIONS, Component


def scripts_of(component: Component) -> ScriptDirectory:
    config = Config()
    for option, folder in (
        ("script_location", MIGRATIONS),
        ("version_locations", component.versions),
    ):
        config.set_main_option(option, str(folder).replace("%", "%%"))  # it is a template
    config.set_main_option("path_separator", "newline")
    return ScriptDirectory.from_config(config)


def run(connection: Connection, component: Component, *, to: str) -> None:
    """Run every revision after the one the database is at, up to `to`."""
    scripts = scripts_of(component)

    def steps(revision: Any, _context: MigrationContext) -> Any:
        return scripts._upgrade_revs(to, revision)  # noqa: SLF001 -- what alembic.command calls

    with EnvironmentContext(Config(), scripts, fn=steps, destination_rev=to) as environment:
        environment.configure(connection=connection, version_table=component.version_table)
        environment.run_migrations()


def stamp(connection: Connection, component: Component) -> None:
    """Note that the tables are those of the newest revision; the caller has created them."""
    options = {"version_table": component.version_table}
    context = MigrationContext.configure(connection, opts=options)
    context.stamp(scripts_of(component), component.newest())


def drift(connection: Connection, component: Component) -> list[str]:
    """How the tables in the database differ from their definitions; empty if they are the same. Those that may have
    been taken over need not be the same, only complete."""
    own = set(component.metadata.tables) - takeover.names(component)
    dialect = connection.dialect.name

    def is_ours(item: Any, name: str | None, kind: str, _reflected: bool, _to: Any) -> bool:
        is_for_dialect = item.info.get(tables.ONLY_ON, dialect) == dialect
        return is_for_dialect and (kind != "table" or name in own)

    context = MigrationContext.configure(
        connection, opts={"version_table": component.version_table, "include_object": is_ours}
    )
    with warnings.catch_warnings():
        # SQLite cannot reflect expression indexes; we have none, the warning is about other tables.
        warnings.simplefilter("ignore", SAWarning)
        found = [str(difference) for difference in compare_metadata(context, component.metadata)]
    return found + takeover.differences(connection, component)
