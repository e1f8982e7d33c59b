"""Indexes by which the lists of runs, failures, events and changes are searched."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None
expands = True


def upgrade() -> None:
    _partial("ix_job_runs_ended_by_job", "job_definition_id", "finished_at IS NOT NULL")
    bad_states = "state IN ('FAILED', 'TIMED_OUT', 'CANCELED')"
    _partial("ix_job_runs_ended_badly_by_state", "state", bad_states)
    for column in ("reason", "event_id", "retry_of", "origin_id"):
        _partial(f"ix_job_runs_{column}", column, f"{column} IS NOT NULL")
    op.create_index("ix_events_event_type_id", "events", ["event_type", "id"])
    op.create_index("ix_audit_log_actor_id", "audit_log", ["actor", "id"])
    op.create_index("ix_audit_log_object_type_id", "audit_log", ["object_type", "id"])
    op.create_index(
        "ix_run_failures_grouped",
        "run_failures",
        ["failed_at", "group_id", "job_definition_id", "run_id"],
    )


def _partial(name: str, column: str, where: str) -> None:
    """Runs by a column and their id; only those for which `where` is true."""
    op.create_index(
        name,
        "job_runs",
        [column, "id"],
        sqlite_where=sa.text(where),
        postgresql_where=sa.text(where),
    )


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
