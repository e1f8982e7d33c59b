"""The reasons of runs that ended with their process: crashed, or over their limit of memory."""

from tsuzuki.store.schema.sql_scripts import run_scripts

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    run_scripts(__file__)


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
