"""The hours of a job, by job. An index only."""

from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None
expands = True


def upgrade() -> None:
    op.create_index("ix_run_hours_job_definition_id", "run_hours", ["job_definition_id", "hour"])


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
