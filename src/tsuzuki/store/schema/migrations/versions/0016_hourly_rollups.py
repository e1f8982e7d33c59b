"""What ended in each hour, by job, outcome and duration; and history by time, which it is counted from."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None
expands = True


def upgrade() -> None:
    time = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
    big_id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_index("ix_job_run_transitions_at", "job_run_transitions", ["at"])
    op.create_table(
        "run_hours",
        sa.Column("hour", time, primary_key=True),
        sa.Column("job_definition_id", big_id, primary_key=True, autoincrement=False),
        sa.Column("outcome", sa.Text(), primary_key=True),
        sa.Column("bucket", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("runs", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.CheckConstraint(
            "outcome IN ('SUCCEEDED', 'FAILED', 'TIMED_OUT', 'CANCELED')",
            name="ck_run_hours_outcome",
        ),
        sa.CheckConstraint("bucket >= 0", name="ck_run_hours_bucket"),
        sa.CheckConstraint("runs >= 1", name="ck_run_hours_runs"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "run_hours_progress",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("until", time, nullable=False),
        sa.CheckConstraint("id = 1", name="ck_run_hours_progress_single"),
    )


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
