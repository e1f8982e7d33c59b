"""A run may be skipped because its schedule was changed or its job is disabled.

SQLite cannot change a CHECK constraint. It allows more values than before, so every stored row satisfies it, and its text
in the schema is replaced as SQLite's documentation describes; to copy all runs would take minutes. A process of the
version before cannot read the new reasons.
"""

from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

BEFORE = (
    "'handler_failed', 'handler_unknown', 'arguments_invalid', 'timeout', 'worker_lost', 'worker_silent', "
    "'worker_shutdown', 'not_confirmed', 'orphan_limit', 'late', 'overlap', 'replaced', 'operator', 'job_deleted'"
)
AFTER = f"{BEFORE}, 'schedule_changed', 'job_disabled'"


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        replace_text_sqlite()
    else:
        op.drop_constraint("ck_job_runs_reason", "job_runs", type_="check")
        op.create_check_constraint("ck_job_runs_reason", "job_runs", f"reason IN ({AFTER})")


def replace_text_sqlite() -> None:
    connection = op.get_bind()
    version = connection.exec_driver_sql("PRAGMA schema_version").scalar_one()
    connection.exec_driver_sql("PRAGMA writable_schema = ON")
    changed = connection.exec_driver_sql(
        "UPDATE sqlite_schema SET sql = replace(sql, ?, ?) WHERE type = 'table' AND name = 'job_runs'"
        " AND instr(sql, ?)",
        (f"reason IN ({BEFORE})", f"reason IN ({AFTER})", f"reason IN ({BEFORE})"),
    )
    if changed.rowcount != 1:
        raise RuntimeError("the constraint ck_job_runs_reason is not as migration 0001 made it")
    connection.exec_driver_sql(f"PRAGMA schema_version = {version + 1}")
    # Reads the schema again on this connection, too.
    connection.exec_driver_sql("PRAGMA writable_schema = RESET")


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
