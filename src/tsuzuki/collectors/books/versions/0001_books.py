"""Books, cursors, quota and the outbox."""

import sqlalchemy as sa
from alembic import op

revision = "books_0001"
down_revision = None
branch_labels = ("books",)
depends_on = None

# Word for word what the design gives; an installation of before may have the table already.
CURSOR_ON_SQLITE = """
CREATE TABLE IF NOT EXISTS collect_cursor (
  job_name TEXT NOT NULL,
  query_set_hash TEXT NOT NULL,
  start_index INTEGER NOT NULL DEFAULT 0,
  is_exhausted INTEGER NOT NULL DEFAULT 0,
  last_updated_at TEXT NOT NULL DEFAULT (datetime('now')),
  PRIMARY KEY (job_name, query_set_hash)
)
"""

CURSOR_ON_POSTGRESQL = """
CREATE TABLE IF NOT EXISTS collect_cursor (
  job_name TEXT NOT NULL,
  query_set_hash TEXT NOT NULL,
  start_index INTEGER NOT NULL DEFAULT 0,
  is_exhausted INTEGER NOT NULL DEFAULT 0,
  last_updated_at TEXT NOT NULL
    DEFAULT to_char(statement_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS'),
  PRIMARY KEY (job_name, query_set_hash)
)
"""


def Id() -> sa.BigInteger:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def Time() -> sa.DateTime:
    return sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    op.execute(CURSOR_ON_SQLITE if is_sqlite else CURSOR_ON_POSTGRESQL)
    _searches_and_quota()
    _books()
    _mails()


def _searches_and_quota() -> None:
    op.create_table(
        "books_searches",
        sa.Column("job_name", sa.Text(), nullable=False),
        sa.Column("query_set_hash", sa.Text(), nullable=False),
        sa.Column("list_options", sa.Text(), nullable=False),
        sa.Column("held_by_run", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("job_name", "query_set_hash", name=op.f("pk_books_searches")),
    )
    op.create_table(
        "books_quota_days",
        sa.Column("day", sa.Text(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("refused_at", Time(), nullable=True),
        sa.CheckConstraint("calls >= 0", name=op.f("ck_books_quota_days_calls")),
        sa.PrimaryKeyConstraint("day", name=op.f("pk_books_quota_days")),
    )


def _books() -> None:
    op.create_table(
        "books",
        sa.Column("volume_id", sa.Text(), nullable=False),
        sa.Column("isbn13", sa.Text(), nullable=True),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("subtitle", sa.Text(), nullable=True),
        sa.Column("authors", sa.Text(), nullable=False),
        sa.Column("publisher", sa.Text(), nullable=True),
        sa.Column("published_date", sa.Text(), nullable=True),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("language", sa.Text(), nullable=True),
        sa.Column("print_type", sa.Text(), nullable=True),
        sa.Column("page_count", sa.Integer(), nullable=True),
        sa.Column("info_link", sa.Text(), nullable=True),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("first_seen_at", Time(), nullable=False),
        sa.Column("last_seen_at", Time(), nullable=False),
        sa.PrimaryKeyConstraint("volume_id", name=op.f("pk_books")),
    )
    op.create_table(
        "book_finds",
        sa.Column("job_name", sa.Text(), nullable=False),
        sa.Column("volume_id", sa.Text(), nullable=False),
        sa.Column("found_at", Time(), nullable=False),
        sa.Column("found_by_run", sa.BigInteger(), nullable=False),
        sa.Column("list_index", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["volume_id"], ["books.volume_id"], name=op.f("fk_book_finds_volume_id")
        ),
        sa.PrimaryKeyConstraint("job_name", "volume_id", name=op.f("pk_book_finds")),
        sqlite_with_rowid=False,
    )


def _mails() -> None:
    op.create_table(
        "book_mails",
        sa.Column("id", Id(), autoincrement=True, nullable=False),
        sa.Column("job_name", sa.Text(), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("created_at", Time(), nullable=False),
        sa.Column("changed_at", Time(), nullable=False),
        sa.Column("sent_by_run", sa.BigInteger(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "state IN ('intended', 'sending', 'sent', 'refused', 'unsettled')",
            name=op.f("ck_book_mails_state"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_book_mails")),
        sa.UniqueConstraint("message_id", name=op.f("uq_book_mails_message_id")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_book_mails_job_name_state", "book_mails", ["job_name", "state"])
    op.create_table(
        "book_deliveries",
        sa.Column("job_name", sa.Text(), nullable=False),
        sa.Column("volume_id", sa.Text(), nullable=False),
        sa.Column("mail_id", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["volume_id"], ["books.volume_id"], name=op.f("fk_book_deliveries_volume_id")
        ),
        sa.ForeignKeyConstraint(
            ["mail_id"], ["book_mails.id"], name=op.f("fk_book_deliveries_mail_id")
        ),
        sa.PrimaryKeyConstraint("job_name", "volume_id", name=op.f("pk_book_deliveries")),
    )
    op.create_index("ix_book_deliveries_mail_id", "book_deliveries", ["mail_id", "position"])
