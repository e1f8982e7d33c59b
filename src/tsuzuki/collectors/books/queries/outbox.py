"""Mails: statements over `book_mails` and `book_deliveries`. See `MailState` for what each state means.

A book belongs to at most one mail of a job, by the key of `book_deliveries`; the row is written before
anything is sent and never taken back. Every move names the state it leaves, and the loser does nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, RowMapping, func, insert, select, text, update

from tsuzuki.collectors.books.book import Book
from tsuzuki.collectors.books.queries.books import books_of
from tsuzuki.collectors.books.tables import MailState, book_deliveries, book_mails, books
from tsuzuki.model.states import RunState
from tsuzuki.store.schema.tables import job_runs


@dataclass(frozen=True, kw_only=True)
class Mail:
    """One mail as it stands in the outbox."""

    id: int
    job_name: str
    message_id: str
    state: MailState
    created_at: datetime
    changed_at: datetime
    sent_by_run: int | None
    error: str | None


def wait_for_turn(connection: Connection, job_name: str) -> None:
    """One choice of books at a time for each job: two would choose the same. SQLite has one writer
    anyway."""
    if connection.dialect.name == "postgresql":
        key = {"key": f"tsuzuki books mail {job_name}"}
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:key, 0))"), key)


def intend(
    connection: Connection,
    *,
    job_name: str,
    message_id: str,
    chosen: Sequence[Book],
    now: datetime,
) -> Mail:
    """Record that these books are to be mailed, in this order."""
    values = {
        "job_name": job_name,
        "message_id": message_id,
        "state": MailState.INTENDED,
        "created_at": now,
        "changed_at": now,
    }
    statement = insert(book_mails).values(values).returning(book_mails)
    mail = _mail(connection.execute(statement).mappings().one())
    connection.execute(
        insert(book_deliveries),
        [
            {
                "job_name": job_name,
                "volume_id": book.volume_id,
                "mail_id": mail.id,
                "position": position,
            }
            for position, book in enumerate(chosen)
        ],
    )
    return mail


def move(
    connection: Connection,
    mail_id: int,
    *,
    before: MailState,
    after: MailState,
    now: datetime,
    run_id: int | None = None,
    error: str | None = None,
) -> bool:
    """Move a mail on, if it is still where it is believed to be."""
    statement = (
        update(book_mails)
        .where(book_mails.c.id == mail_id, book_mails.c.state == before)
        .values(state=after, changed_at=now, error=error)
    )
    if run_id is not None:
        statement = statement.values(sent_by_run=run_id)
    return connection.execute(statement).rowcount == 1


def abandon_cut_off(connection: Connection, job_name: str, *, now: datetime) -> list[Mail]:
    """Mails whose sender is no longer RUNNING, and so will never learn what the server said."""
    is_running = (
        select(job_runs.c.id)
        .where(job_runs.c.id == book_mails.c.sent_by_run, job_runs.c.state == RunState.RUNNING)
        .exists()
    )
    statement = (
        update(book_mails)
        .where(
            book_mails.c.job_name == job_name,
            book_mails.c.state == MailState.SENDING,
            ~is_running,
        )
        .values(
            state=MailState.UNSETTLED,
            changed_at=now,
            error="its sender was cut off before the server's answer",
        )
        .returning(book_mails)
    )
    return [_mail(row) for row in connection.execute(statement).mappings()]


def get(connection: Connection, mail_id: int) -> Mail | None:
    statement = select(book_mails).where(book_mails.c.id == mail_id)
    row = connection.execute(statement).mappings().one_or_none()
    return None if row is None else _mail(row)


def find(
    connection: Connection,
    *,
    job_name: str | None = None,
    state: MailState | None = None,
    limit: int = 50,
) -> list[Mail]:
    """Mails, newest first."""
    statement = select(book_mails).order_by(book_mails.c.id.desc()).limit(limit)
    for column, wanted in ((book_mails.c.job_name, job_name), (book_mails.c.state, state)):
        if wanted is not None:
            statement = statement.where(column == wanted)
    return [_mail(row) for row in connection.execute(statement).mappings()]


def oldest_intended(connection: Connection, job_name: str) -> Mail | None:
    statement = (
        select(book_mails)
        .where(book_mails.c.job_name == job_name, book_mails.c.state == MailState.INTENDED)
        .order_by(book_mails.c.id)
        .limit(1)
    )
    row = connection.execute(statement).mappings().one_or_none()
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


def _mail(row: RowMapping) -> Mail:
    return Mail(**{**row, "state": MailState(row["state"])})
