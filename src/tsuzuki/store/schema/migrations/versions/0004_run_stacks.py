"""Requests for the live stack of a run, and the answers."""

from tsuzuki.store.schema.sql_scripts import run_scripts

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    run_scripts(__file__)


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
