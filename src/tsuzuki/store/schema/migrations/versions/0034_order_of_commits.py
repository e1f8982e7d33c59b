"""History on SQLite has the order of commits, which a clock that is set back does not change.

What is there is ordered by its time. PostgreSQL has transaction ids, and leaves the column empty. A process of the version
before reads history by its time, as it did; the triggers number what it writes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None
expands = True

HISTORY = (
    "job_run_transitions"
    " (run_id, version, from_state, to_state, at, actor, actor_id, epoch, reason, worker_id, seq)"
)
REFUSED = "tsuzuki: the history of runs is written by moves and never rewritten"
# A number is not given again after its row was pruned.
NEXT = """
    1 + max(coalesce((SELECT max(seq) FROM job_run_transitions), 0),
            coalesce((SELECT seq FROM pruned_history WHERE id = 1), 0))
"""


def upgrade() -> None:
    big_id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.add_column("job_run_transitions", sa.Column("seq", big_id, nullable=True))
    op.add_column("pruned_history", sa.Column("seq", big_id, nullable=False, server_default="0"))
    if op.get_bind().dialect.name == "sqlite":
        number_sqlite()
        op.create_index("ix_job_run_transitions_seq", "job_run_transitions", ["seq"])
        record_sqlite()


def number_sqlite() -> None:
    op.execute("DROP TRIGGER job_run_transitions_update")
    op.execute("""
        UPDATE job_run_transitions SET seq = numbered.number FROM (
            SELECT run_id, version, row_number() OVER (ORDER BY at, run_id, version) AS number
            FROM job_run_transitions) AS numbered
        WHERE numbered.run_id = job_run_transitions.run_id
            AND numbered.version = job_run_transitions.version
    """)
    op.execute(
        "CREATE TRIGGER job_run_transitions_update BEFORE UPDATE ON job_run_transitions"
        f" WHEN 1 BEGIN SELECT RAISE(ABORT, '{REFUSED}'); END"
    )


def record_sqlite() -> None:
    """The triggers of 0006, which now number what they write."""
    op.execute("DROP TRIGGER job_runs_history")
    op.execute(f"""
        CREATE TRIGGER job_runs_history AFTER UPDATE OF state ON job_runs
        WHEN NEW.version = OLD.version + 1
        BEGIN
            INSERT INTO {HISTORY}
            VALUES (NEW.id, NEW.version, OLD.state, NEW.state, NEW.moved_at, NEW.moved_as,
                    NEW.moved_by, NEW.moved_epoch, NEW.reason, NEW.assigned_worker_id, {NEXT});
        END
    """)
    op.execute("DROP TRIGGER job_runs_history_of_two")
    op.execute(f"""
        CREATE TRIGGER job_runs_history_of_two AFTER UPDATE OF state ON job_runs
        WHEN NEW.version = OLD.version + 2
        BEGIN
            INSERT INTO {HISTORY}
            VALUES (NEW.id, NEW.version - 1, OLD.state, 'ASSIGNED', NEW.moved_at, NEW.moved_as,
                    NEW.moved_by, NEW.moved_epoch, NEW.reason, NEW.assigned_worker_id, {NEXT});
            INSERT INTO {HISTORY}
            VALUES (NEW.id, NEW.version, 'ASSIGNED', NEW.state, NEW.moved_at, 'worker',
                    NEW.assigned_worker_id, NEW.moved_epoch, NEW.reason, NEW.assigned_worker_id,
                    {NEXT});
        END
    """)


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
