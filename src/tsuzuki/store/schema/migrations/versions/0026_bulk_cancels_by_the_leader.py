"""The leader carries bulk cancels out, and assigns nothing that a confirmed one covers.

The row of the leadership counts confirmed bulk cancels; it is unique as epoch and holder are, so that PostgreSQL lets a
confirmation wait for assignments that are under way. A run of a bulk cancel may have the result "requested"; SQLite
cannot change the constraint, so the table is made again. A leader of the version before would go on assigning, so it
cannot go on beside this one.
"""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

COLUMNS = "bulk_id, run_id, result, new_run_id"
RESULTS = "result IN ('canceled', 'requested', 'retried', 'ended before', 'retried before')"
CHECK = "ck_bulk_action_runs_result"


def upgrade() -> None:
    op.add_column(
        "leadership",
        sa.Column("bulk_cancels", sa.BigInteger(), nullable=False, server_default="0"),
    )
    op.create_index("ix_leadership_bulk_cancels", "leadership", ["bulk_cancels"], unique=True)
    if op.get_bind().dialect.name == "sqlite":
        make_again_sqlite()
    else:
        op.drop_constraint(CHECK, "bulk_action_runs", type_="check")
        op.create_check_constraint(CHECK, "bulk_action_runs", RESULTS)


def make_again_sqlite() -> None:
    op.create_table(
        "new_bulk_action_runs",
        sa.Column("bulk_id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("result", sa.Text(), nullable=False),
        sa.Column("new_run_id", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("bulk_id", "run_id", name="pk_bulk_action_runs"),
        sa.CheckConstraint(RESULTS, name=CHECK),
        sa.CheckConstraint(
            "(result = 'retried') = (new_run_id IS NOT NULL)",
            name="ck_bulk_action_runs_new_run_id",
        ),
        sa.ForeignKeyConstraint(
            ["bulk_id"],
            ["bulk_actions.id"],
            name="fk_bulk_action_runs_bulk_id",
            ondelete="CASCADE",
        ),
        sqlite_with_rowid=False,
    )
    op.execute(
        f"INSERT INTO new_bulk_action_runs ({COLUMNS}) SELECT {COLUMNS} FROM bulk_action_runs"
    )
    op.drop_table("bulk_action_runs")
    op.rename_table("new_bulk_action_runs", "bulk_action_runs")


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
