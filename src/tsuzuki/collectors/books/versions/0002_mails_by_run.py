"""What a run has mailed, by the run: an index, which a process of the version before does not name."""

from alembic import op

revision = "books_0002"
down_revision = "books_0001"
branch_labels = None
depends_on = None
expands = True


def upgrade() -> None:
    op.create_index("ix_book_mails_sent_by_run", "book_mails", ["sent_by_run", "id"])
