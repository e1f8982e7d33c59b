"""The table of past terms. It joins the metadata of the engine, whose table it is."""

from sqlalchemy import BigInteger, Column, Table, Text

from tsuzuki.store.schema.tables import metadata
from tsuzuki.store.sql.types import UtcTime

# Written by triggers on leadership only. `ended_at` is empty for the current term.
leader_terms = Table(
    "leader_terms",
    metadata,
    Column("epoch", BigInteger, primary_key=True, autoincrement=False),
    Column("holder", Text, nullable=False),
    Column("taken_at", UtcTime, nullable=False),
    Column("ended_at", UtcTime),
)
