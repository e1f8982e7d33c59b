"""The facts of an index file: its version, its root, and the IndexStats of the last completed build."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class IndexStats:
    """How many symbols there were when the last build completed, and when that was (ISO 8601)."""

    total: int
    last_indexed_at: str

    def as_json(self) -> dict[str, int | str]:
        return {"total": self.total, "lastIndexedAt": self.last_indexed_at}


def schema_version(connection: sqlite3.Connection, application_id: int) -> int:
    """0 for an empty file. A file of another application is not a database of ours."""
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != application_id and not _is_empty(connection):
        raise sqlite3.DatabaseError("it is not a code index")
    return int(found)


def put_schema_version(connection: sqlite3.Connection, application_id: int, version: int) -> None:
    connection.execute(f"PRAGMA application_id = {application_id}")
    connection.execute(f"PRAGMA user_version = {version}")


def is_complete(connection: sqlite3.Connection) -> bool:
    """Whether the tables are there and can be read."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    required = {"meta", "files", "symbols", "names", "symbol_names", "mentions", "builds"}
    return required | {"ended_builds"} <= tables


def _is_empty(connection: sqlite3.Connection) -> bool:
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return int(tables) == 0


def put(connection: sqlite3.Connection, key: str, value: str) -> None:
    connection.execute(
        "INSERT INTO meta (key, value) VALUES (?, ?)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )


def get(connection: sqlite3.Connection, key: str) -> str | None:
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return row[0] if row else None


def index_stats(connection: sqlite3.Connection) -> IndexStats | None:
    """None until a build completed."""
    rows = dict(
        connection.execute("SELECT key, value FROM meta WHERE key IN ('total', 'last_indexed_at')")
    )
    if len(rows) < 2:
        return None
    return IndexStats(total=int(rows["total"]), last_indexed_at=rows["last_indexed_at"])


def unlisted_folders(connection: sqlite3.Connection) -> list[str]:
    """Folders of which the index has files that git did not list, and perhaps ignores; the root is the empty path."""
    return list(json.loads(get(connection, "unlisted_folders") or "[]"))


def put_unlisted_folders(connection: sqlite3.Connection, folders: Sequence[str]) -> None:
    put(connection, "unlisted_folders", json.dumps([*folders]))


def put_index_stats(connection: sqlite3.Connection, stats: IndexStats) -> None:
    put(connection, "total", str(stats.total))
    put(connection, "last_indexed_at", stats.last_indexed_at)
