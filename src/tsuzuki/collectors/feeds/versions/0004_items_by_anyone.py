"""Triggers that keep `waiting_items` complete: an item that another program puts into `items` is drawn.

Such an item has no feed until a run gives it to one, so the feed of a waiting item may be missing.
"""

from alembic import op

from tsuzuki.collectors.feeds.items import triggers

revision = "feeds_0004"
down_revision = "feeds_0003"
branch_labels = None
depends_on = None

TIMES = ("published_at", "created_at", "last_checked_at")


def upgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        allow_no_feed_in_sqlite()
        form = triggers.time_text
        # In one statement: a CHECK compares two of them.
        times = ", ".join(f"{name} = coalesce({form(name)}, {name})" for name in TIMES)
        connection.exec_driver_sql(f"UPDATE items SET {times}")
    else:
        op.alter_column("waiting_items", "feed_id", nullable=True)
    triggers.add_missing(connection)
    triggers.create(connection)


def allow_no_feed_in_sqlite() -> None:
    """Change the definition where it is stored: SQLite has no statement for it."""
    connection = op.get_bind()
    version = connection.exec_driver_sql("PRAGMA schema_version").scalar_one()
    connection.exec_driver_sql("PRAGMA writable_schema = ON")
    connection.exec_driver_sql(
        "UPDATE sqlite_master SET sql = replace(sql, 'feed_id BIGINT NOT NULL', 'feed_id BIGINT')"
        " WHERE type = 'table' AND name = 'waiting_items'"
    )
    connection.exec_driver_sql(f"PRAGMA schema_version = {version + 1}")
    connection.exec_driver_sql("PRAGMA writable_schema = RESET")
