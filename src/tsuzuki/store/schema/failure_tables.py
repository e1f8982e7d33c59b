"""The tables of failures: written for runs that end FAILED or TIMED_OUT, and for no other.

failure_groups  one row for each signature, with what was acknowledged
run_failures    which group a failed run belongs to; deleted with its run
"""

from sqlalchemy import CheckConstraint, Column, Index, Table, Text

from tsuzuki.store.schema.tables import metadata
from tsuzuki.store.sql.types import BigId, PlainText, UtcTime

failure_groups = Table(
    "failure_groups",
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
    "run_failures",
    metadata,
    # No foreign key, as in job_run_transitions: deleted after its run.
    Column("run_id", BigId, primary_key=True, autoincrement=False),
    Column("group_id", Text, nullable=False),
    Column("job_definition_id", BigId, nullable=False),
    Column("failed_at", UtcTime, nullable=False),
)
Index("ix_run_failures_group_id_run_id", run_failures.c.group_id, run_failures.c.run_id)
Index("ix_run_failures_failed_at", run_failures.c.failed_at)
