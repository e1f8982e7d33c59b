"""Every book ever seen, and which job found it: statements over `books` and `book_finds`."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import chain
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, exists, func, or_, select

from tsuzuki.collectors.books.book import Book
from tsuzuki.collectors.books.tables import book_deliveries, book_finds, books
from tsuzuki.store.sql.types import to_text

_KEPT_FROM_THE_FIRST_TIME = {"volume_id", "first_seen_at"}


@dataclass(frozen=True, kw_only=True)
class StoredBook:
    """A book as it stands on the shelf."""

    book: Book
    first_seen_at: datetime
    last_seen_at: datetime


def put_page(
    connection: Connection,
    page: Sequence[tuple[int, Book]],
    *,
    job_name: str,
    run_id: int,
    now: datetime,
) -> None:
    """Keep the books of a page, each with its index in the list, as found by a job. A book that is
    known is described anew; when it was first seen, and first found by the job, stays."""
    # In one order for everybody: two jobs that meet in the same books wait in line, not in a circle.
    found = {book.volume_id: (index, book) for index, book in page}
    if not found:
        return
    put_books, put_finds = _puts(connection.dialect.name, len(found))
    moment = to_text(now) if connection.dialect.name == "sqlite" else now
    ordered = [found[volume_id] for volume_id in sorted(found)]
    rows = [_row(book, moment) for _, book in ordered]
    finds = [(job_name, book.volume_id, moment, run_id, index) for index, book in ordered]
    connection.exec_driver_sql(put_books, tuple(chain.from_iterable(rows)))
    connection.exec_driver_sql(put_finds, tuple(chain.from_iterable(finds)))


def count_found_by_run(connection: Connection, job_name: str, run_id: int) -> int:
    """How many books a run was the first to find for its job."""
    statement = select(func.count()).where(
        book_finds.c.job_name == job_name, book_finds.c.found_by_run == run_id
    )
    return int(connection.execute(statement).scalar_one())


def find(
    connection: Connection,
    *,
    job_name: str | None = None,
    words: str | None = None,
    undelivered: bool = False,
    limit: int = 50,
) -> list[StoredBook]:
    """Books, newest first. `undelivered` are those that `job_name` has found and not mailed."""
    statement = select(books).order_by(books.c.first_seen_at.desc(), books.c.volume_id)
    if job_name is not None:
        statement = (
            select(books)
            .join(book_finds, book_finds.c.volume_id == books.c.volume_id)
            .where(book_finds.c.job_name == job_name)
            .order_by(book_finds.c.found_at.desc(), book_finds.c.list_index)
        )
        if undelivered:
            statement = statement.where(~_delivered(job_name))
    if words:
        wanted = f"%{_escaped(words.lower())}%"
        columns = (books.c.title, books.c.subtitle, books.c.authors, books.c.isbn13)
        statement = statement.where(
            or_(*(func.lower(column).like(wanted, escape="\\") for column in columns))
        )
    return _stored(connection, statement.limit(limit))


def undelivered(connection: Connection, job_name: str, *, limit: int) -> list[Book]:
    """What a job has found and never mailed, in the order in which it was found."""
    statement = (
        select(books)
        .join(book_finds, book_finds.c.volume_id == books.c.volume_id)
        .where(book_finds.c.job_name == job_name, ~_delivered(job_name))
        .order_by(book_finds.c.found_at, book_finds.c.list_index)
    )
    return books_of(connection, statement.limit(limit))


def found_by_others(connection: Connection, job_name: str, *, limit: int) -> list[Book]:
    """What other jobs have found, newest first, that this one has neither found nor mailed."""
    own = exists().where(
        book_finds.c.job_name == job_name, book_finds.c.volume_id == books.c.volume_id
    )
    statement = (
        select(books)
        .where(~own, ~_delivered(job_name))
        .order_by(books.c.first_seen_at.desc(), books.c.volume_id)
    )
    return books_of(connection, statement.limit(limit))


def books_of(connection: Connection, statement: Select[Any]) -> list[Book]:
    """The books that a statement over the columns of `books` chooses."""
    return [stored.book for stored in _stored(connection, statement)]


def _delivered(job_name: str) -> ColumnElement[bool]:
    return exists().where(
        book_deliveries.c.job_name == job_name, book_deliveries.c.volume_id == books.c.volume_id
    )


def _stored(connection: Connection, statement: Select[Any]) -> list[StoredBook]:
    found = []
    for row in connection.execute(statement).mappings():
        values = dict(row)
        values.pop("content_hash")
        seen = {name: values.pop(name) for name in ("first_seen_at", "last_seen_at")}
        book = Book(**{**values, "authors": tuple(values["authors"])})
        found.append(StoredBook(book=book, **seen))
    return found


@cache
def _puts(dialect_name: str, rows: int) -> tuple[str, str]:
    """The two statements of a page of so many books, each one for all of them: a driver lets other
    threads in at every row it is given. A book holds nothing that a database cannot, so its values
    go to the driver as they are."""
    columns = [column.name for column in books.c]
    anew = ", ".join(
        f"{name} = excluded.{name}" for name in columns if name not in _KEPT_FROM_THE_FIRST_TIME
    )
    mark = "?" if dialect_name == "sqlite" else "%s"

    def places(width: int) -> str:
        return ", ".join([f"({', '.join([mark] * width)})"] * rows)

    return (
        f"INSERT INTO books ({', '.join(columns)}) VALUES {places(len(columns))}"
        f" ON CONFLICT (volume_id) DO UPDATE SET {anew}",
        "INSERT INTO book_finds (job_name, volume_id, found_at, found_by_run, list_index)"
        f" VALUES {places(5)} ON CONFLICT DO NOTHING",
    )


def _row(book: Book, moment: str | datetime) -> tuple[Any, ...]:
    """In the order of the columns of `books`."""
    return (
        book.volume_id,
        book.isbn13,
        book.title,
        book.subtitle,
        book.authors_json(),
        book.publisher,
        book.published_date,
        book.description,
        book.language,
        book.print_type,
        book.page_count,
        book.info_link,
        book.content_hash(),
        moment,
        moment,
    )


def _escaped(words: str) -> str:
    return words.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
