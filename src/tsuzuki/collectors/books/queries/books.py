"""Every book ever seen, and which job found it: statements over `books` and `book_finds`."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    Select,
    Text,
    bindparam,
    exists,
    func,
    or_,
    select,
)
from sqlalchemy.engine import Dialect

from tsuzuki.collectors.books.book import Book
from tsuzuki.collectors.books.tables import book_deliveries, book_finds, books
from tsuzuki.collectors.kit.upsert import insert_from, upsert_from
from tsuzuki.store.sql.batch import Columns, pack, unpack
from tsuzuki.store.sql.prepared import execute
from tsuzuki.store.sql.types import UtcTime

_JOB = bindparam("job", type_=Text())
_RUN = bindparam("run", type_=BigInteger())
_NOW = bindparam("now", type_=UtcTime())
# A `Book` holds nothing that a database cannot, so its values need no column types of ours.
_BOOK_COLUMNS: Columns = {
    column.name: Integer() if column is books.c.page_count else Text()
    for column in books.c
    if column.name not in ("first_seen_at", "last_seen_at")
}
_FIND_COLUMNS: Columns = {"volume_id": Text(), "list_index": Integer()}
_COUNT_FOUND = select(func.count()).where(
    book_finds.c.job_name == _JOB, book_finds.c.found_by_run == _RUN
)


@dataclass(frozen=True, kw_only=True)
class StoredBook:
    """A book, and when it was first and last seen."""

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
    # In one order everywhere, or two jobs that find the same books could deadlock.
    found = {book.volume_id: (index, book) for index, book in page}
    if not found:
        return
    ordered = [found[volume_id] for volume_id in sorted(found)]
    dialect = connection.dialect
    packed = pack(dialect, _BOOK_COLUMNS, [_row(book) for _, book in ordered])
    execute(connection, _put_books(dialect, packed.varying), packed.with_(now=now))
    packed = pack(dialect, _FIND_COLUMNS, [(book.volume_id, index) for index, book in ordered])
    values = packed.with_(job=job_name, now=now, run=run_id)
    execute(connection, _put_finds(dialect, packed.varying), values)


def count_found_by_run(connection: Connection, job_name: str, run_id: int) -> int:
    """How many books a run was the first to find for its job."""
    return int(execute(connection, _COUNT_FOUND, {"job": job_name, "run": run_id}).scalar_one())


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


@lru_cache
def _put_books(dialect: Dialect, varying: tuple[str, ...]) -> Any:
    page = unpack(dialect, _BOOK_COLUMNS, varying)
    values = {**dict(page.c.items()), "first_seen_at": _NOW, "last_seen_at": _NOW}
    return upsert_from(dialect, books, values, keep=["first_seen_at"])


@lru_cache
def _put_finds(dialect: Dialect, varying: tuple[str, ...]) -> Any:
    page = unpack(dialect, _FIND_COLUMNS, varying)
    values = {**dict(page.c.items()), "job_name": _JOB, "found_at": _NOW, "found_by_run": _RUN}
    return insert_from(dialect, book_finds, values).on_conflict_do_nothing()


def _row(book: Book) -> tuple[Any, ...]:
    """In the order of `_BOOK_COLUMNS`."""
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
    )


def _escaped(words: str) -> str:
    return words.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
