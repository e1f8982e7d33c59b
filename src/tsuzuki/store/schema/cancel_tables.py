"""The table of requested cancels. It joins the metadata of the engine, whose table it is."""

from sqlalchemy import CheckConstraint, Column, Table, Text

from tsuzuki.store.schema.tables import metadata
from tsuzuki.store.sql.types import BigId, UtcTime

# A run that is to be canceled as soon as its row is free. No foreign key: its check would wait for the row's lock.
run_cancel_requests = Table(
    "run_cancel_requests",
    metadata,
    Column("run_id", BigId, primary_key=True, autoincrement=False),
    Column("reason", Text, nullable=False),
    Column("requested_by", Text, nullable=False),
    Column("requested_at", UtcTime, nullable=False),
    CheckConstraint("reason IN ('operator', 'replaced')", name="reason"),
)
