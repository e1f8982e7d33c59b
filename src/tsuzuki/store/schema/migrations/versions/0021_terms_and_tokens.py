"""The holder of the lease is part of a key. And a token knows the token that it was made with.

A leader's write checks the holder of its term and holds FOR KEY SHARE on the row. PostgreSQL lets a change of the
holder wait for that lock only if a unique index has the column. A process of the version before stores no parent of a token.
"""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None
expands = True


def upgrade() -> None:
    op.create_index("ix_leadership_holder", "leadership", ["holder"], unique=True)
    op.add_column("api_tokens", sa.Column("parent_id", sa.Text(), nullable=True))
    op.create_index("ix_api_tokens_parent_id", "api_tokens", ["parent_id"])


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
