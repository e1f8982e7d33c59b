"""Indexes hold what is looked for in them, and no more: a finished run has left most of them.

PostgreSQL writes every index anew with each move of a run, and a large index is slower to write. Three of them held every
run for ever: what waits is looked for by its state and time, what is held by its worker, and what is old by its
age once it has finished.

What ended badly has an index of its own, in which the few are found among the many that did not.
"""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

INDEXES = {
    "ix_job_runs_state_scheduled_for": "(state, scheduled_for) WHERE state IN ('PENDING', 'ORPHANED')",
    "ix_job_runs_assigned_worker_id_state": "(assigned_worker_id, state) WHERE state IN ('ASSIGNED', 'RUNNING')",
    "ix_job_runs_created_at": "(created_at) WHERE finished_at IS NOT NULL",
}
ENDED_BADLY = "(id) WHERE state IN ('FAILED', 'TIMED_OUT', 'CANCELED')"


def upgrade() -> None:
    for name, what in INDEXES.items():
        op.drop_index(name, "job_runs")
        op.execute(f"CREATE INDEX {name} ON job_runs {what}")
    op.execute(f"CREATE INDEX ix_job_runs_ended_badly ON job_runs {ENDED_BADLY}")


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
