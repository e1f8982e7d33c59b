"""A worker is stored with the time to live and the grace period that it works by, so that no leader judges it by shorter ones.

A worker of the version before stores none, and is judged by the settings alone, as before.
"""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None
expands = True


def upgrade() -> None:
    op.add_column("workers", sa.Column("ttl_seconds", sa.Float(), nullable=True))
    op.add_column("workers", sa.Column("grace_seconds", sa.Float(), nullable=True))


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
