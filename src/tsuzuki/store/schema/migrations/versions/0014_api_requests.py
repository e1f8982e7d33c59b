"""Requests to the API that named an Idempotency-Key, with their answers; and the keys that sign cursors.

New tables only: a process of the version before does not name them.
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None
expands = True


def upgrade() -> None:
    time = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
    op.create_table(
        "api_requests",
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("idempotency_key", sa.Text, nullable=False),
        sa.Column("request_id", sa.Text, nullable=False),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("claim", sa.Text, nullable=False),
        sa.Column("claimed_until", time, nullable=False),
        sa.Column("expires_at", time, nullable=False),
        sa.Column("status", sa.Integer),
        sa.Column("headers", sa.Text),
        sa.Column("body", sa.Text),
        sa.PrimaryKeyConstraint("actor", "idempotency_key", name="pk_api_requests"),
        sa.CheckConstraint(
            "(status IS NULL) = (headers IS NULL) AND (status IS NULL) = (body IS NULL)",
            name="ck_api_requests_answer",
        ),
    )
    op.create_index("ix_api_requests_expires_at", "api_requests", ["expires_at"])
    op.create_table(
        "signing_keys",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("secret", sa.Text, nullable=False),
        sa.Column("created_at", time, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_signing_keys"),
    )


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
