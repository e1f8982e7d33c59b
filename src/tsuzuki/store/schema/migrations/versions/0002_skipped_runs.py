"""The run that was in the way of a skipped one, and counts of skipped runs apart from canceled ones."""

from tsuzuki.store.schema.sql_scripts import run_scripts

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    run_scripts(__file__)


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
