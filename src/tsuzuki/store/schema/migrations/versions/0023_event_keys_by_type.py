"""The key of an event is unique among the events of its type, and the type of an event does not change.

SQLite cannot drop the constraint, so the table is made again: with its rows, the highest id that was ever given, its
indexes and its triggers. A process of the version before cannot go on beside it: its ON CONFLICT names a constraint that
is gone.
"""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

COLUMNS = "id, event_type, payload, dedupe_key, created_at, processed_at"
KEY = "uq_events_dedupe_key_event_type"
REFUSED = "tsuzuki: an event keeps its key and its type, and once processed stays processed"
REPLACED = "tsuzuki: REPLACE would delete another row"
CHANGED = (
    "NEW.id <> OLD.id OR NEW.event_type <> OLD.event_type OR OLD.dedupe_key {differs} NEW.dedupe_key"
    " OR (OLD.processed_at IS NOT NULL AND OLD.processed_at {differs} NEW.processed_at)"
)


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        make_again_sqlite()
        guard_sqlite()
    else:
        op.drop_constraint("uq_events_dedupe_key", "events", type_="unique")
        op.create_unique_constraint(KEY, "events", ["dedupe_key", "event_type"])
        guard_postgresql()


def make_again_sqlite() -> None:
    op.create_table(
        "new_events",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("event_type", sa.Text(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("dedupe_key", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.Column("processed_at", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
        sa.UniqueConstraint("dedupe_key", "event_type", name=KEY),
        sqlite_autoincrement=True,
    )
    op.execute(f"INSERT INTO new_events ({COLUMNS}) SELECT {COLUMNS} FROM events")
    op.execute("DELETE FROM sqlite_sequence WHERE name = 'new_events'")
    op.execute(
        "INSERT INTO sqlite_sequence (name, seq)"
        " SELECT 'new_events', seq FROM sqlite_sequence WHERE name = 'events'"
    )
    op.drop_table("events")
    op.rename_table("new_events", "events")
    op.create_index("ix_events_processed_at_created_at", "events", ["processed_at", "created_at"])
    op.create_index("ix_events_event_type_id", "events", ["event_type", "id"])


def guard_sqlite() -> None:
    op.execute(
        "CREATE TRIGGER events_keep"
        " BEFORE UPDATE OF id, rowid, oid, _rowid_, event_type, dedupe_key, processed_at ON events"
        f" WHEN {CHANGED.format(differs='IS NOT')} BEGIN SELECT RAISE(ABORT, '{REFUSED}'); END"
    )
    # As in 0010: the second INSERT takes effect under REPLACE only.
    op.execute(f"""
        CREATE TRIGGER events_replace BEFORE INSERT ON events
        WHEN EXISTS (SELECT 1 FROM events WHERE id = NEW.id)
            OR (NEW.dedupe_key IS NOT NULL AND EXISTS (
                SELECT 1 FROM events
                WHERE dedupe_key = NEW.dedupe_key AND event_type = NEW.event_type))
        BEGIN
            INSERT OR IGNORE INTO replace_checks VALUES (1, 0);
            INSERT OR IGNORE INTO replace_checks VALUES (1, 1);
            SELECT RAISE(ABORT, '{REPLACED}') FROM replace_checks WHERE is_replacing;
        END
    """)


def guard_postgresql() -> None:
    op.execute("DROP TRIGGER events_keep ON events")
    op.execute(
        "CREATE TRIGGER events_keep"
        " BEFORE UPDATE OF id, event_type, dedupe_key, processed_at ON events"
        f" FOR EACH ROW WHEN ({CHANGED.format(differs='IS DISTINCT FROM')})"
        f" EXECUTE FUNCTION tsuzuki_refuse('{REFUSED}')"
    )


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
