"""The tables of what happened, and the indexes by which lists are searched.

pruned_history      what is known about deleted history
run_hours           counts of ended runs by hour, with run_hours_progress and late_ends
failure_groups      one row for each signature, with what was acknowledged
run_failures        the group that a failed run belongs to; deleted with its run

A successful run without an event and without a retry is in one of the search indexes, once, when it ends: a drain pays
for no more.
"""

from sqlalchemy import CheckConstraint, Column, Float, Index, Integer, Table, Text

from tsuzuki.store.schema.tables import (
    audit_log,
    events,
    job_run_transitions,
    job_runs,
    metadata,
    partial_index,
)
from tsuzuki.store.sql.types import BigId, PlainText, UtcTime

# Every deleted transition is of this moment or older, and has this `seq` or a lower one.
pruned_history = Table(
    "tsuzuki_pruned_history",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("until", UtcTime, nullable=False),
    Column("seq", BigId, nullable=False, server_default="0"),
    CheckConstraint("id = 1", name="single"),
)

run_hours = Table(
    "tsuzuki_run_hours",
    metadata,
    Column("hour", UtcTime, primary_key=True),
    # No foreign key: the counts of a job that was removed stay.
    Column("job_definition_id", BigId, primary_key=True, autoincrement=False),
    Column("outcome", Text, primary_key=True),
    Column("bucket", Integer, primary_key=True, autoincrement=False),
    Column("runs", Integer, nullable=False),
    Column("seconds", Float, nullable=False),
    CheckConstraint(
        "outcome IN ('SUCCEEDED', 'FAILED', 'TIMED_OUT', 'CANCELED', 'SKIPPED')", name="outcome"
    ),
    CheckConstraint("bucket >= 0", name="bucket"),
    CheckConstraint("runs >= 1", name="runs"),
    sqlite_with_rowid=False,
)
Index("tsuzuki_ix_run_hours_job_definition_id", run_hours.c.job_definition_id, run_hours.c.hour)

run_hours_progress = Table(
    "tsuzuki_run_hours_progress",
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
    "tsuzuki_late_ends",
    metadata,
    Column("run_id", BigId, primary_key=True, autoincrement=False),
)

# History by time: what ended in an hour, and what happened since a moment.
Index("tsuzuki_ix_job_run_transitions_at", job_run_transitions.c.at)

failure_groups = Table(
    "tsuzuki_failure_groups",
    metadata,
    Column("id", Text, primary_key=True),
    Column("signature", PlainText, nullable=False),
    # Failures of runs up to this one are acknowledged; a later one opens the group again.
    Column("acknowledged_run_id", BigId),
    Column("acknowledged_at", UtcTime),
    Column("acknowledged_by", Text),
    CheckConstraint(
        "(acknowledged_run_id IS NULL) = (acknowledged_at IS NULL)"
        " AND (acknowledged_at IS NULL) = (acknowledged_by IS NULL)",
        name="acknowledged",
    ),
)

run_failures = Table(
    "tsuzuki_run_failures",
    metadata,
    # No foreign key, as in job_run_transitions: deleted after its run.
    Column("run_id", BigId, primary_key=True, autoincrement=False),
    Column("group_id", Text, nullable=False),
    Column("job_definition_id", BigId, nullable=False),
    Column("failed_at", UtcTime, nullable=False),
)
Index("tsuzuki_ix_run_failures_group_id_run_id", run_failures.c.group_id, run_failures.c.run_id)
Index("tsuzuki_ix_run_failures_failed_at", run_failures.c.failed_at)

partial_index(
    "tsuzuki_ix_job_runs_ended_by_job",
    job_runs.c.job_definition_id,
    job_runs.c.id,
    where="finished_at IS NOT NULL",
)
partial_index(
    "tsuzuki_ix_job_runs_ended_badly_by_state",
    job_runs.c.state,
    job_runs.c.id,
    where="state IN ('FAILED', 'TIMED_OUT', 'CANCELED')",
)
PAIRED_COLUMNS = ("retry_of", "origin_id", "event_id", "reason")
"""Columns of runs with an index on the column and the id, of the runs that have a value there."""

for _name in PAIRED_COLUMNS:
    partial_index(
        f"tsuzuki_ix_job_runs_{_name}",
        job_runs.c[_name],
        job_runs.c.id,
        where=f"{_name} IS NOT NULL",
    )
Index("tsuzuki_ix_events_event_type_id", events.c.event_type, events.c.id)
Index("tsuzuki_ix_audit_log_actor_id", audit_log.c.actor, audit_log.c.id)
Index("tsuzuki_ix_audit_log_object_type_id", audit_log.c.object_type, audit_log.c.id)
# All that a list of groups is made from, so that the table is not read.
Index(
    "tsuzuki_ix_run_failures_grouped",
    run_failures.c.failed_at,
    run_failures.c.group_id,
    run_failures.c.job_definition_id,
    run_failures.c.run_id,
)
