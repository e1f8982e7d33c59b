"""When a post whose outcome is not known is looked for next, and how often that was done. A process of the version
before looks at every run, and names none of these columns."""

import sqlalchemy as sa
from alembic import op

revision = "feeds_0003"
down_revision = "feeds_0002"
branch_labels = None
depends_on = None
expands = True


def upgrade() -> None:
    time = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
    for name in ("looks", "absences"):
        op.add_column(
            "feed_posts", sa.Column(name, sa.Integer(), nullable=False, server_default="0")
        )
    op.add_column("feed_posts", sa.Column("next_look_at", time, nullable=True))
    op.execute("UPDATE feed_posts SET next_look_at = changed_at WHERE state = 'unsettled'")


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
