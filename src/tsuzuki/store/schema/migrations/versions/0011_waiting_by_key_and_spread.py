"""Two indexes of waiting runs by job, so that a blocked backlog is passed job by job and key by key, not run by run.

PostgreSQL limits the size of an index entry: runs with a long key, of which there are next to none, are in an index
without the key.

And over how long the ticks of a job are spread. The column has a default: a process of the version before does not name
it, and plans each tick at its nominal time.
"""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None
expands = True

WAITING = "state IN ('PENDING', 'ORPHANED')"


def upgrade() -> None:
    op.execute(
        "CREATE INDEX ix_job_runs_waiting_by_key ON job_runs"
        " (job_definition_id, concurrency_key, priority DESC, scheduled_for, id)"
        f" WHERE {WAITING} AND (concurrency_key IS NULL OR length(concurrency_key) <= 200)"
    )
    op.execute(
        "CREATE INDEX ix_job_runs_waiting_long_key ON job_runs"
        " (job_definition_id, priority DESC, scheduled_for, id)"
        f" WHERE {WAITING} AND length(concurrency_key) > 200"
    )
    op.execute(
        "ALTER TABLE job_definitions ADD COLUMN spread_seconds FLOAT DEFAULT '0' NOT NULL"
        " CONSTRAINT ck_job_definitions_spread_seconds CHECK (spread_seconds >= 0)"
    )


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
