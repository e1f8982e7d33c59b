"""A worker that was started for one job is stored with that job's name, so that every leader gives it nothing else.

A leader of the version before does not read it, and goes on assigning by tags and capacity alone.
"""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None
expands = True


def upgrade() -> None:
    op.add_column("workers", sa.Column("only_job", sa.Text(), nullable=True))


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
