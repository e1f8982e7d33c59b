"""The SQL of migrations, in files that can be read without Python.

A migration `0001_baseline.py` calls `run_scripts(__file__)`. Its scripts are beside it, in the order of their names,
one of each for both dialects: `0001_tables.sqlite.sql`, `0001_tables.postgresql.sql`.
"""

import re
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

from sqlalchemy import Connection

from tsuzuki.store.sql.dialect import is_sqlite

_TRIGGER = re.compile(r"^(CREATE|DROP) TRIGGER (?:IF EXISTS )?(\w+)", re.MULTILINE)


def scripts(folder: Path, dialect: str, *, revision: str = "") -> list[Path]:
    """The scripts for a dialect in the order in which they run; with `revision`, only those of one migration."""
    prefix = f"{revision}_" if revision else ""
    return sorted(folder.glob(f"{prefix}*.{dialect}.sql"))


def run_scripts(migration: str) -> None:
    """Run the scripts of a migration, which passes its `__file__`."""
    from alembic import op  # noqa: PLC0415 -- slow to load, and most processes find nothing to migrate

    path = Path(migration)
    number = re.match(r"\d+", path.stem)
    if number is None:
        raise ValueError(f"{path.name} does not begin with its revision")
    connection = op.get_bind()
    for script in scripts(path.parent, connection.dialect.name, revision=number[0]):
        run_script(connection, script)


def run_script(connection: Connection, script: Path) -> None:
    """Send every statement of a script."""
    text = script.read_text("utf-8")
    for statement in _statements(text) if is_sqlite(connection.dialect) else (text,):
        connection.exec_driver_sql(statement, execution_options={"no_parameters": True})


def triggers_in(paths: Iterable[Path]) -> list[str]:
    """The triggers that exist once these scripts have run."""
    names: dict[str, None] = {}
    for path in paths:
        for act, name in _TRIGGER.findall(path.read_text("utf-8")):
            if act == "CREATE":
                names[name] = None
            else:
                names.pop(name, None)
    return list(names)


def _statements(script: str) -> Iterator[str]:
    """SQLite executes one statement at a time; a trigger contains several."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if line.rstrip().endswith(";") and sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        raise ValueError(f"unfinished statement: {statement.strip()[:100]}")
