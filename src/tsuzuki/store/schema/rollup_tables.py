"""The tables of hourly rollups. They join the metadata of the engine, whose tables they are."""

from sqlalchemy import CheckConstraint, Column, Float, Index, Integer, Table, Text

from tsuzuki.store.schema.tables import job_run_transitions, metadata
from tsuzuki.store.sql.types import BigId, UtcTime

run_hours = Table(
    "run_hours",
    metadata,
    Column("hour", UtcTime, primary_key=True),
    # No foreign key: the counts of a job that was removed stay.
    Column("job_definition_id", BigId, primary_key=True, autoincrement=False),
    Column("outcome", Text, primary_key=True),
    Column("bucket", Integer, primary_key=True, autoincrement=False),
    Column("runs", Integer, nullable=False),
    Column("seconds", Float, nullable=False),
    CheckConstraint("outcome IN ('SUCCEEDED', 'FAILED', 'TIMED_OUT', 'CANCELED')", name="outcome"),
    CheckConstraint("bucket >= 0", name="bucket"),
    CheckConstraint("runs >= 1", name="runs"),
    sqlite_with_rowid=False,
)
Index("ix_run_hours_job_definition_id", run_hours.c.job_definition_id, run_hours.c.hour)

run_hours_progress = Table(
    "run_hours_progress",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    # Up to which hour, itself not included, everything is counted.
    Column("until", UtcTime, nullable=False),
    # A run that ends before this moment is late: a trigger notes it. From the start of counting an hour on, its end.
    Column("closing", UtcTime),
    # How often late ends were added to hours that had been counted.
    Column("corrections", Integer, nullable=False, server_default="0"),
    CheckConstraint("id = 1", name="single"),
)

# Ends that were stored when their hour was being counted, or was counted. They are to be added to it.
late_ends = Table(
    "late_ends",
    metadata,
    Column("run_id", BigId, primary_key=True, autoincrement=False),
)

# History by time: what ended in an hour, and what happened since a moment.
Index("ix_job_run_transitions_at", job_run_transitions.c.at)
