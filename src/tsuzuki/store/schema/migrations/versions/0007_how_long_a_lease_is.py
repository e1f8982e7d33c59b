"""How long the lease was given for, beside when it ends: so that one that ends later than it can is known for
what it is, the trace of a clock that was put back.

For a lease that is held while this is done nobody knows; it counts as the longest that can be set.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    column = sa.Column("lease_seconds", sa.Float, nullable=False, server_default=sa.text("600"))
    op.add_column("leadership", column)


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
