"""Loops that keep failing are stored, so that `doctor` can show those of other processes."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None
expands = True


def upgrade() -> None:
    time = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
    op.create_table(
        "failing_loops",
        sa.Column("process", sa.Text(), primary_key=True),
        sa.Column("loop", sa.Text(), primary_key=True),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("since", time, nullable=False),
        sa.Column("seen_at", time, nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
    )


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
