"""Mails written straight into the outbox, in any state."""

from datetime import UTC, datetime

from sqlalchemy import Connection

from tsuzuki.collectors.books.book import Book
from tsuzuki.collectors.books.queries import books, outbox
from tsuzuki.outward.outbox import OutboxState

NOON = datetime(2026, 11, 2, 12, tzinfo=UTC)


def add_mail(connection: Connection, volume_id: str, *states: OutboxState) -> int:
    """A mail of the job `novelties` with one book, after it went through these states."""
    book = Book(volume_id, "Stars")
    books.put_page(connection, [(0, book)], job_name="novelties", run_id=1, now=NOON)
    mail = outbox.intend(
        connection,
        job_name="novelties",
        message_id=f"<{volume_id}@tsuzuki>",
        selected=[book],
        now=NOON,
    )
    before = mail.state
    for after in states:
        assert outbox.OUTBOX.move(connection, mail.id, before=before, after=after, now=NOON)
        before = after
    return mail.id
