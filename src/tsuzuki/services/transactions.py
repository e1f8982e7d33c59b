"""Transactions on the database of an application, for a program that stores its own rows there."""

from collections.abc import Iterator
from contextlib import contextmanager

from tsuzuki.store.sql.database import Connection, Database

__all__ = ["Connection", "Transactions"]


class Transactions:
    def __init__(self, *, database: Database) -> None:
        self._database = database

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """One transaction; committed at the end of the block, rolled back if it raises."""
        with self._database.write() as connection:
            yield connection
