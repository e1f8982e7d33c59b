"""Tables: statuses by job, and each job's cursor."""

from pathlib import Path

from sqlalchemy import BigInteger, Column, MetaData, Table, Text

from tsuzuki.store.schema.migrate import Component
from tsuzuki.store.sql.types import UtcTime

metadata = MetaData()
kept = Table(
    "tsuzuki_statuses_kept",
    metadata,
    Column("job", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("run_id", BigInteger, nullable=False),
    Column("url", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("content", Text, nullable=False),
)
cursors = Table(
    "tsuzuki_statuses_cursors",
    metadata,
    Column("job", Text, primary_key=True),
    Column("account", Text, nullable=False),
    Column("newest_id", Text, nullable=False),
    Column("updated_at", UtcTime, nullable=False),
)
COMPONENT = Component(
    name="statuses", metadata=metadata, versions=Path(__file__).parent / "versions"
)
