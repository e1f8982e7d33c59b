"""The ledger as a whole, page by page: every book, and rows that refer to one that is not stored.

The databases keep these references themselves. A row that breaks one was changed by hand, or lost.
"""

from typing import Any

from sqlalchemy import Connection, Integer, Select, Text, bindparam, exists, select, tuple_

from tsuzuki.collectors.books.book import Book
from tsuzuki.collectors.books.queries.books import book_from
from tsuzuki.collectors.books.tables import book_deliveries, book_finds, book_mails, books
from tsuzuki.store.sql.prepared import execute
from tsuzuki.store.sql.value_list import in_list

PAGE = 500

_AFTER = bindparam("after", type_=Text())
_AFTER_JOB = bindparam("after_job", type_=Text())
_JOB = bindparam("job", type_=Text())
_LIMIT = bindparam("limit", type_=Integer())
_BOOKS = select(books).where(books.c.volume_id > _AFTER).order_by(books.c.volume_id).limit(_LIMIT)


def _without(table: Any, stored: Any) -> Select[Any]:
    key = (table.c.job_name, table.c.volume_id)
    return (
        select(*key)
        .where(tuple_(*key) > tuple_(_AFTER_JOB, _AFTER), ~stored)
        .order_by(*key)
        .limit(_LIMIT)
    )


_FINDS_WITHOUT_BOOK = _without(
    book_finds, exists().where(books.c.volume_id == book_finds.c.volume_id)
)
_DELIVERIES_WITHOUT_BOOK = _without(
    book_deliveries, exists().where(books.c.volume_id == book_deliveries.c.volume_id)
)
_DELIVERIES_WITHOUT_MAIL = _without(
    book_deliveries, exists().where(book_mails.c.id == book_deliveries.c.mail_id)
)
_FOUND = select(book_finds.c.volume_id).where(
    book_finds.c.job_name == _JOB, in_list(book_finds.c.volume_id, "volumes")
)


def page_of_books(connection: Connection, *, after: str) -> list[tuple[Book, str]]:
    """Up to `PAGE` books behind a volume id, in order, each with its stored hash."""
    rows = execute(connection, _BOOKS, {"after": after, "limit": PAGE}).mappings()
    return [(book_from(row), row["content_hash"]) for row in rows]


def finds_without_book(connection: Connection, *, after: tuple[str, str]) -> list[tuple[str, str]]:
    """Up to `PAGE` finds of books that are not stored, behind a job and volume id, in order."""
    return _pairs(connection, _FINDS_WITHOUT_BOOK, after)


def deliveries_without_book(
    connection: Connection, *, after: tuple[str, str]
) -> list[tuple[str, str]]:
    """Up to `PAGE` deliveries of books that are not stored, behind a job and volume id, in order."""
    return _pairs(connection, _DELIVERIES_WITHOUT_BOOK, after)


def deliveries_without_mail(
    connection: Connection, *, after: tuple[str, str]
) -> list[tuple[str, str]]:
    """Up to `PAGE` deliveries in mails that are not stored, behind a job and volume id, in order."""
    return _pairs(connection, _DELIVERIES_WITHOUT_MAIL, after)


def found_among(connection: Connection, job_name: str, volumes: list[str]) -> set[str]:
    """Those of these volumes that a job has found."""
    return set(execute(connection, _FOUND, {"job": job_name, "volumes": volumes}).scalars())


def _pairs(
    connection: Connection, statement: Select[Any], after: tuple[str, str]
) -> list[tuple[str, str]]:
    values = {"after_job": after[0], "after": after[1], "limit": PAGE}
    return [(job, volume) for job, volume in execute(connection, statement, values).all()]
