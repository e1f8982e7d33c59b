"""When a worker was told to drain, stored with it: the order outlives the state, if the worker is declared lost.

A column without a value for all workers that are there: a process of the version before does not name it.
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    time = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
    op.add_column("workers", sa.Column("drain_ordered_at", time, nullable=True))


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
