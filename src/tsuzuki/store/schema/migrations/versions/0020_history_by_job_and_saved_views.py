"""The hours of a job, by job. And lists that were saved under a name.

An index and a new table, which a process of the version before does not name.
"""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None
expands = True


def upgrade() -> None:
    op.create_index("ix_run_hours_job_definition_id", "run_hours", ["job_definition_id", "hour"])
    op.create_table(
        "saved_views",
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("owner", "name", name="pk_saved_views"),
        sa.CheckConstraint("address LIKE '/%'", name="ck_saved_views_address"),
    )


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
