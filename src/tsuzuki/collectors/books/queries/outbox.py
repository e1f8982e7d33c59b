"""Emails: statements over `book_mails`, which is an outbox (`outward.outbox`), and `book_deliveries`.

The key of `book_deliveries` ensures that a book belongs to at most one email of a job; the row is written before
anything is sent. Only a person can undo that, for emails that were sent (`forget_sent`).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    Integer,
    Text,
    bindparam,
    delete,
    func,
    insert,
    select,
)
from sqlalchemy.engine import Dialect

from tsuzuki.collectors.books.book import Book
from tsuzuki.collectors.books.queries.books import book_from
from tsuzuki.collectors.books.tables import book_deliveries, book_mails, books
from tsuzuki.collectors.kit.upsert import insert_from
from tsuzuki.outward.outbox import Outbox, OutboxState
from tsuzuki.store.sql.advisory_lock import lock_until_commit
from tsuzuki.store.sql.batch import Columns, unpack
from tsuzuki.store.sql.prepared import execute, execute_batch, parameters_for
from tsuzuki.store.sql.types import KeyText
from tsuzuki.store.sql.value_list import in_list

OUTBOX = Outbox(book_mails)

_MAIL = bindparam("mail_id", type_=BigInteger())
_ADD = (
    insert(book_mails)
    .values(
        **parameters_for(book_mails, "job_name", "message_id", "created_at", "changed_at"),
        state=OutboxState.INTENDED,
    )
    .returning(book_mails)
)
_DELIVERY_COLUMNS: Columns = {"volume_id": KeyText(), "position": Integer()}
_SELECT = select(book_mails).where(book_mails.c.id == _MAIL)
_OLDEST_INTENDED = (
    select(book_mails)
    .where(
        book_mails.c.job_name == bindparam("job", type_=Text()),
        book_mails.c.state == OutboxState.INTENDED.value,
    )
    .order_by(book_mails.c.id)
    .limit(1)
)
_CONTENTS = (
    select(books)
    .join(book_deliveries, book_deliveries.c.volume_id == books.c.volume_id)
    .where(book_deliveries.c.mail_id == _MAIL)
    .order_by(book_deliveries.c.position)
)
_COUNT_BOOKS = (
    select(book_deliveries.c.mail_id, func.count())
    .where(in_list(book_deliveries.c.mail_id, "mail_ids"))
    .group_by(book_deliveries.c.mail_id)
)

_OF_RUN = (
    select(book_mails)
    .where(
        book_mails.c.job_name == bindparam("job", type_=Text()),
        book_mails.c.sent_by_run == bindparam("run_id", type_=BigInteger()),
    )
    .order_by(book_mails.c.id)
    .limit(bindparam("most", type_=BigInteger()))
)
_OF_JOB = book_mails.c.job_name == bindparam("job", type_=Text())
_SENT = select(book_mails.c.id).where(_OF_JOB, book_mails.c.state == OutboxState.SENT.value)
_OF_SENT = (
    book_deliveries.c.job_name == bindparam("job", type_=Text()),
    book_deliveries.c.mail_id.in_(_SENT),
)
_COUNT_SENT = (
    select(book_deliveries.c.mail_id, func.count())
    .where(*_OF_SENT)
    .group_by(book_deliveries.c.mail_id)
)
_FORGET_SENT = delete(book_deliveries).where(*_OF_SENT).returning(book_deliveries.c.mail_id)
_NOT_SENT = (
    select(book_mails)
    .where(_OF_JOB, book_mails.c.state != OutboxState.SENT.value)
    .order_by(book_mails.c.id)
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
    (row,) = execute(connection, _ADD, values).mappings()
    execute_batch(
        connection,
        _add_deliveries,
        _DELIVERY_COLUMNS,
        [(book.volume_id, position) for position, book in enumerate(selected)],
        {"job_name": job_name, "mail_id": row["id"]},
    )
    return _mail(row)


@lru_cache
def _add_deliveries(dialect: Dialect, varying: tuple[str, ...]) -> Any:
    selected = unpack(dialect, _DELIVERY_COLUMNS, varying)
    of_mail = parameters_for(book_deliveries, "job_name", "mail_id")
    return insert_from(dialect, book_deliveries, {**of_mail, **dict(selected.c.items())})


def settle(connection: Connection, job_name: str, *, now: datetime) -> list[Mail]:
    """Mails whose sender was cut off become UNSETTLED."""
    return [_mail(row) for row in OUTBOX.settle(connection, job_name, now=now)]


def get(connection: Connection, mail_id: int) -> Mail | None:
    row = execute(connection, _SELECT, {"mail_id": mail_id}).mapping_or_none()
    return None if row is None else _mail(row)


def of_run(connection: Connection, job_name: str, run_id: int, *, limit: int) -> list[Mail]:
    """The mails that a run of this job sent, or tried to."""
    values = {"job": job_name, "run_id": run_id, "most": limit}
    return [_mail(row) for row in execute(connection, _OF_RUN, values).mappings()]


def find(
    connection: Connection,
    *,
    job_name: str | None = None,
    state: OutboxState | None = None,
    before_id: int | None = None,
    limit: int = 50,
) -> list[Mail]:
    """Mails, newest first. `before_id` continues a page."""
    statement = select(book_mails).order_by(book_mails.c.id.desc()).limit(limit)
    if before_id is not None:
        statement = statement.where(book_mails.c.id < before_id)
    for column, wanted in ((book_mails.c.job_name, job_name), (book_mails.c.state, state)):
        if wanted is not None:
            statement = statement.where(column == wanted)
    return [_mail(dict(row)) for row in connection.execute(statement).mappings()]


def unsettled(connection: Connection, job_name: str) -> list[int]:
    """The mails of a job that wait for a person's word, oldest first."""
    return list(execute(connection, _UNSETTLED, {"job": job_name}).scalars())


def count_sent_books(connection: Connection, job_name: str) -> dict[int, int]:
    """How many books each mail of a job holds that was sent."""
    return dict(execute(connection, _COUNT_SENT, {"job": job_name}).all())


def forget_sent(connection: Connection, job_name: str) -> dict[int, int]:
    """Forget which books the sent mails of a job held: they count as not mailed. A mail that is being sent at this
    moment, or whose delivery is open, keeps its books. Answers how many there were, by mail."""
    return Counter(execute(connection, _FORGET_SENT, {"job": job_name}).scalars())


def not_sent(connection: Connection, job_name: str) -> list[Mail]:
    """The mails of a job that are intended, being sent, refused or unsettled, oldest first."""
    return [_mail(row) for row in execute(connection, _NOT_SENT, {"job": job_name}).mappings()]


def oldest_intended(connection: Connection, job_name: str) -> Mail | None:
    row = execute(connection, _OLDEST_INTENDED, {"job": job_name}).mapping_or_none()
    return None if row is None else _mail(row)


def contents(connection: Connection, mail_id: int) -> list[Book]:
    """The books of a mail, in its order."""
    rows = execute(connection, _CONTENTS, {"mail_id": mail_id}).mappings()
    return [book_from(row) for row in rows]


def count_books(connection: Connection, mail_ids: Sequence[int]) -> dict[int, int]:
    return dict(execute(connection, _COUNT_BOOKS, {"mail_ids": mail_ids}).all())


def _mail(row: Mapping[str, Any]) -> Mail:
    return Mail(**{**row, "state": OutboxState(row["state"])})
