"""What a job did, by job: its newest runs that have ended, and its hours. Indexes only."""

from alembic import op

revision = "0024"
down_revision = "0017"
branch_labels = None
depends_on = None
expands = True


def upgrade() -> None:
    # A run enters it once, when it ends.
    op.execute(
        "CREATE INDEX ix_job_runs_ended_by_job ON job_runs (job_definition_id, id)"
        " WHERE finished_at IS NOT NULL"
    )
    op.create_index("ix_run_hours_job_definition_id", "run_hours", ["job_definition_id", "hour"])


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
