"""Every book ever seen, and the jobs that found it: statements over `books` and `book_finds`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    Integer,
    Select,
    Text,
    and_,
    bindparam,
    exists,
    func,
    or_,
    select,
    tuple_,
)

from tsuzuki.collectors.books.book import Book
from tsuzuki.collectors.books.tables import book_deliveries, book_finds, books
from tsuzuki.collectors.kit.upsert import PageUpsert
from tsuzuki.store.sql.batch import Columns
from tsuzuki.store.sql.prepared import execute
from tsuzuki.store.sql.types import UtcTime

_JOB = bindparam("job", type_=Text())
_RUN = bindparam("run", type_=BigInteger())
_SEEN: Columns = {"first_seen_at": UtcTime(), "last_seen_at": UtcTime()}
_BOOKS = PageUpsert(
    books,
    # A `Book` holds nothing that a database cannot, so its values need no column types of ours.
    columns={
        column.name: Integer() if column is books.c.page_count else Text()
        for column in books.c
        if column.name not in _SEEN
    },
    constants=_SEEN,
    keep=["first_seen_at"],
)
_FINDS = PageUpsert(
    book_finds,
    columns={"volume_id": Text(), "list_index": Integer()},
    constants={"job_name": Text(), "found_at": UtcTime(), "found_by_run": BigInteger()},
    keep=None,
)
_COUNT_FOUND = select(func.count()).where(
    book_finds.c.job_name == _JOB, book_finds.c.found_by_run == _RUN
)
_FOUND_BOOKS = select(books).join(book_finds, book_finds.c.volume_id == books.c.volume_id)
_IS_FOUND = exists().where(
    book_finds.c.job_name == _JOB, book_finds.c.volume_id == books.c.volume_id
)
_IS_DELIVERED = exists().where(
    book_deliveries.c.job_name == _JOB, book_deliveries.c.volume_id == books.c.volume_id
)
_LIMIT = bindparam("limit", type_=Integer())
_UNDELIVERED = (
    _FOUND_BOOKS.where(book_finds.c.job_name == _JOB, ~_IS_DELIVERED)
    .order_by(book_finds.c.found_at, book_finds.c.list_index)
    .limit(_LIMIT)
)
_FOUND_BY_OTHERS = (
    select(books)
    .where(~_IS_FOUND, ~_IS_DELIVERED)
    .order_by(books.c.first_seen_at.desc(), books.c.volume_id)
    .limit(_LIMIT)
)
_ALL_BOOKS = select(books).order_by(books.c.first_seen_at.desc(), books.c.volume_id)
_BOOKS_OF_JOB = _FOUND_BOOKS.where(book_finds.c.job_name == _JOB).order_by(
    book_finds.c.found_at.desc(), book_finds.c.list_index, books.c.volume_id
)
_AFTER = bindparam("after", type_=Text())
_last_book = books.alias("last_book")
_last_find = book_finds.alias("last_find")
_BEHIND = exists().where(
    _last_book.c.volume_id == _AFTER,
    or_(
        books.c.first_seen_at < _last_book.c.first_seen_at,
        and_(
            books.c.first_seen_at == _last_book.c.first_seen_at,
            books.c.volume_id > _last_book.c.volume_id,
        ),
    ),
)
"""Behind a book in the order of all books. What it is ordered by never changes."""
_BEHIND_OF_JOB = exists().where(
    _last_find.c.job_name == _JOB,
    _last_find.c.volume_id == _AFTER,
    or_(
        book_finds.c.found_at < _last_find.c.found_at,
        and_(
            book_finds.c.found_at == _last_find.c.found_at,
            tuple_(book_finds.c.list_index, book_finds.c.volume_id)
            > tuple_(_last_find.c.list_index, _last_find.c.volume_id),
        ),
    ),
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
    _BOOKS.send(
        connection,
        [_row(book) for _, book in ordered],
        {"first_seen_at": now, "last_seen_at": now},
    )
    _FINDS.send(
        connection,
        [(book.volume_id, index) for index, book in ordered],
        {"job_name": job_name, "found_at": now, "found_by_run": run_id},
    )


def count_found_by_run(connection: Connection, job_name: str, run_id: int) -> int:
    """How many books a run was the first to find for its job."""
    return int(execute(connection, _COUNT_FOUND, {"job": job_name, "run": run_id}).scalar_one())


@dataclass(frozen=True, kw_only=True)
class BookFilter:
    """What a list of books is narrowed to; None does not narrow it."""

    job_name: str | None = None
    words: str | None = None
    undelivered: bool = False
    """Only those that `job_name` has found and not mailed."""
    after: str | None = None
    """The volume id of the book to continue after."""


def find(connection: Connection, wanted: BookFilter, *, limit: int) -> list[StoredBook]:
    """Books, newest first."""
    statement = _wanted_books(wanted).limit(limit)
    rows = connection.execute(statement, _values_of(wanted)).mappings()
    return [_stored_book(dict(row)) for row in rows]


def count(connection: Connection, wanted: BookFilter, *, at_most: int) -> int:
    """How many books there are, counted no further than `at_most`."""
    found = _wanted_books(wanted).with_only_columns(books.c.volume_id).order_by(None)
    statement = select(func.count()).select_from(found.limit(at_most).subquery())
    return int(connection.execute(statement, _values_of(wanted)).scalar_one())


def _wanted_books(wanted: BookFilter) -> Select[Any]:
    if wanted.job_name is None:
        statement = _ALL_BOOKS if wanted.after is None else _ALL_BOOKS.where(_BEHIND)
    else:
        statement = _BOOKS_OF_JOB if wanted.after is None else _BOOKS_OF_JOB.where(_BEHIND_OF_JOB)
        if wanted.undelivered:
            statement = statement.where(~_IS_DELIVERED)
    if not wanted.words:
        return statement
    pattern = f"%{_escaped(wanted.words.lower())}%"
    columns = (books.c.title, books.c.subtitle, books.c.authors, books.c.isbn13)
    return statement.where(
        or_(*(func.lower(column).like(pattern, escape="\\") for column in columns))
    )


def _values_of(wanted: BookFilter) -> dict[str, str]:
    given = {"job": wanted.job_name, "after": wanted.after}
    return {name: value for name, value in given.items() if value is not None}


def undelivered(connection: Connection, job_name: str, *, limit: int) -> list[Book]:
    """What a job has found and never mailed, in the order in which it was found."""
    rows = execute(connection, _UNDELIVERED, {"job": job_name, "limit": limit}).mappings()
    return [book_from(row) for row in rows]


def found_by_others(connection: Connection, job_name: str, *, limit: int) -> list[Book]:
    """What other jobs have found, newest first, that this one has neither found nor mailed."""
    rows = execute(connection, _FOUND_BY_OTHERS, {"job": job_name, "limit": limit}).mappings()
    return [book_from(row) for row in rows]


def book_from(row: Mapping[str, Any]) -> Book:
    """The book in a row of `books`."""
    return _stored_book(row).book


def _stored_book(row: Mapping[str, Any]) -> StoredBook:
    values = dict(row)
    values.pop("content_hash")
    seen = {name: values.pop(name) for name in _SEEN}
    book = Book(**{**values, "authors": tuple(values["authors"])})
    return StoredBook(book=book, **seen)


def _row(book: Book) -> tuple[Any, ...]:
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
    )


def _escaped(words: str) -> str:
    return words.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
