"""A worker is stored with what it can execute, so that every leader gives it nothing else.

A worker of the version before registers nothing, and gets every run as before. A leader of the version before does not
read it.
"""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None
expands = True


def upgrade() -> None:
    op.add_column("workers", sa.Column("abilities", sa.Text(), nullable=True))


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
