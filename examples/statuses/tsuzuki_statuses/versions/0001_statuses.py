"""Create the tables for statuses and cursors."""

import sqlalchemy as sa
from alembic import op

from tsuzuki.store.sql.types import UtcTime

revision = "0001"
down_revision = None


def upgrade():
    op.create_table(
        "tsuzuki_statuses_kept",
        sa.Column("job", sa.Text, primary_key=True),
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("run_id", sa.BigInteger, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("created_at", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
    )
    op.create_table(
        "tsuzuki_statuses_cursors",
        sa.Column("job", sa.Text, primary_key=True),
        sa.Column("account", sa.Text, nullable=False),
        sa.Column("newest_id", sa.Text, nullable=False),
        sa.Column("updated_at", UtcTime, nullable=False),
    )
