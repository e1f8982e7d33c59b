"""Progress is stored with the number of its report, so that an older report does not replace a newer one."""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None
expands = True

FINAL = "'SUCCEEDED', 'FAILED', 'TIMED_OUT', 'CANCELED'"


def upgrade() -> None:
    op.add_column("job_runs", sa.Column("progress_number", sa.BigInteger(), nullable=True))
    if op.get_bind().dialect.name == "sqlite":
        # The guard of finished runs lists its columns; PostgreSQL's compares the whole row.
        op.execute(
            "CREATE TRIGGER job_runs_progress BEFORE UPDATE OF progress_number ON job_runs"
            f" WHEN OLD.state IN ({FINAL})"
            " BEGIN SELECT RAISE(ABORT, 'tsuzuki: a finished run does not change'); END"
        )


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
