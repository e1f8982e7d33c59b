"""The engine's tables. CHECK constraints refuse invalid rows; triggers (the guards of the migrations) refuse
illegal moves of a run.

A collector defines its tables in the same way: its own MetaData and its own migrations (see
`store.schema.migrate.Component`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ColumnElement,
    Connection,
    Float,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    event,
    text,
)

from tsuzuki.model.job import JobSource
from tsuzuki.model.misfire import Misfire
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.states import Actor, ContinuationState, Reason, RunState, Trigger
from tsuzuki.model.worker import DetachReason, WorkerState
from tsuzuki.store.sql.types import BigId, JsonText, KeyText, PlainText, UtcTime

PREFIX = "tsuzuki_"
"""Begins the name of every table, index, constraint, trigger, view and function that no document names, so that an
application can keep its own tables in the same database."""


def _bare_name(_constraint: Any, table: Table) -> str:
    return table.name.removeprefix(PREFIX)


NAMES: dict[str, Any] = {
    "bare_name": _bare_name,
    "ix": PREFIX + "ix_%(bare_name)s_%(column_0_N_name)s",
    "uq": PREFIX + "uq_%(bare_name)s_%(column_0_N_name)s",
    "ck": PREFIX + "ck_%(bare_name)s_%(constraint_name)s",
    "fk": PREFIX + "fk_%(bare_name)s_%(column_0_N_name)s",
    "pk": PREFIX + "pk_%(bare_name)s",
}
metadata = MetaData(naming_convention=NAMES)

ONLY_ON = "only_on"
"""Key in `info`: the name of the dialect, for an index or constraint that only one dialect has."""

WHERE = "where"
"""Key in `info`: the condition of a partial index, by the name of the dialect."""


def one_of(column: str, values: type[str]) -> CheckConstraint:
    """A CHECK that a text column has one of an enum's values (or NULL)."""
    literals = ", ".join(f"'{value}'" for value in values)  # type: ignore[attr-defined]
    return CheckConstraint(f"{column} IN ({literals})", name=column)


def partial_index(
    name: str,
    *columns: ColumnElement[Any],
    where: str | Mapping[str, str],
    unique: bool = False,
    only_on: str | None = None,
) -> Index:
    """An index of the rows for which `where` is true; by dialect, where they differ. SQLAlchemy loads a dialect to
    check an option of it, so the condition becomes one only when the table is created."""
    by_dialect = {"sqlite": where, "postgresql": where} if isinstance(where, str) else where
    info = {WHERE: by_dialect, **({ONLY_ON: only_on} if only_on else {})}
    index = Index(name, *columns, unique=unique, info=info)

    def state_condition(_table: Table, connection: Connection, **_: object) -> None:
        dialect = connection.dialect.name
        if dialect in by_dialect:
            index.dialect_options[dialect]["where"] = text(by_dialect[dialect])

    event.listen(index.table, "before_create", state_condition)
    return index


def index_of_states(name: str, *columns: ColumnElement[Any], states: Sequence[RunState]) -> Index:
    """An index of the runs in these states, for statements that name all of them or one. SQLite uses a partial index
    only if a term of the statement is one of the index's own, joined by OR; PostgreSQL proves it."""
    names = [f"'{state}'" for state in states]
    all_of_them = f"state IN ({', '.join(names)})"
    one_each = (f"state = {name}" for name in names)
    where = {"sqlite": " OR ".join((all_of_them, *one_each)), "postgresql": all_of_them}
    return partial_index(name, *columns, where=where)


job_definitions = Table(
    "tsuzuki_job_definitions",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=True),
    Column("name", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("description", PlainText, nullable=False, server_default=""),
    Column("handler", Text, nullable=False),
    Column("options", JsonText, nullable=False),
    Column("arguments", JsonText, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("schedule", JsonText),
    Column("spread_seconds", Float, nullable=False, server_default="0"),
    Column("on_event", Text),
    Column("misfire", Text, nullable=False),
    Column("catchup_window_seconds", Float, nullable=False),
    Column("concurrency_policy", Text, nullable=False),
    Column("max_concurrent", Integer),
    Column("concurrency_key", Text),
    Column("max_concurrent_per_key", Integer),
    Column("priority", Integer, nullable=False),
    Column("timeout_seconds", Float),
    Column("retry", JsonText, nullable=False),
    Column("tags", JsonText, nullable=False),
    Column("version", Integer, nullable=False),
    Column("planned_until", UtcTime, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("updated_at", UtcTime, nullable=False),
    Column("deleted_at", UtcTime),
    one_of("source", JobSource),
    one_of("misfire", Misfire),
    one_of("concurrency_policy", ConcurrencyPolicy),
    CheckConstraint("length(name) BETWEEN 1 AND 100", name="name"),
    CheckConstraint("version >= 1", name="version"),
    CheckConstraint("catchup_window_seconds >= 0", name="catchup_window_seconds"),
    CheckConstraint("spread_seconds >= 0", name="spread_seconds"),
    CheckConstraint("max_concurrent >= 1", name="max_concurrent"),
    CheckConstraint("max_concurrent_per_key >= 1", name="max_concurrent_per_key"),
    CheckConstraint("timeout_seconds > 0", name="timeout_seconds"),
    CheckConstraint("priority BETWEEN -1000 AND 1000", name="priority"),
    sqlite_autoincrement=True,
)
# A removed job keeps its row, because its runs refer to it, until a job of its name is added again.
partial_index(
    "tsuzuki_uq_job_definitions_name",
    job_definitions.c.name,
    unique=True,
    where="deleted_at IS NULL",
)

job_runs = Table(
    "tsuzuki_job_runs",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=True),
    Column("job_definition_id", BigId, nullable=False),
    Column("state", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("trigger", Text, nullable=False),
    Column("scheduled_for", UtcTime, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("arguments", JsonText, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("retries_used", Integer, nullable=False),
    Column("orphan_count", Integer, nullable=False, server_default="0"),
    # Of those, the ones that do not count: handed back, or orphaned in an outage.
    Column("orphans_free", Integer, nullable=False, server_default="0"),
    # Of the whole chain of retries: how often the worker was lost, alone and in an outage.
    Column("losses", Integer, nullable=False, server_default="0"),
    Column("losses_free", Integer, nullable=False, server_default="0"),
    # No foreign key: a finished run may be pruned before the run that retried it.
    Column("retry_of", BigId),
    # The first run of a chain of retries; NULL on that first run itself.
    Column("origin_id", BigId),
    Column("idempotency_key", KeyText),
    # For outside services, and the same for all attempts. NULL on runs of versions that did not store it.
    Column("work_key", KeyText),
    # Of a request with a key: the names of the arguments that it left to the defaults of the job. NULL if there are
    # none, and on runs of versions that did not store it.
    Column("defaulted_arguments", JsonText),
    Column("concurrency_key", PlainText),
    Column("event_id", BigId),
    Column("covers_ticks", Integer, nullable=False, server_default="1"),
    Column("covers_until", UtcTime),
    Column("assigned_worker_id", Text),
    Column("assigned_at", UtcTime),
    Column("leader_epoch", BigInteger),
    Column("started_at", UtcTime),
    Column("finished_at", UtcTime),
    Column("continuation_state", Text, nullable=False, server_default=ContinuationState.NONE),
    Column("continuation_check_deadline_at", UtcTime),
    Column("reason", Text),
    Column("error", PlainText),
    Column("result", JsonText),
    Column("progress_processed", BigInteger, nullable=False, server_default="0"),
    Column("progress_total", BigInteger),
    Column("progress_at", UtcTime),
    # Of the stored report, counted by the worker: an older report does not replace a newer one.
    Column("progress_number", BigInteger),
    Column("log_ref", Text),
    Column("created_at", UtcTime, nullable=False),
    # The last move, stored in the row so that a trigger can write the history.
    Column("moved_at", UtcTime),
    Column("moved_as", Text),
    Column("moved_by", Text),
    Column("moved_epoch", BigInteger),
    # The run because of which a tick was skipped. No foreign key: it may be pruned before.
    Column("blocked_by", BigId),
    one_of("state", RunState),
    one_of("trigger", Trigger),
    one_of("reason", Reason),
    one_of("moved_as", Actor),
    one_of("continuation_state", ContinuationState),
    CheckConstraint("version >= 1", name="version"),
    CheckConstraint("attempt >= 1", name="attempt"),
    CheckConstraint("retries_used >= 0 AND retries_used < attempt", name="retries_used"),
    CheckConstraint("orphan_count >= 0", name="orphan_count"),
    CheckConstraint("orphans_free >= 0", name="orphans_free"),
    CheckConstraint("losses >= 0", name="losses"),
    CheckConstraint("losses_free >= 0", name="losses_free"),
    CheckConstraint("covers_ticks >= 1", name="covers_ticks"),
    CheckConstraint("progress_processed >= 0 AND progress_total >= 0", name="progress"),
    CheckConstraint(
        "state <> 'PENDING' OR (assigned_worker_id IS NULL AND started_at IS NULL"
        " AND finished_at IS NULL)",
        name="pending",
    ),
    CheckConstraint(
        "state <> 'ASSIGNED' OR (assigned_worker_id IS NOT NULL AND assigned_at IS NOT NULL"
        " AND started_at IS NULL AND finished_at IS NULL)",
        name="assigned",
    ),
    CheckConstraint(
        "state <> 'RUNNING' OR (assigned_worker_id IS NOT NULL AND started_at IS NOT NULL"
        " AND leader_epoch IS NOT NULL AND finished_at IS NULL)",
        name="running",
    ),
    CheckConstraint(
        "state <> 'ORPHANED' OR (orphan_count >= 1 AND started_at IS NULL AND finished_at IS NULL)",
        name="orphaned",
    ),
    CheckConstraint(
        "state NOT IN ('SUCCEEDED', 'TIMED_OUT') OR"
        " (started_at IS NOT NULL AND finished_at IS NOT NULL)",
        name="executed",
    ),
    CheckConstraint(
        "state NOT IN ('FAILED', 'CANCELED', 'TIMED_OUT') OR"
        " (reason IS NOT NULL AND finished_at IS NOT NULL)",
        name="ended_for_a_reason",
    ),
    CheckConstraint(
        "(continuation_state = 'CONFIRMING') = (continuation_check_deadline_at IS NOT NULL)"
        " AND (continuation_state = 'NONE' OR state = 'RUNNING')",
        name="continuation",
    ),
    UniqueConstraint("idempotency_key", info={ONLY_ON: "sqlite"}),
    # PostgreSQL checks this once per statement (a trigger), not once per row.
    ForeignKeyConstraint(
        ["job_definition_id"], ["tsuzuki_job_definitions.id"], info={ONLY_ON: "sqlite"}
    ),
    sqlite_autoincrement=True,
)
# PostgreSQL writes every index with every move: rows without a key are left out of this one.
partial_index(
    "tsuzuki_uq_job_runs_idempotency_key_given",
    job_runs.c.idempotency_key,
    where="idempotency_key IS NOT NULL",
    unique=True,
    only_on="postgresql",
)
# PostgreSQL writes every index with every move, so each has only the rows that are queried through it.
index_of_states(
    "tsuzuki_ix_job_runs_state_scheduled_for",
    job_runs.c.state,
    job_runs.c.scheduled_for,
    states=(RunState.PENDING, RunState.ORPHANED),
)
index_of_states(
    "tsuzuki_ix_job_runs_assigned_worker_id_state",
    job_runs.c.assigned_worker_id,
    job_runs.c.state,
    states=(RunState.ASSIGNED, RunState.RUNNING),
)
# SQLite writes it once, when a run is created.
partial_index(
    "tsuzuki_ix_job_runs_created_at",
    job_runs.c.created_at,
    where={"postgresql": "finished_at IS NOT NULL"},
)
# The few unsuccessful runs among the many successful ones.
partial_index(
    "tsuzuki_ix_job_runs_ended_badly",
    job_runs.c.id,
    where="state IN ('FAILED', 'TIMED_OUT', 'CANCELED')",
)
# One run per tick. Manual runs, and runs of events and retries, may share a time.
partial_index(
    "tsuzuki_uq_job_runs_job_definition_id_scheduled_for",
    job_runs.c.job_definition_id,
    job_runs.c.scheduled_for,
    unique=True,
    where="trigger = 'time'",
)
# The queue: waiting runs, in the order in which they are assigned.
partial_index(
    "tsuzuki_ix_job_runs_due",
    job_runs.c.priority.desc(),
    job_runs.c.scheduled_for,
    job_runs.c.id,
    where="state IN ('PENDING', 'ORPHANED')",
)
# By job and key, so that blocked ones are passed key by key. An index entry has a maximum size.
partial_index(
    "tsuzuki_ix_job_runs_waiting_by_key",
    job_runs.c.job_definition_id,
    job_runs.c.concurrency_key,
    job_runs.c.priority.desc(),
    job_runs.c.scheduled_for,
    job_runs.c.id,
    where="state IN ('PENDING', 'ORPHANED')"
    " AND (concurrency_key IS NULL OR length(concurrency_key) <= 200)",
)
partial_index(
    "tsuzuki_ix_job_runs_waiting_long_key",
    job_runs.c.job_definition_id,
    job_runs.c.priority.desc(),
    job_runs.c.scheduled_for,
    job_runs.c.id,
    where="state IN ('PENDING', 'ORPHANED') AND length(concurrency_key) > 200",
)
# Live runs of a job are counted often and are few; finished ones are left out.
partial_index(
    "tsuzuki_ix_job_runs_live",
    job_runs.c.job_definition_id,
    where="finished_at IS NULL",
)

job_run_transitions = Table(
    "tsuzuki_job_run_transitions",
    metadata,
    # No foreign key: rows are written only by the trigger on job_runs, and deleted only after their run.
    Column("run_id", BigId, primary_key=True, autoincrement=False),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("from_state", Text, nullable=False),
    Column("to_state", Text, nullable=False),
    Column("at", UtcTime, nullable=False),
    Column("actor", Text, nullable=False),
    Column("actor_id", Text, nullable=False),
    Column("epoch", BigInteger),
    Column("reason", Text),
    Column("worker_id", Text),
    # SQLite: the order of commits, whatever the clock does. PostgreSQL has transaction ids, and leaves it empty.
    Column("seq", BigId),
    sqlite_with_rowid=False,
)
Index("tsuzuki_ix_job_run_transitions_seq", job_run_transitions.c.seq, info={ONLY_ON: "sqlite"})

job_run_logs = Table(
    "tsuzuki_job_run_logs",
    metadata,
    Column("run_id", BigId, primary_key=True, autoincrement=False),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("at", UtcTime, nullable=False),
    Column("stream", Text, nullable=False),
    Column("body", PlainText, nullable=False),
    sqlite_with_rowid=False,
)

events = Table(
    "tsuzuki_events",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=True),
    Column("event_type", KeyText, nullable=False),
    Column("payload", JsonText, nullable=False),
    Column("dedupe_key", KeyText),
    Column("created_at", UtcTime, nullable=False),
    Column("processed_at", UtcTime),
    UniqueConstraint("dedupe_key", "event_type"),
    sqlite_autoincrement=True,
)
Index("tsuzuki_ix_events_processed_at_created_at", events.c.processed_at, events.c.created_at)

workers = Table(
    "tsuzuki_workers",
    metadata,
    Column("id", Text, primary_key=True),
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("detach_reason", Text),
    Column("capacity", Integer, nullable=False),
    Column("tags", JsonText, nullable=False),
    # The one job that a worker may have, if it was started for one. Never changed: a new start has a new id.
    Column("only_job", Text),
    # The one run of that job, if it was started for one run. Never changed either.
    Column("only_run", BigInteger),
    # What the worker can execute, as JSON; NULL: anything. Plain text, because a leader reads it in every round and
    # parses each text only once.
    Column("abilities", Text),
    Column("software_version", Text, nullable=False),
    Column("started_at", UtcTime, nullable=False),
    Column("heartbeat_at", UtcTime, nullable=False),
    # The settings that the worker works by: it stops its runs in time for these, also if they are shorter by now.
    Column("ttl_seconds", Float),
    Column("grace_seconds", Float),
    # Cleared by the next heartbeat. Read by a worker that cannot write (`Heartbeat.read_silence`).
    Column("silence_recorded_at", UtcTime),
    # Kept when the worker is detached or gone, so that it drains under its next id too.
    Column("drain_ordered_at", UtcTime),
    # Names the process, whatever ids its worker has had: in `leadership.holder`, and in the folder of process files.
    Column("process_name", Text),
    # When another process of the same machine recorded that this one has ended without leaving. Never cleared.
    Column("died_at", UtcTime),
    one_of("state", WorkerState),
    one_of("detach_reason", DetachReason),
    CheckConstraint("capacity >= 0", name="capacity"),
    CheckConstraint("(state = 'DETACHED') = (detach_reason IS NOT NULL)", name="detached"),
)

leadership = Table(
    "tsuzuki_leadership",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    # All three unique, so that PostgreSQL treats them as parts of a key: a change of the term, or the confirmation of a
    # bulk cancel, waits for every leader write that holds FOR KEY SHARE on this row, while renewing the lease does not.
    Column("epoch", BigInteger, nullable=False, unique=True),
    Column("holder", Text, index=True, unique=True),
    Column("lease_expires_at", UtcTime, nullable=False),
    Column("taken_at", UtcTime),
    Column("lease_seconds", Float, nullable=False, server_default=text("600")),
    Column(
        "bulk_cancels",
        BigInteger,
        nullable=False,
        server_default=text("0"),
        index=True,
        unique=True,
    ),
    CheckConstraint("id = 1", name="single"),
    CheckConstraint("epoch >= 0", name="epoch"),
)

settings = Table(
    "tsuzuki_settings",
    metadata,
    Column("key", Text, primary_key=True),
    Column("value", JsonText, nullable=False),
    Column("updated_at", UtcTime, nullable=False),
    Column("updated_by", Text, nullable=False),
)

audit_log = Table(
    "tsuzuki_audit_log",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=True),
    Column("at", UtcTime, nullable=False),
    Column("actor", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("object_type", Text, nullable=False),
    Column("object_id", Text, nullable=False),
    Column("before", JsonText),
    Column("after", JsonText),
    sqlite_autoincrement=True,
)
Index("tsuzuki_ix_audit_log_at", audit_log.c.at)
Index("tsuzuki_ix_audit_log_object_type_object_id", audit_log.c.object_type, audit_log.c.object_id)

# Wake-ups on SQLite, where PostgreSQL has NOTIFY: a counter per channel of how often it was notified.
notices = Table(
    "tsuzuki_notices",
    metadata,
    Column("audience", Text, primary_key=True),
    Column("stamp", Integer, nullable=False),
)

# Used by triggers on SQLite, to refuse a REPLACE that would delete another row (migration 0010). One row, which stays
# as it is; PostgreSQL has no REPLACE and no row here.
replace_checks = Table(
    "tsuzuki_replace_checks",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("is_replacing", Boolean, nullable=False),
)
