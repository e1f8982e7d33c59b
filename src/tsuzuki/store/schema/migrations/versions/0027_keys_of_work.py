"""A run is stored with the key that its handler passes to outside services, which does not change.

Runs that are there keep the key that they had: by the number of the first attempt. A process of the version before would
create retries without the key of their first attempt, so it cannot go on beside this migration.
"""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

FIXED = (
    "trigger arguments retries_used retry_of origin_id idempotency_key work_key"
    " concurrency_key event_id covers_ticks covers_until created_at"
).split()
ID = "id, rowid, oid, _rowid_"
REFUSED = "tsuzuki: what a run was created with does not change"


def upgrade() -> None:
    op.add_column("job_runs", sa.Column("work_key", sa.Text(), nullable=True))
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
