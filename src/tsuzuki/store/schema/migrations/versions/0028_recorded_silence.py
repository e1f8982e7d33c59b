"""A leader records that a worker is silent before it fails the worker's runs.

On SQLite a worker that waits for the write lock can still read, and sees by this column that no leader is about to fail
its runs. A process of the version before records nothing and fails them without it.
"""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None
expands = True


def upgrade() -> None:
    time = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
    op.add_column("workers", sa.Column("silence_recorded_at", time, nullable=True))


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
