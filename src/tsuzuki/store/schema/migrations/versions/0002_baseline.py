"""The schema of the engine, in the scripts beside this file."""

from tsuzuki.store.schema.sql_scripts import run_scripts

revision = "0002"
down_revision = None


def upgrade() -> None:
    run_scripts(__file__)


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
