"""Names, each stored once, and what finds a name by a part of it."""

import json
import re
import sqlite3
from collections.abc import Iterable

from tsuzuki.collectors.codeindex.queries.bulk_insert import insert_rows

CACHED_NAMES_MAX = 200_000
PARTS_MAX = 12
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+|[^\W\d_]+")


def parts_of(name: str) -> list[str]:
    """The words of a camelCase or snake_case name in lower case, each once: `HTTPServer2` has http, server
    and 2."""
    return list(dict.fromkeys(map(str.lower, _WORDS.findall(name))))[:PARTS_MAX]


class NameIds:
    """The ids of names, some of them remembered. Of one connection and one transaction after the other;
    `forget` when one is rolled back."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._defined: set[str] = set()

    def forget(self) -> None:
        self._ids.clear()
        self._defined.clear()

    def of(self, connection: sqlite3.Connection, names: Iterable[str]) -> dict[str, int]:
        """The ids of these names and of others. New names are stored."""
        missing = {name for name in names if name not in self._ids}
        if missing:
            if len(self._ids) > CACHED_NAMES_MAX:
                self.forget()
                return self.of(connection, names)
            self._ids.update(_stored(connection, missing))
        return self._ids

    def define(self, connection: sqlite3.Connection, names: Iterable[str]) -> None:
        """Make these names findable by substring and by part, unless they are."""
        fresh = {name for name in names if name not in self._defined}
        if not fresh:
            return
        if len(self._ids) > CACHED_NAMES_MAX:
            self.forget()
        undefined = connection.execute(_DEFINE, (json.dumps(sorted(fresh)),)).fetchall()
        self._defined |= fresh
        self._ids.update((name, number) for number, name in undefined)
        # One by one: FTS5 writes out what it has gathered before a statement of several rows.
        connection.executemany(_INTO_TRIGRAMS, sorted(undefined))
        parts = [(part, number) for number, name in undefined for part in parts_of(name)]
        insert_rows(connection, _INTO_PARTS, 2, sorted(parts))


_DEFINE = (
    "INSERT INTO names (name, is_defined) SELECT value, 1 FROM json_each(?) WHERE true"
    " ON CONFLICT (name) DO UPDATE SET is_defined = 1 WHERE is_defined = 0 RETURNING id, name"
)
"""Gives those that were not defined before."""

_INTO_TRIGRAMS = "INSERT INTO symbol_names (rowid, name) VALUES (?, ?)"
_INTO_PARTS = "INSERT OR IGNORE INTO name_parts (part, name_id)"


def _stored(connection: sqlite3.Connection, names: set[str]) -> dict[str, int]:
    text = json.dumps(sorted(names))
    connection.execute("INSERT OR IGNORE INTO names (name) SELECT value FROM json_each(?)", (text,))
    rows = connection.execute(
        "SELECT name, id FROM names WHERE name IN (SELECT value FROM json_each(?))", (text,)
    )
    return dict(rows.fetchall())
