"""Lists of books: every book once, page after page, on both databases."""

from datetime import UTC, datetime, timedelta

import pytest

from tsuzuki.collectors.books.book import Book
from tsuzuki.collectors.books.queries import books
from tsuzuki.collectors.books.queries.books import BookFilter
from tsuzuki.store.sql.database import Connection, Database

START = datetime(2026, 11, 1, tzinfo=UTC)
EXPECTED = ["v4", "v5", "v0", "v1", "v2", "v3"]


def put_two_pages(connection: Connection) -> None:
    for page, indexes in enumerate((range(4), range(4, 6))):
        found = [(index, Book(f"v{index}", f"Stars {index}")) for index in indexes]
        now = START + timedelta(hours=page)
        books.put_page(connection, found, job_name="novelties", run_id=1, now=now)


@pytest.mark.parametrize("job_name", [None, "novelties"])
def test_every_book_comes_once(books_database: Database, job_name: str | None) -> None:
    with books_database.write() as connection:
        put_two_pages(connection)
        seen: list[str] = []
        while True:
            after = seen[-1] if seen else None
            page = books.find(connection, BookFilter(job_name=job_name, after=after), limit=2)
            if not page:
                break
            seen += [one.book.volume_id for one in page]
        counts = [
            books.count(connection, BookFilter(job_name=job_name, words="star"), at_most=most)
            for most in (100, 3)
        ]
    assert (seen, counts) == (EXPECTED, [6, 3])
