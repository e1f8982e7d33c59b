"""Links by which the owner of a server without users signs in.

A process of the version before knows none of them, and lets the owner in without.
"""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None
expands = True


def upgrade() -> None:
    big_id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    time = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
    op.create_table(
        "owner_links",
        sa.Column("id", big_id, autoincrement=True, nullable=False),
        sa.Column("link_hash", sa.Text(), nullable=False),
        sa.Column("created_at", time, nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("expires_at", time, nullable=False),
        sa.Column("opened_at", time, nullable=True),
        sa.Column("session_hash", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_owner_links")),
        sa.UniqueConstraint("link_hash", name=op.f("uq_owner_links_link_hash")),
        sa.UniqueConstraint("session_hash", name=op.f("uq_owner_links_session_hash")),
        sa.CheckConstraint("length(link_hash) = 64", name=op.f("ck_owner_links_link_hash")),
        sa.CheckConstraint("length(session_hash) = 64", name=op.f("ck_owner_links_session_hash")),
        sa.CheckConstraint(
            "(opened_at IS NULL) = (session_hash IS NULL)", name=op.f("ck_owner_links_opened")
        ),
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
