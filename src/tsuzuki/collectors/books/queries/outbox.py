"""Mails: statements over `book_mails`, which is an outbox (`kit.outbox`), and `book_deliveries`.

A book belongs to at most one mail of a job, by the key of `book_deliveries`; the row is written before
anything is sent and never taken back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Connection, Text, bindparam, func, insert, select

from tsuzuki.collectors.books.book import Book
from tsuzuki.collectors.books.queries.books import books_of
from tsuzuki.collectors.books.tables import book_deliveries, book_mails, books
from tsuzuki.collectors.kit.outbox import Outbox, OutboxState
from tsuzuki.store.sql.advisory_lock import lock_until_commit
from tsuzuki.store.sql.prepared import execute

OUTBOX = Outbox(book_mails)

_COLUMNS = [column.name for column in book_mails.c]
_ADD = insert(book_mails).values(state=OutboxState.INTENDED.value).returning(book_mails)
_SELECT = select(book_mails).where(book_mails.c.id == bindparam("mail_id", type_=BigInteger()))
_OLDEST_INTENDED = (
    select(book_mails)
    .where(
        book_mails.c.job_name == bindparam("job", type_=Text()),
        book_mails.c.state == OutboxState.INTENDED.value,
    )
    .order_by(book_mails.c.id)
    .limit(1)
)

_UNSETTLED = (
    select(book_mails.c.id)
    .where(
        book_mails.c.job_name == bindparam("job", type_=Text()),
        book_mails.c.state == OutboxState.UNSETTLED.value,
    )
    .order_by(book_mails.c.id)
)


@dataclass(frozen=True, kw_only=True)
class Mail:
    """One mail of the outbox."""

    id: int
    job_name: str
    message_id: str
    state: OutboxState
    created_at: datetime
    changed_at: datetime
    sent_by_run: int | None
    error: str | None


def lock_selection(connection: Connection, job_name: str) -> None:
    """One selection of books at a time for each job: two would select the same."""
    lock_until_commit(connection, f"tsuzuki books mail {job_name}")


def intend(
    connection: Connection,
    *,
    job_name: str,
    message_id: str,
    selected: Sequence[Book],
    now: datetime,
) -> Mail:
    """Record that these books are to be mailed, in this order."""
    values = {
        "job_name": job_name,
        "message_id": message_id,
        "created_at": now,
        "changed_at": now,
    }
    mail = _mail(connection.execute(_ADD, values).one())
    connection.execute(
        insert(book_deliveries),
        [
            {
                "job_name": job_name,
                "volume_id": book.volume_id,
                "mail_id": mail.id,
                "position": position,
            }
            for position, book in enumerate(selected)
        ],
    )
    return mail


def settle(connection: Connection, job_name: str, *, now: datetime) -> list[Mail]:
    """Mails whose sender was cut off become UNSETTLED."""
    lost = OUTBOX.settle(connection, book_mails.c.job_name == job_name, now=now)
    return [_mail(row) for row in lost]


def get(connection: Connection, mail_id: int) -> Mail | None:
    row = execute(connection, _SELECT, {"mail_id": mail_id}).one_or_none()
    return None if row is None else _mail(row)


def find(
    connection: Connection,
    *,
    job_name: str | None = None,
    state: OutboxState | None = None,
    limit: int = 50,
) -> list[Mail]:
    """Mails, newest first."""
    statement = select(book_mails).order_by(book_mails.c.id.desc()).limit(limit)
    for column, wanted in ((book_mails.c.job_name, job_name), (book_mails.c.state, state)):
        if wanted is not None:
            statement = statement.where(column == wanted)
    return [_mail(row) for row in connection.execute(statement)]


def unsettled(connection: Connection, job_name: str) -> list[int]:
    """The mails of a job that wait for a person's word, oldest first."""
    return list(execute(connection, _UNSETTLED, {"job": job_name}).scalars())


def oldest_intended(connection: Connection, job_name: str) -> Mail | None:
    row = execute(connection, _OLDEST_INTENDED, {"job": job_name}).one_or_none()
    return None if row is None else _mail(row)


def contents(connection: Connection, mail_id: int) -> list[Book]:
    """The books of a mail, in its order."""
    statement = (
        select(books)
        .join(book_deliveries, book_deliveries.c.volume_id == books.c.volume_id)
        .where(book_deliveries.c.mail_id == mail_id)
        .order_by(book_deliveries.c.position)
    )
    return books_of(connection, statement)


def count_books(connection: Connection, mail_ids: Sequence[int]) -> dict[int, int]:
    statement = (
        select(book_deliveries.c.mail_id, func.count())
        .where(book_deliveries.c.mail_id.in_(mail_ids))
        .group_by(book_deliveries.c.mail_id)
    )
    return {row[0]: row[1] for row in connection.execute(statement)}


def _mail(row: Any) -> Mail:
    values = dict(zip(_COLUMNS, row, strict=True))
    return Mail(**{**values, "state": OutboxState(values["state"])})
