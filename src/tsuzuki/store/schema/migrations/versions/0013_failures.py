"""Groups of failures: two new tables, which a process of the version before does not name. Its failures are in no
group.
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None
expands = True


def Id() -> sa.BigInteger:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def Time() -> sa.DateTime:
    return sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "failure_groups",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("signature", sa.Text(), nullable=False),
        sa.Column("acknowledged_run_id", Id(), nullable=True),
        sa.Column("acknowledged_at", Time(), nullable=True),
        sa.Column("acknowledged_by", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_failure_groups")),
        sa.CheckConstraint(
            "(acknowledged_run_id IS NULL) = (acknowledged_at IS NULL)"
            " AND (acknowledged_at IS NULL) = (acknowledged_by IS NULL)",
            name=op.f("ck_failure_groups_acknowledged"),
        ),
    )
    op.create_table(
        "run_failures",
        sa.Column("run_id", Id(), autoincrement=False, nullable=False),
        sa.Column("group_id", sa.Text(), nullable=False),
        sa.Column("job_definition_id", Id(), nullable=False),
        sa.Column("failed_at", Time(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_run_failures")),
    )
    op.create_index("ix_run_failures_group_id_run_id", "run_failures", ["group_id", "run_id"])
    op.create_index("ix_run_failures_failed_at", "run_failures", ["failed_at"])


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
