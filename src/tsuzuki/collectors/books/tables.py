"""What a collection of books keeps. `collect_cursor` has the names, types and defaults of the design
it comes from; everything else about a search stands beside it, in tables of ours.

    collect_cursor     where each job goes on in each set of queries
    books_searches     the options that shaped the list the cursor counts in, and the run that holds it
    books_quota_days   calls made, or about to be made, on each day of the quota's zone
    books              every volume ever seen, once
    book_finds         which job found which volume, and when
    book_mails         the outbox: one row per mail, written before anything is sent
    book_deliveries    which volume went into which mail; once for each job
"""

from pathlib import Path

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    text,
)

from tsuzuki.outward.outbox import OutboxState
from tsuzuki.store.schema.migrate import Component
from tsuzuki.store.schema.tables import NAMES, one_of
from tsuzuki.store.schema.takeover import FormerTable, FormerTables
from tsuzuki.store.sql.types import BigId, JsonText, KeyText, PlainText, UtcTime

metadata = MetaData(naming_convention=NAMES)


collect_cursor = Table(
    "collect_cursor",
    metadata,
    Column("job_name", Text, primary_key=True),
    Column("query_set_hash", Text, primary_key=True),
    Column("start_index", Integer, nullable=False, server_default=text("0")),
    Column("is_exhausted", Integer, nullable=False, server_default=text("0")),
    Column("last_updated_at", Text, nullable=False),
)

books_searches = Table(
    "tsuzuki_books_searches",
    metadata,
    Column("job_name", Text, primary_key=True),
    Column("query_set_hash", Text, primary_key=True),
    Column("list_options", JsonText, nullable=False),
    Column("held_by_run", BigInteger),
)

books_quota_days = Table(
    "tsuzuki_books_quota_days",
    metadata,
    Column("day", Text, primary_key=True),
    Column("calls", Integer, nullable=False),
    Column("refused_at", UtcTime),
    CheckConstraint("calls >= 0", name="calls"),
)

books = Table(
    "tsuzuki_books",
    metadata,
    Column("volume_id", KeyText, primary_key=True),
    Column("isbn13", Text),
    Column("title", PlainText, nullable=False),
    Column("subtitle", PlainText),
    Column("authors", JsonText, nullable=False),
    Column("publisher", PlainText),
    Column("published_date", PlainText),
    Column("description", PlainText),
    Column("language", PlainText),
    Column("print_type", PlainText),
    Column("page_count", Integer),
    Column("info_link", PlainText),
    Column("content_hash", Text, nullable=False),
    Column("first_seen_at", UtcTime, nullable=False),
    Column("last_seen_at", UtcTime, nullable=False),
)

book_finds = Table(
    "tsuzuki_book_finds",
    metadata,
    Column("job_name", Text, primary_key=True),
    Column("volume_id", KeyText, ForeignKey(books.c.volume_id), primary_key=True),
    Column("found_at", UtcTime, nullable=False),
    Column("found_by_run", BigInteger, nullable=False),
    Column("list_index", Integer, nullable=False),
    sqlite_with_rowid=False,
)

book_mails = Table(
    "tsuzuki_book_mails",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=True),
    Column("job_name", Text, nullable=False),
    Column("message_id", Text, nullable=False, unique=True),
    Column("state", Text, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("changed_at", UtcTime, nullable=False),
    Column("sent_by_run", BigInteger),
    Column("error", PlainText),
    one_of("state", OutboxState),
    Index("tsuzuki_ix_book_mails_job_name_state", "job_name", "state"),
    Index("tsuzuki_ix_book_mails_sent_by_run", "sent_by_run", "id"),
    sqlite_autoincrement=True,
)

book_deliveries = Table(
    "tsuzuki_book_deliveries",
    metadata,
    Column("job_name", Text, primary_key=True),
    Column("volume_id", KeyText, ForeignKey(books.c.volume_id), primary_key=True),
    Column("mail_id", BigInteger, ForeignKey(book_mails.c.id), nullable=False),
    Column("position", Integer, nullable=False),
    Index("tsuzuki_ix_book_deliveries_mail_id", "mail_id", "position"),
)


def _former_tables() -> FormerTables:
    cursor = FormerTable(table=collect_cursor, columns=tuple(collect_cursor.c.keys()))
    return FormerTables(tables=(cursor,))


COMPONENT = Component(
    name="books",
    metadata=metadata,
    versions=Path(__file__).parent / "versions",
    former=_former_tables,
)
