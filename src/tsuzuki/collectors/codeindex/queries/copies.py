"""The rows of another index file, copied into an empty one.

The other file is attached for reading only, so a transaction of ours takes no lock that its writer needs.
"""

import sqlite3
from pathlib import Path

from tsuzuki.collectors.codeindex.queries import files
from tsuzuki.collectors.codeindex.queries.schema import make_name_indexes

_TABLES = ("files", "symbols", "names", "name_parts", "refs")


def is_empty(connection: sqlite3.Connection) -> bool:
    """Whether nothing was ever stored. Ids can only be copied then."""
    (used,) = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM files) OR EXISTS (SELECT 1 FROM names)"
    ).fetchone()
    return not used


def attach(connection: sqlite3.Connection, path: Path) -> None:
    """Make another index file readable by `copy_rows`. Not inside a transaction."""
    connection.execute("ATTACH ? AS other", (f"{path.absolute().as_uri()}?mode=ro",))


def detach(connection: sqlite3.Connection) -> None:
    connection.execute("DETACH other")


def copy_rows(connection: sqlite3.Connection) -> None:
    """Take every file with what was found in it. Its size and mtime were those of another tree's file: the
    stored hash alone says what it was made from, so no mtime may match. What was stale there is left out."""
    make_name_indexes(connection)
    for table in _TABLES:
        # SQLite copies records as they are, of indexes too, if it is given whole tables and the own one is empty.
        connection.execute(f"INSERT INTO main.{table} SELECT * FROM other.{table}")
    connection.execute(
        "INSERT INTO symbol_names (rowid, name) SELECT id, name FROM main.names WHERE is_defined = 1"
    )
    stale = connection.execute(
        "SELECT path FROM main.files WHERE hash IS NULL OR outcome IN ('unreadable', 'failed')"
    )
    files.remove_files(connection, [path for (path,) in stale.fetchall()])
    connection.execute(
        "UPDATE main.files SET mtime_ns = -1, indexed_at_ns = ?", (files.NEVER_COMPARED_NS,)
    )
