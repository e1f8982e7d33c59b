"""The table of saved views: addresses of lists, with their filters, under a name of their owner."""

from sqlalchemy import CheckConstraint, Column, Table, Text

from tsuzuki.store.schema.tables import metadata
from tsuzuki.store.sql.types import UtcTime

saved_views = Table(
    "saved_views",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("address", Text, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    CheckConstraint("address LIKE '/%'", name="address"),
)
