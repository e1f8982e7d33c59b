"""Bulk actions, and what became of each run that one was applied to. New tables only."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None
expands = True


def upgrade() -> None:
    time = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
    big_id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "bulk_actions",
        sa.Column("id", big_id, primary_key=True, autoincrement=True),
        sa.Column("verb", sa.Text(), nullable=False),
        sa.Column("filter", sa.Text(), nullable=False),
        sa.Column("ceiling_id", sa.BigInteger(), nullable=False),
        sa.Column("matched", sa.Integer(), nullable=False),
        sa.Column("created_at", time, nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("confirmed_at", time),
        sa.Column("confirmed_by", sa.Text()),
        sa.Column("run_id", big_id),
        sa.Column("position", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("done", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("stopped_at", time),
        sa.Column("finished_at", time),
        sa.CheckConstraint("verb IN ('cancel', 'retry')", name="ck_bulk_actions_verb"),
        sa.CheckConstraint("matched >= 0 AND done >= 0", name="ck_bulk_actions_matched"),
        sa.CheckConstraint(
            "position >= 0 AND position <= ceiling_id", name="ck_bulk_actions_position"
        ),
        sa.CheckConstraint(
            "(confirmed_at IS NULL) = (confirmed_by IS NULL)"
            " AND (confirmed_at IS NOT NULL OR"
            " (run_id IS NULL AND stopped_at IS NULL AND finished_at IS NULL AND done = 0))",
            name="ck_bulk_actions_confirmed",
        ),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "bulk_action_runs",
        sa.Column("bulk_id", big_id, primary_key=True, autoincrement=False),
        sa.Column("run_id", big_id, primary_key=True, autoincrement=False),
        sa.Column("result", sa.Text(), nullable=False),
        sa.Column("new_run_id", big_id),
        sa.CheckConstraint(
            "result IN ('canceled', 'retried', 'ended before', 'retried before')",
            name="ck_bulk_action_runs_result",
        ),
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


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
