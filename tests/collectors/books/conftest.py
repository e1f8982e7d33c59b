"""A database with the tables of books, and a job, its source and its runs on it."""

from collections.abc import Iterator, Sequence

import pytest

from tsuzuki.collectors.books.sandbox.google_books import GoogleBooks
from tsuzuki.collectors.books.tables import COMPONENT
from tsuzuki.sandbox.server import StandIn
from tsuzuki.store.schema.migrate import ENGINE, Component
from tsuzuki.store.sql.database import Database

from .books_fixture import BooksFixture, open_books_fixture


@pytest.fixture
def components() -> Sequence[Component]:
    return (ENGINE, COMPONENT)


@pytest.fixture
def books_database(database: Database) -> Database:
    """One with the tables of books."""
    return database


@pytest.fixture
def source() -> GoogleBooks:
    return GoogleBooks()


@pytest.fixture
def server(source: GoogleBooks) -> Iterator[StandIn]:
    with StandIn(source) as server:
        yield server


@pytest.fixture
def books_fixture(books_database: Database, source: GoogleBooks, server: StandIn) -> BooksFixture:
    return open_books_fixture(books_database, source, server)
