"""Up to which moment history was deleted: what a reader that comes back may have missed."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None
expands = True


def upgrade() -> None:
    time = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
    op.create_table(
        "pruned_history",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("until", time, nullable=False),
        sa.CheckConstraint("id = 1", name="ck_pruned_history_single"),
    )


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
