"""The graph of a tree: which file defines a name, and which files use it how often. Only reading."""

import sqlite3
from collections.abc import Iterator
from typing import NamedTuple


class DefinedName(NamedTuple):
    """A name that a file defines."""

    name_id: int
    name: str
    file_id: int


class UsedName(NamedTuple):
    """How often a file uses a name that the tree defines."""

    name_id: int
    file_id: int
    uses: int


def graph_files(connection: sqlite3.Connection) -> list[tuple[int, str, str]]:
    """Id, path and language of each file in which something is defined, by path."""
    statement = """SELECT id, path, coalesce(language, '') FROM files
        WHERE EXISTS (SELECT 1 FROM symbols WHERE symbols.file_id = files.id) ORDER BY path"""
    return connection.execute(statement).fetchall()


def defined_names(connection: sqlite3.Connection) -> Iterator[DefinedName]:
    """Each pair of name and file once, only for names that are used somewhere. CROSS JOIN keeps `symbols` outside:
    during a first build it has no index by name."""
    statement = """SELECT DISTINCT names.id, names.name, symbols.file_id
        FROM symbols CROSS JOIN names ON names.name = symbols.name
        WHERE +names.id IN (SELECT name_id FROM mentions WHERE uses > 0)
        ORDER BY names.id, symbols.file_id"""
    for row in connection.execute(statement):
        yield DefinedName(*row)


def used_names(connection: sqlite3.Connection) -> Iterator[UsedName]:
    statement = """SELECT mentions.name_id, mentions.file_id, mentions.uses FROM mentions
        JOIN names ON names.id = mentions.name_id WHERE names.is_defined = 1 AND mentions.uses > 0
        ORDER BY mentions.name_id, mentions.file_id"""
    for row in connection.execute(statement):
        yield UsedName(*row)
