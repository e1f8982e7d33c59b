"""Columns for deaths of processes that others on the same machine have seen."""

from tsuzuki.store.schema.sql_scripts import run_scripts

revision = "0003"
down_revision = "0002"
expands = True


def upgrade() -> None:
    run_scripts(__file__)


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
