"""How often a run lost its worker, and which of those losses count against it, stored with the run.

They were counted as the attempts that used up no retry, so that a shutdown or an outage counted like
a worker that the run had killed. Columns with defaults: a process of the version before does not name them.
"""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

COUNTS = ("orphans_free", "losses", "losses_free")
FINAL = "'SUCCEEDED', 'FAILED', 'TIMED_OUT', 'CANCELED'"


def upgrade() -> None:
    for name in COUNTS:
        op.execute(
            f"ALTER TABLE job_runs ADD COLUMN {name} INTEGER DEFAULT '0' NOT NULL"
            f" CONSTRAINT ck_job_runs_{name} CHECK ({name} >= 0)"
        )
    if op.get_bind().dialect.name == "sqlite":
        # The guard of finished runs lists its columns; PostgreSQL's compares the whole row.
        op.execute(f"""
            CREATE TRIGGER job_runs_losses BEFORE UPDATE OF {", ".join(COUNTS)} ON job_runs
            WHEN OLD.state IN ({FINAL})
            BEGIN SELECT RAISE(ABORT, 'tsuzuki: a finished run does not change'); END
        """)


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
