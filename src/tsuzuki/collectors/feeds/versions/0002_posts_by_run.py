"""What a run has posted, by the run: an index, which a process of the version before does not name."""

from alembic import op

revision = "feeds_0002"
down_revision = "feeds_0001"
branch_labels = None
depends_on = None
expands = True


def upgrade() -> None:
    op.create_index("ix_feed_posts_sent_by_run", "feed_posts", ["sent_by_run", "id"])
