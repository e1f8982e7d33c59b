"""A worker that was started for one run is stored with that run's id, so that every leader gives it nothing else.

A leader of the version before does not read it, and gives the worker other runs of its job (`only_job`) too.
"""

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None
expands = True


def upgrade() -> None:
    op.add_column("workers", sa.Column("only_run", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
