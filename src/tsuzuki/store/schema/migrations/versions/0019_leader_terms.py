"""Past terms of leaders: noted by a trigger on leadership, so that a process of any version leaves its row.

A term ends when its holder gives the lease back or is made to step down, else when its lease ran out. The newest
thousand are kept.
"""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None
expands = True

IS_TAKEN = "NEW.epoch > OLD.epoch AND NEW.holder IS NOT NULL AND NEW.taken_at IS NOT NULL"
IS_RELEASED = "NEW.epoch = OLD.epoch AND NEW.holder IS NULL AND OLD.holder IS NOT NULL"
NOTE_TAKEN = (
    "UPDATE leader_terms SET ended_at = OLD.lease_expires_at"
    " WHERE epoch = OLD.epoch AND ended_at IS NULL",
    "INSERT INTO leader_terms (epoch, holder, taken_at)"
    " VALUES (NEW.epoch, NEW.holder, NEW.taken_at) ON CONFLICT (epoch) DO NOTHING",
    "DELETE FROM leader_terms WHERE epoch <= NEW.epoch - 1000",
)
NOTE_RELEASED = (
    "UPDATE leader_terms SET ended_at = NEW.lease_expires_at"
    " WHERE epoch = NEW.epoch AND ended_at IS NULL",
)


def upgrade() -> None:
    time = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
    op.create_table(
        "leader_terms",
        sa.Column("epoch", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("taken_at", time, nullable=False),
        sa.Column("ended_at", time),
    )
    op.execute(
        "INSERT INTO leader_terms (epoch, holder, taken_at)"
        " SELECT epoch, holder, taken_at FROM leadership"
        " WHERE holder IS NOT NULL AND taken_at IS NOT NULL"
    )
    note = _note_sqlite if op.get_bind().dialect.name == "sqlite" else _note_postgresql
    note("leadership_taken", IS_TAKEN, NOTE_TAKEN)
    note("leadership_released", IS_RELEASED, NOTE_RELEASED)


def _note_sqlite(name: str, when: str, statements: tuple[str, ...]) -> None:
    body = " ".join(f"{statement};" for statement in statements)
    op.execute(f"CREATE TRIGGER {name} AFTER UPDATE ON leadership WHEN {when} BEGIN {body} END")


def _note_postgresql(name: str, when: str, statements: tuple[str, ...]) -> None:
    body = " ".join(f"{statement};" for statement in statements)
    op.execute(
        f"CREATE FUNCTION tsuzuki_{name}() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN {body} RETURN NULL; END $$"
    )
    op.execute(
        f"CREATE TRIGGER {name} AFTER UPDATE ON leadership FOR EACH ROW WHEN ({when})"
        f" EXECUTE FUNCTION tsuzuki_{name}()"
    )


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
