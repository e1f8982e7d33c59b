"""The table of failing loops. It joins the metadata of the engine, whose table it is."""

from sqlalchemy import Column, Integer, Table, Text

from tsuzuki.store.schema.tables import metadata
from tsuzuki.store.sql.types import PlainText, UtcTime

# Written by the process whose loop it is, again and again while the loop fails: a row whose `seen_at` is old was left
# by a process that is gone.
failing_loops = Table(
    "failing_loops",
    metadata,
    Column("process", Text, primary_key=True),
    Column("loop", Text, primary_key=True),
    Column("failures", Integer, nullable=False),
    Column("since", UtcTime, nullable=False),
    Column("seen_at", UtcTime, nullable=False),
    Column("code", Text, nullable=False),
    Column("error", PlainText, nullable=False),
)
