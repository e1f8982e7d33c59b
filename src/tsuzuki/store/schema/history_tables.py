"""The table of what is known about deleted history. It joins the metadata of the engine, whose table it is."""

from sqlalchemy import CheckConstraint, Column, Integer, Table

from tsuzuki.store.schema.tables import metadata
from tsuzuki.store.sql.types import UtcTime

# Every deleted transition is of this moment or older.
pruned_history = Table(
    "pruned_history",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("until", UtcTime, nullable=False),
    CheckConstraint("id = 1", name="single"),
)
