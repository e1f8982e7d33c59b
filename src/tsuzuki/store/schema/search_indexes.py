"""Indexes by which lists are searched. They join the metadata of the engine, whose tables they are on.

A successful run without an event and without a retry is in one of them, once, when it ends: a drain pays for no more.
"""

from sqlalchemy import Index

from tsuzuki.store.schema.failure_tables import run_failures
from tsuzuki.store.schema.tables import audit_log, events, job_runs, partial_index

partial_index(
    "ix_job_runs_ended_by_job",
    job_runs.c.job_definition_id,
    job_runs.c.id,
    where="finished_at IS NOT NULL",
)
partial_index(
    "ix_job_runs_ended_badly_by_state",
    job_runs.c.state,
    job_runs.c.id,
    where="state IN ('FAILED', 'TIMED_OUT', 'CANCELED')",
)
PAIRED_COLUMNS = ("retry_of", "origin_id", "event_id", "reason")
"""Columns of runs with an index on the column and the id, of the runs that have a value there."""

for _name in PAIRED_COLUMNS:
    partial_index(
        f"ix_job_runs_{_name}", job_runs.c[_name], job_runs.c.id, where=f"{_name} IS NOT NULL"
    )
Index("ix_events_event_type_id", events.c.event_type, events.c.id)
Index("ix_audit_log_actor_id", audit_log.c.actor, audit_log.c.id)
Index("ix_audit_log_object_type_id", audit_log.c.object_type, audit_log.c.id)
# All that a list of groups is made from, so that the table is not read.
Index(
    "ix_run_failures_grouped",
    run_failures.c.failed_at,
    run_failures.c.group_id,
    run_failures.c.job_definition_id,
    run_failures.c.run_id,
)
