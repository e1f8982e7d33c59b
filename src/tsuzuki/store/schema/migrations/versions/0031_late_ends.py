"""Ends that are stored after their hour was counted are noted, so that they are added to it.

A transaction may commit long after the time of its statement, and a clock may be set back. A process of the version before
counts an hour without a note of what comes late, so it cannot go on beside this migration.
"""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

HISTORY = (
    "job_run_transitions"
    " (run_id, version, from_state, to_state, at, actor, actor_id, epoch, reason, worker_id)"
)


def upgrade() -> None:
    time = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
    big_id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.add_column("run_hours_progress", sa.Column("closing", time, nullable=True))
    op.add_column(
        "run_hours_progress",
        sa.Column("corrections", sa.Integer(), nullable=False, server_default="0"),
    )
    op.execute("UPDATE run_hours_progress SET closing = until")
    op.create_table(
        "late_ends",
        sa.Column("run_id", big_id, autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("run_id", name="pk_late_ends"),
    )
    if op.get_bind().dialect.name == "sqlite":
        note_sqlite()
    else:
        note_postgresql()


def note_sqlite() -> None:
    op.execute("""
        CREATE TRIGGER job_runs_late_end AFTER UPDATE OF finished_at ON job_runs
        WHEN OLD.finished_at IS NULL AND NEW.finished_at IS NOT NULL
            AND NEW.moved_at < (SELECT closing FROM run_hours_progress WHERE id = 1)
        BEGIN
            INSERT INTO late_ends VALUES (NEW.id);
        END
    """)


def note_postgresql() -> None:
    """The function of 0006, which now notes late ends. They are rare: what was moved is searched for one first."""
    op.execute(f"""
        CREATE OR REPLACE FUNCTION tsuzuki_record_moves() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO {HISTORY}
            SELECT n.id, n.version - step.later,
                   CASE WHEN step.is_second THEN 'ASSIGNED' ELSE o.state END,
                   CASE WHEN step.later = 1 THEN 'ASSIGNED' ELSE n.state END,
                   n.moved_at,
                   CASE WHEN step.is_second THEN 'worker' ELSE n.moved_as END,
                   CASE WHEN step.is_second THEN n.assigned_worker_id ELSE n.moved_by END,
                   n.moved_epoch, n.reason, n.assigned_worker_id
            FROM new_rows n
            JOIN old_rows o ON o.id = n.id
            JOIN (VALUES (1, 0, false), (2, 1, false), (2, 0, true)) AS step (steps, later, is_second)
                ON step.steps = n.version - o.version;
            IF EXISTS (
                SELECT FROM new_rows WHERE finished_at IS NOT NULL
                AND moved_at < (SELECT closing FROM run_hours_progress WHERE id = 1)
            ) THEN
                INSERT INTO late_ends
                SELECT n.id FROM new_rows n JOIN old_rows o ON o.id = n.id
                WHERE o.finished_at IS NULL AND n.finished_at IS NOT NULL
                AND n.moved_at < (SELECT closing FROM run_hours_progress WHERE id = 1);
            END IF;
            RETURN NULL;
        END $$
    """)


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
