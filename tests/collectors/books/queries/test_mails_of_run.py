"""The mails of a run are found by the run, however many a job has sent."""

from sqlalchemy import insert, text

from collectors.books.stored_mails import NOON
from support.query_plans import last_sent, ways_to
from tsuzuki.collectors.books.queries import outbox
from tsuzuki.collectors.books.tables import book_mails
from tsuzuki.store.sql.database import Database

MAILS = 3_000


def test_the_mails_of_a_run_are_found_by_the_run(books_database: Database) -> None:
    common = {"job_name": "novelties", "state": "sent", "created_at": NOON, "changed_at": NOON}
    with books_database.write() as connection:
        connection.execute(
            insert(book_mails),
            [
                {"id": n, "message_id": f"<{n}@tsuzuki>", "sent_by_run": n // 10, **common}
                for n in range(1, MAILS + 1)
            ],
        )
        connection.execute(text("ANALYZE"))
    with books_database.read() as connection, last_sent(connection) as sent:
        found = outbox.of_run(connection, "novelties", 200, limit=50)
        (way,) = ways_to(connection, "tsuzuki_book_mails", sent[0])
    assert [mail.id for mail in found] == [*range(2000, 2010)]
    assert "tsuzuki_ix_book_mails_sent_by_run" in way
