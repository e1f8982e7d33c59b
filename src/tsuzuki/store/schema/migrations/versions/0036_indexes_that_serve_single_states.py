"""On SQLite the indexes of what waits and of what is held serve a search for one state too, and that of creation all runs.

SQLite uses a partial index only if a term of the WHERE is one of the terms, joined by OR, of the index's condition: a search
for `state = 'PENDING'` scanned the table. The conditions mean the same as before. A run was written into the index of
creation when it ended, and is now when it is created. PostgreSQL proves the former conditions, and keeps its indexes: it
would write a full one with every move.
"""

from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None
expands = True

INDEXES = {
    "ix_job_runs_state_scheduled_for": (
        "(state, scheduled_for)"
        " WHERE state IN ('PENDING', 'ORPHANED') OR state = 'PENDING' OR state = 'ORPHANED'"
    ),
    "ix_job_runs_assigned_worker_id_state": (
        "(assigned_worker_id, state)"
        " WHERE state IN ('ASSIGNED', 'RUNNING') OR state = 'ASSIGNED' OR state = 'RUNNING'"
    ),
    "ix_job_runs_created_at": "(created_at)",
}


def upgrade() -> None:
    if op.get_bind().dialect.name != "sqlite":
        return
    for name, what in INDEXES.items():
        op.drop_index(name, "job_runs")
        op.execute(f"CREATE INDEX {name} ON job_runs {what}")


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
