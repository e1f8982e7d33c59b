"""The engine's tables, empty but for the one row of leadership."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = ("engine",)
depends_on = None


def Id() -> sa.BigInteger:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def Time() -> sa.DateTime:
    return sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    make_audit_log()
    make_events()
    make_job_definitions()
    make_job_run_logs()
    make_job_run_transitions()
    make_leadership()
    make_settings()
    make_workers()
    make_job_runs()
    fill_leadership()


def make_audit_log() -> None:
    op.create_table(
        "audit_log",
        sa.Column("id", Id(), autoincrement=True, nullable=False),
        sa.Column("at", Time(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("object_type", sa.Text(), nullable=False),
        sa.Column("object_id", sa.Text(), nullable=False),
        sa.Column("before", sa.Text(), nullable=True),
        sa.Column("after", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_log")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_log_at", "audit_log", ["at"], unique=False)
    op.create_index(
        "ix_audit_log_object_type_object_id",
        "audit_log",
        ["object_type", "object_id"],
        unique=False,
    )


def make_events() -> None:
    op.create_table(
        "events",
        sa.Column("id", Id(), autoincrement=True, nullable=False),
        sa.Column("event_type", sa.Text(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("dedupe_key", sa.Text(), nullable=True),
        sa.Column("created_at", Time(), nullable=False),
        sa.Column("processed_at", Time(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
        sa.UniqueConstraint("dedupe_key", name=op.f("uq_events_dedupe_key")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_events_processed_at_created_at", "events", ["processed_at", "created_at"], unique=False
    )


def job_definitions_columns() -> list[sa.Column[Any]]:
    return [
        sa.Column("id", Id(), autoincrement=True, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), server_default="", nullable=False),
        sa.Column("handler", sa.Text(), nullable=False),
        sa.Column("options", sa.Text(), nullable=False),
        sa.Column("arguments", sa.Text(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("schedule", sa.Text(), nullable=True),
        sa.Column("on_event", sa.Text(), nullable=True),
        sa.Column("misfire", sa.Text(), nullable=False),
        sa.Column("catchup_window_seconds", sa.Float(), nullable=False),
        sa.Column("concurrency_policy", sa.Text(), nullable=False),
        sa.Column("max_concurrent", sa.Integer(), nullable=True),
        sa.Column("concurrency_key", sa.Text(), nullable=True),
        sa.Column("max_concurrent_per_key", sa.Integer(), nullable=True),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("timeout_seconds", sa.Float(), nullable=True),
        sa.Column("retry", sa.Text(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("planned_until", Time(), nullable=False),
        sa.Column("created_at", Time(), nullable=False),
        sa.Column("updated_at", Time(), nullable=False),
        sa.Column("deleted_at", Time(), nullable=True),
    ]


def job_definitions_rules() -> list[sa.Constraint]:
    return [
        sa.CheckConstraint(
            "concurrency_policy IN ('forbid', 'allow', 'replace')",
            name=op.f("ck_job_definitions_concurrency_policy"),
        ),
        sa.CheckConstraint(
            "misfire IN ('one', 'skip', 'all')", name=op.f("ck_job_definitions_misfire")
        ),
        sa.CheckConstraint(
            "source IN ('file', 'database')", name=op.f("ck_job_definitions_source")
        ),
        sa.CheckConstraint(
            "catchup_window_seconds >= 0", name=op.f("ck_job_definitions_catchup_window_seconds")
        ),
        sa.CheckConstraint("length(name) BETWEEN 1 AND 100", name=op.f("ck_job_definitions_name")),
        sa.CheckConstraint("max_concurrent >= 1", name=op.f("ck_job_definitions_max_concurrent")),
        sa.CheckConstraint(
            "max_concurrent_per_key >= 1", name=op.f("ck_job_definitions_max_concurrent_per_key")
        ),
        sa.CheckConstraint(
            "priority BETWEEN -1000 AND 1000", name=op.f("ck_job_definitions_priority")
        ),
        sa.CheckConstraint("timeout_seconds > 0", name=op.f("ck_job_definitions_timeout_seconds")),
        sa.CheckConstraint("version >= 1", name=op.f("ck_job_definitions_version")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job_definitions")),
    ]


def make_job_definitions() -> None:
    op.create_table(
        "job_definitions",
        *job_definitions_columns(),
        *job_definitions_rules(),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "uq_job_definitions_name",
        "job_definitions",
        ["name"],
        unique=True,
        sqlite_where=sa.text("deleted_at IS NULL"),
        postgresql_where=sa.text("deleted_at IS NULL"),
    )


def make_job_run_logs() -> None:
    op.create_table(
        "job_run_logs",
        sa.Column("run_id", Id(), autoincrement=False, nullable=False),
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("at", Time(), nullable=False),
        sa.Column("stream", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "seq", name=op.f("pk_job_run_logs")),
        sqlite_with_rowid=False,
    )


def make_job_run_transitions() -> None:
    op.create_table(
        "job_run_transitions",
        sa.Column("run_id", Id(), autoincrement=False, nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("from_state", sa.Text(), nullable=False),
        sa.Column("to_state", sa.Text(), nullable=False),
        sa.Column("at", Time(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("actor_id", sa.Text(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("worker_id", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("run_id", "version", name=op.f("pk_job_run_transitions")),
        sqlite_with_rowid=False,
    )


def make_leadership() -> None:
    op.create_table(
        "leadership",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=True),
        sa.Column("lease_expires_at", Time(), nullable=False),
        sa.Column("taken_at", Time(), nullable=True),
        sa.CheckConstraint("epoch >= 0", name=op.f("ck_leadership_epoch")),
        sa.CheckConstraint("id = 1", name=op.f("ck_leadership_single")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_leadership")),
        sa.UniqueConstraint("epoch", name=op.f("uq_leadership_epoch")),
    )


def make_settings() -> None:
    op.create_table(
        "settings",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("updated_at", Time(), nullable=False),
        sa.Column("updated_by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_settings")),
    )


def make_workers() -> None:
    op.create_table(
        "workers",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("detach_reason", sa.Text(), nullable=True),
        sa.Column("capacity", sa.Integer(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("software_version", sa.Text(), nullable=False),
        sa.Column("started_at", Time(), nullable=False),
        sa.Column("heartbeat_at", Time(), nullable=False),
        sa.CheckConstraint(
            "(state = 'DETACHED') = (detach_reason IS NOT NULL)", name=op.f("ck_workers_detached")
        ),
        sa.CheckConstraint(
            "detach_reason IN ('silent', 'operator')", name=op.f("ck_workers_detach_reason")
        ),
        sa.CheckConstraint(
            "state IN ('ATTACHED', 'DRAINING', 'DETACHED', 'GONE')", name=op.f("ck_workers_state")
        ),
        sa.CheckConstraint("capacity >= 0", name=op.f("ck_workers_capacity")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workers")),
    )


def job_runs_columns() -> list[sa.Column[Any]]:
    return [
        sa.Column("id", Id(), autoincrement=True, nullable=False),
        sa.Column("job_definition_id", Id(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("trigger", sa.Text(), nullable=False),
        sa.Column("scheduled_for", Time(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("arguments", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("retries_used", sa.Integer(), nullable=False),
        sa.Column("orphan_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("retry_of", Id(), nullable=True),
        sa.Column("origin_id", Id(), nullable=True),
        sa.Column("idempotency_key", sa.Text(), nullable=True),
        sa.Column("concurrency_key", sa.Text(), nullable=True),
        sa.Column("event_id", Id(), nullable=True),
        sa.Column("covers_ticks", sa.Integer(), server_default="1", nullable=False),
        sa.Column("covers_until", Time(), nullable=True),
        sa.Column("assigned_worker_id", sa.Text(), nullable=True),
        sa.Column("assigned_at", Time(), nullable=True),
        sa.Column("leader_epoch", sa.BigInteger(), nullable=True),
        sa.Column("started_at", Time(), nullable=True),
        sa.Column("finished_at", Time(), nullable=True),
        sa.Column("continuation_state", sa.Text(), server_default="NONE", nullable=False),
        sa.Column("continuation_check_deadline_at", Time(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("progress_processed", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("progress_total", sa.BigInteger(), nullable=True),
        sa.Column("progress_at", Time(), nullable=True),
        sa.Column("log_ref", sa.Text(), nullable=True),
        sa.Column("created_at", Time(), nullable=False),
        sa.Column("moved_at", Time(), nullable=True),
        sa.Column("moved_as", sa.Text(), nullable=True),
        sa.Column("moved_by", sa.Text(), nullable=True),
        sa.Column("moved_epoch", sa.BigInteger(), nullable=True),
    ]


def job_runs_states() -> list[sa.Constraint]:
    return [
        sa.CheckConstraint(
            "(continuation_state = 'CONFIRMING') = (continuation_check_deadline_at IS NOT NULL) AND (continuation_state = 'NONE' OR state = 'RUNNING')",
            name=op.f("ck_job_runs_continuation"),
        ),
        sa.CheckConstraint(
            "continuation_state IN ('NONE', 'CONFIRMING')",
            name=op.f("ck_job_runs_continuation_state"),
        ),
        sa.CheckConstraint(
            "moved_as IN ('leader', 'worker', 'operator')", name=op.f("ck_job_runs_moved_as")
        ),
        sa.CheckConstraint(
            "reason IN ('handler_failed', 'handler_unknown', 'arguments_invalid', 'timeout', 'worker_lost', 'worker_silent', 'worker_shutdown', 'not_confirmed', 'orphan_limit', 'late', 'overlap', 'replaced', 'operator', 'job_deleted')",
            name=op.f("ck_job_runs_reason"),
        ),
        sa.CheckConstraint(
            "state <> 'ASSIGNED' OR (assigned_worker_id IS NOT NULL AND assigned_at IS NOT NULL AND started_at IS NULL AND finished_at IS NULL)",
            name=op.f("ck_job_runs_assigned"),
        ),
        sa.CheckConstraint(
            "state <> 'ORPHANED' OR (orphan_count >= 1 AND started_at IS NULL AND finished_at IS NULL)",
            name=op.f("ck_job_runs_orphaned"),
        ),
        sa.CheckConstraint(
            "state <> 'PENDING' OR (assigned_worker_id IS NULL AND started_at IS NULL AND finished_at IS NULL)",
            name=op.f("ck_job_runs_pending"),
        ),
        sa.CheckConstraint(
            "state <> 'RUNNING' OR (assigned_worker_id IS NOT NULL AND started_at IS NOT NULL AND leader_epoch IS NOT NULL AND finished_at IS NULL)",
            name=op.f("ck_job_runs_running"),
        ),
        sa.CheckConstraint(
            "state IN ('PENDING', 'ASSIGNED', 'RUNNING', 'ORPHANED', 'SUCCEEDED', 'FAILED', 'TIMED_OUT', 'CANCELED')",
            name=op.f("ck_job_runs_state"),
        ),
        sa.CheckConstraint(
            "state NOT IN ('FAILED', 'CANCELED', 'TIMED_OUT') OR (reason IS NOT NULL AND finished_at IS NOT NULL)",
            name=op.f("ck_job_runs_ended_for_a_reason"),
        ),
        sa.CheckConstraint(
            "state NOT IN ('SUCCEEDED', 'TIMED_OUT') OR (started_at IS NOT NULL AND finished_at IS NOT NULL)",
            name=op.f("ck_job_runs_executed"),
        ),
    ]


def job_runs_numbers_and_keys() -> list[sa.Constraint]:
    return [
        sa.CheckConstraint(
            "trigger IN ('time', 'event', 'manual', 'retry')", name=op.f("ck_job_runs_trigger")
        ),
        sa.CheckConstraint("attempt >= 1", name=op.f("ck_job_runs_attempt")),
        sa.CheckConstraint("covers_ticks >= 1", name=op.f("ck_job_runs_covers_ticks")),
        sa.CheckConstraint("orphan_count >= 0", name=op.f("ck_job_runs_orphan_count")),
        sa.CheckConstraint(
            "progress_processed >= 0 AND progress_total >= 0", name=op.f("ck_job_runs_progress")
        ),
        sa.CheckConstraint(
            "retries_used >= 0 AND retries_used < attempt", name=op.f("ck_job_runs_retries_used")
        ),
        sa.CheckConstraint("version >= 1", name=op.f("ck_job_runs_version")),
        sa.ForeignKeyConstraint(
            ["job_definition_id"],
            ["job_definitions.id"],
            name=op.f("fk_job_runs_job_definition_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job_runs")),
        sa.UniqueConstraint("idempotency_key", name=op.f("uq_job_runs_idempotency_key")),
    ]


def make_job_runs() -> None:
    op.create_table(
        "job_runs",
        *job_runs_columns(),
        *job_runs_states(),
        *job_runs_numbers_and_keys(),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_job_runs_assigned_worker_id_state",
        "job_runs",
        ["assigned_worker_id", "state"],
        unique=False,
    )
    op.create_index("ix_job_runs_created_at", "job_runs", ["created_at"], unique=False)
    op.create_index(
        "ix_job_runs_due",
        "job_runs",
        [sa.text("priority DESC"), "scheduled_for", "id"],
        unique=False,
        sqlite_where=sa.text("state IN ('PENDING', 'ORPHANED')"),
        postgresql_where=sa.text("state IN ('PENDING', 'ORPHANED')"),
    )
    op.create_index(
        "ix_job_runs_live",
        "job_runs",
        ["job_definition_id", "state"],
        unique=False,
        sqlite_where=sa.text("finished_at IS NULL"),
        postgresql_where=sa.text("finished_at IS NULL"),
    )
    op.create_index(
        "ix_job_runs_state_scheduled_for", "job_runs", ["state", "scheduled_for"], unique=False
    )
    op.create_index(
        "uq_job_runs_job_definition_id_scheduled_for",
        "job_runs",
        ["job_definition_id", "scheduled_for"],
        unique=True,
        sqlite_where=sa.text("trigger = 'time'"),
        postgresql_where=sa.text("trigger = 'time'"),
    )


def fill_leadership() -> None:
    op.execute(
        "INSERT INTO leadership (id, epoch, holder, lease_expires_at, taken_at)"
        " VALUES (1, 0, NULL, '1970-01-01T00:00:00.000000Z', NULL)"
    )


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
