"""Names, definitions and references as an answer looks them up. Only reading; a caller holds one read transaction.

The name functions propose names in no promised order, at most `limit` of them; the caller decides what matches.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

TRIGRAM = 3
TRIGRAMS_MAX = 16
"""More only cost time: what the first ones leave is compared with the whole query anyway."""

LAST = "\U0010ffff"
"""Sorts behind every character of a name."""


class StoredFile(NamedTuple):
    """What the index knows of a file."""

    id: int
    path: str
    hash: bytes | None
    language: str | None
    extractor_version: int | None
    outcome: str


MEMBER_KINDS = frozenset({"method", "field", "property", "member"})
"""Kinds that are only reached through what contains them."""


class Symbol(NamedTuple):
    """A definition. Lines count from 1 and include the last; columns count characters from 0."""

    path: str
    language: str
    name: str
    kind: str
    container: str
    line: int
    end_line: int
    column: int
    signature: str
    doc: str

    @property
    def name_path(self) -> str:
        """`Outer/inner/name`."""
        return f"{self.container}/{self.name}" if self.container else self.name

    @property
    def is_member(self) -> bool:
        return self.kind in MEMBER_KINDS

    def as_dict(self) -> dict[str, Any]:
        return {**self._asdict(), "name_path": self.name_path}


_SYMBOL = """SELECT files.path, coalesce(files.language, ''), symbols.name, symbols.kind, symbols.container,
    symbols.line, symbols.end_line, symbols.col, symbols.signature, symbols.doc
    FROM symbols JOIN files ON files.id = symbols.file_id"""


def begin_reading(connection: sqlite3.Connection) -> None:
    """Every statement until `end_reading` sees the same state of the index."""
    connection.execute("BEGIN")
    connection.execute("SELECT 1 FROM files LIMIT 1").fetchone()


def end_reading(connection: sqlite3.Connection) -> None:
    connection.execute("ROLLBACK")


def wait_for_lock(connection: sqlite3.Connection, *, seconds: float) -> None:
    """How long a statement waits for the lock of another writer."""
    connection.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")


def names_equal(connection: sqlite3.Connection, name: str, *, limit: int) -> list[str]:
    """Defined names equal to `name` but for the case of ASCII letters."""
    statement = "SELECT DISTINCT name FROM symbols WHERE lower(name) = lower(?) LIMIT ?"
    return _first_column(connection, statement, (name, limit))


def names_with_prefix(connection: sqlite3.Connection, prefix: str, *, limit: int) -> list[str]:
    statement = """SELECT DISTINCT name FROM symbols
        WHERE lower(name) >= lower(?) AND lower(name) < lower(?) || ? LIMIT ?"""
    return _first_column(connection, statement, (prefix, prefix, LAST, limit))


def names_with_substring(connection: sqlite3.Connection, text: str, *, limit: int) -> list[str]:
    """Names that have every trigram of `text`: a few of them may not have all of it. None for short texts."""
    return _names_with_trigrams(connection, trigrams_of(text)[:TRIGRAMS_MAX], " AND ", limit)


def names_alike(connection: sqlite3.Connection, text: str, *, limit: int) -> list[str]:
    """Names that have any trigram of `text`, for a suggestion."""
    return _names_with_trigrams(connection, trigrams_of(text)[:TRIGRAMS_MAX], " OR ", limit)


def _names_with_trigrams(
    connection: sqlite3.Connection, trigrams: Sequence[str], operator: str, limit: int
) -> list[str]:
    if not trigrams:
        return []
    quoted = operator.join('"' + trigram.replace('"', '""') + '"' for trigram in trigrams)
    statement = "SELECT name FROM symbol_names WHERE symbol_names MATCH ? LIMIT ?"
    return _first_column(connection, statement, (quoted, limit))


def trigrams_of(text: str) -> list[str]:
    starts = range(len(text) - TRIGRAM + 1)
    return list(dict.fromkeys(text[start : start + TRIGRAM] for start in starts))


def names_with_part(connection: sqlite3.Connection, part: str, *, limit: int) -> list[str]:
    """Names one of whose parts begins with `part`."""
    statement = """SELECT DISTINCT names.name FROM name_parts JOIN names ON names.id = name_parts.name_id
        WHERE name_parts.part >= ? AND name_parts.part < ? LIMIT ?"""
    return _first_column(connection, statement, (part, part + LAST, limit))


def symbols_named(connection: sqlite3.Connection, names: Iterable[str]) -> list[Symbol]:
    """Every definition that has one of these names."""
    statement = f"""{_SYMBOL} WHERE symbols.name IN (SELECT value FROM json_each(?))
        ORDER BY files.path, symbols.line, symbols.col"""
    rows = connection.execute(statement, (json.dumps([*names]),))
    return [Symbol(*row) for row in rows]


def symbols_of_file(connection: sqlite3.Connection, file_id: int) -> list[Symbol]:
    statement = f"{_SYMBOL} WHERE symbols.file_id = ? ORDER BY symbols.line, symbols.col"
    return [Symbol(*row) for row in connection.execute(statement, (file_id,))]


def paths_that_mention(connection: sqlite3.Connection, name: str) -> list[str]:
    """The files that may have `name` as an identifier, in order."""
    statement = """SELECT files.path FROM names JOIN mentions ON mentions.name_id = names.id
        JOIN files ON files.id = mentions.file_id WHERE names.name = ? ORDER BY files.path"""
    return _first_column(connection, statement, (name,))


def file_at(connection: sqlite3.Connection, path: str) -> StoredFile | None:
    statement = """SELECT id, path, hash, language, extractor_version, outcome
        FROM files WHERE path = ?"""
    row = connection.execute(statement, (path,)).fetchone()
    return StoredFile(*row) if row else None


def has_below(connection: sqlite3.Connection, folder: str) -> bool:
    """Whether there is a file below a folder."""
    statement = "SELECT 1 FROM files WHERE path > ? AND path < ? LIMIT 1"
    return connection.execute(statement, (f"{folder}/", f"{folder}0")).fetchone() is not None


def paths_with_name(connection: sqlite3.Connection, name: str) -> list[str]:
    """The files that are called so, in whatever folder."""
    statement = "SELECT path FROM files WHERE path = ?1 OR path LIKE '%/' || ?1 ORDER BY path"
    return _first_column(connection, statement, (name,))


def _first_column(
    connection: sqlite3.Connection, statement: str, values: tuple[object, ...]
) -> list[str]:
    return [row[0] for row in connection.execute(statement, values)]
