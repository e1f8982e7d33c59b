"""Requested cancels: runs whose row was locked when they were to be canceled.

A new table, which a process of the version before does not name.
"""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None
expands = True


def upgrade() -> None:
    op.create_table(
        "run_cancel_requests",
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("requested_by", sa.Text(), nullable=False),
        sa.Column(
            "requested_at",
            sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("run_id", name="pk_run_cancel_requests"),
        sa.CheckConstraint(
            "reason IN ('operator', 'replaced')", name="ck_run_cancel_requests_reason"
        ),
    )


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
