"""A run that was requested with a key is stored with the names of the arguments that its caller left to the job's defaults.

The same request gives the same run then, also after the defaults were edited. A process of the version before stores no
names, and its runs are compared by all of their arguments.
"""

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None
expands = True

FIXED = (
    "trigger arguments retries_used retry_of origin_id idempotency_key work_key defaulted_arguments"
    " concurrency_key event_id covers_ticks covers_until created_at"
).split()
ID = "id, rowid, oid, _rowid_"
REFUSED = "tsuzuki: what a run was created with does not change"


def upgrade() -> None:
    op.add_column("job_runs", sa.Column("defaulted_arguments", sa.Text(), nullable=True))
    if op.get_bind().dialect.name == "sqlite":
        guard_sqlite()
    else:
        guard_postgresql()


def changed(unlike: str) -> str:
    return " OR ".join(f"OLD.{name} {unlike} NEW.{name}" for name in FIXED)


def guard_sqlite() -> None:
    op.execute("DROP TRIGGER job_runs_fixed")
    op.execute(
        "CREATE TRIGGER job_runs_fixed"
        f" BEFORE UPDATE OF {ID}, job_definition_id, scheduled_for, {', '.join(FIXED)} ON job_runs"
        " WHEN NEW.id <> OLD.id OR NEW.job_definition_id <> OLD.job_definition_id"
        " OR (OLD.trigger = 'time' AND OLD.scheduled_for IS NOT NEW.scheduled_for)"
        f" OR {changed('IS NOT')}"
        f" BEGIN SELECT RAISE(ABORT, '{REFUSED}'); END"
    )


def guard_postgresql() -> None:
    op.execute("DROP TRIGGER job_runs_fixed ON job_runs")
    op.execute(
        "CREATE TRIGGER job_runs_fixed"
        f" BEFORE UPDATE OF scheduled_for, {', '.join(FIXED)} ON job_runs"
        " FOR EACH ROW WHEN ((OLD.trigger = 'time' AND OLD.scheduled_for <> NEW.scheduled_for)"
        f" OR {changed('IS DISTINCT FROM')})"
        f" EXECUTE FUNCTION tsuzuki_refuse('{REFUSED}')"
    )


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
