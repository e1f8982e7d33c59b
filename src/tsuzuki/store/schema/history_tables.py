"""The table of what is known about deleted history. It joins the metadata of the engine, whose table it is."""

from sqlalchemy import CheckConstraint, Column, Integer, Table

from tsuzuki.store.schema.tables import metadata
from tsuzuki.store.sql.types import BigId, UtcTime

# Every deleted transition is of this moment or older, and has this `seq` or a lower one.
pruned_history = Table(
    "pruned_history",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("until", UtcTime, nullable=False),
    Column("seq", BigId, nullable=False, server_default="0"),
    CheckConstraint("id = 1", name="single"),
)
