"""The same rules at a lower price: what a move and a new run cost is mostly what guards it.

- SQLite reads every column that any applicable trigger names, for every row, whether the trigger fires or
  not; comparing all columns of a finished run was a third of the price of a move. One guard now names only
  the few it needs, and a finished run is protected by the columns a statement sets: any but `log_ref`.
- PostgreSQL looked up the job of each new run one by one; one look per statement says the same. A job's row
  never leaves (a removed job is marked), which is a rule of the database now, so it needs no lock either.
  The same trigger tells the leader that there is something to give out.
- The index of live runs no longer holds their state, so that a move does not have to move there too.
- PostgreSQL writes every index anew with each move. Most runs have no idempotency key, and those that have
  none need no place in its index.
- `notices` tells a process that shares an SQLite file for whom something was committed, as NOTIFY does on
  PostgreSQL: a heartbeat is nobody's news.
- PostgreSQL is asked to tidy up `job_runs` after a few per cent of changes: every move leaves an old row.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

# The commonest first: conditions are tried in order.
LEGAL = """
    PENDING>ASSIGNED>leader ASSIGNED>RUNNING>worker RUNNING>SUCCEEDED>worker RUNNING>FAILED>worker
    RUNNING>TIMED_OUT>worker RUNNING>FAILED>leader
    RUNNING>CANCELED>operator RUNNING>CANCELED>worker RUNNING>CANCELED>leader
    PENDING>CANCELED>leader PENDING>CANCELED>operator
    ASSIGNED>ORPHANED>leader ASSIGNED>ORPHANED>worker
    ASSIGNED>CANCELED>operator ASSIGNED>CANCELED>worker ASSIGNED>CANCELED>leader
    ORPHANED>ASSIGNED>leader ORPHANED>FAILED>leader ORPHANED>CANCELED>operator ORPHANED>CANCELED>leader
""".split()

FINAL = "'SUCCEEDED', 'FAILED', 'TIMED_OUT', 'CANCELED'"

# Everything on a run but log_ref.
FROZEN = (
    "id job_definition_id state version trigger scheduled_for priority arguments attempt retries_used "
    "orphan_count retry_of origin_id idempotency_key concurrency_key event_id covers_ticks covers_until "
    "assigned_worker_id assigned_at leader_epoch started_at finished_at continuation_state "
    "continuation_check_deadline_at reason error result progress_processed progress_total progress_at "
    "created_at moved_at moved_as moved_by moved_epoch"
).split()

SAYS = {
    "move": "tsuzuki: this move of a run is not in the table of moves",
    "version": "tsuzuki: the version of a run grows by one with each move and only then",
    "finished": "tsuzuki: a finished run does not change",
    "job": "tsuzuki: a run belongs to a job that exists",
    "keep_job": "tsuzuki: the row of a job stays, because its runs do",
}


def upgrade() -> None:
    op.drop_index("ix_job_runs_live", "job_runs")
    op.execute(
        "CREATE INDEX ix_job_runs_live ON job_runs (job_definition_id) WHERE finished_at IS NULL"
    )
    if op.get_bind().dialect.name == "sqlite":
        guard_sqlite()
    else:
        guard_postgresql()
    keep_notices()


def guard_sqlite() -> None:
    for name in ("move", "version", "finished"):
        op.execute(f"DROP TRIGGER job_runs_{name}")
    moves = " OR ".join(
        "(OLD.state = '{}' AND NEW.state = '{}' AND NEW.moved_as = '{}')".format(*move.split(">"))
        for move in LEGAL
    )
    same_row = "NEW.id = OLD.id"
    a_move = f"OLD.state <> NEW.state AND NEW.version = OLD.version + 1 AND ({moves})"
    no_move = f"OLD.state = NEW.state AND NEW.version = OLD.version AND OLD.state NOT IN ({FINAL})"
    op.execute(f"""
        CREATE TRIGGER job_runs_guard BEFORE UPDATE OF {", ".join(FROZEN)} ON job_runs
        WHEN NOT ({same_row} AND (({a_move}) OR ({no_move}))) IS TRUE
        BEGIN
            SELECT CASE
                WHEN OLD.state <> NEW.state AND NOT ({moves}) IS TRUE
                    THEN RAISE(ABORT, '{SAYS["move"]}')
                WHEN NOT ({same_row}) OR NEW.version
                        <> OLD.version + CASE WHEN OLD.state = NEW.state THEN 0 ELSE 1 END
                    THEN RAISE(ABORT, '{SAYS["version"]}')
                ELSE RAISE(ABORT, '{SAYS["finished"]}')
            END;
        END
    """)
    op.execute(f"""
        CREATE TRIGGER job_definitions_keep BEFORE DELETE ON job_definitions
        BEGIN SELECT RAISE(ABORT, '{SAYS["keep_job"]}'); END
    """)


def keep_notices() -> None:
    op.create_table(
        "notices",
        sa.Column("audience", sa.Text, nullable=False),
        sa.Column("stamp", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("audience", name="pk_notices"),
    )
    op.execute("INSERT INTO notices VALUES ('tsuzuki_leader', 0), ('tsuzuki_workers', 0)")


def guard_postgresql() -> None:
    op.execute("ALTER TABLE job_runs DROP CONSTRAINT fk_job_runs_job_definition_id")
    op.execute(f"""
        CREATE FUNCTION tsuzuki_require_jobs() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF EXISTS (
                SELECT 1 FROM new_rows n
                WHERE NOT EXISTS (SELECT 1 FROM job_definitions j WHERE j.id = n.job_definition_id)
            ) THEN
                RAISE EXCEPTION '{SAYS["job"]}' USING ERRCODE = 'foreign_key_violation';
            END IF;
            PERFORM pg_notify('tsuzuki_leader', '');
            RETURN NULL;
        END $$
    """)
    op.execute("""
        CREATE TRIGGER job_runs_job AFTER INSERT ON job_runs REFERENCING NEW TABLE AS new_rows
        FOR EACH STATEMENT EXECUTE FUNCTION tsuzuki_require_jobs()
    """)
    op.execute(f"""
        CREATE TRIGGER job_runs_same_job BEFORE UPDATE OF job_definition_id ON job_runs FOR EACH ROW
        WHEN (NEW.job_definition_id <> OLD.job_definition_id)
        EXECUTE FUNCTION tsuzuki_refuse('{SAYS["job"]}')
    """)
    op.execute(f"""
        CREATE TRIGGER job_definitions_keep BEFORE DELETE OR UPDATE OF id ON job_definitions
        FOR EACH ROW EXECUTE FUNCTION tsuzuki_refuse('{SAYS["keep_job"]}')
    """)
    op.execute(f"""
        CREATE TRIGGER job_definitions_truncate BEFORE TRUNCATE ON job_definitions
        FOR EACH STATEMENT EXECUTE FUNCTION tsuzuki_refuse('{SAYS["keep_job"]}')
    """)
    op.execute("ALTER TABLE job_runs DROP CONSTRAINT uq_job_runs_idempotency_key")
    op.execute(
        "CREATE UNIQUE INDEX uq_job_runs_idempotency_key_given ON job_runs (idempotency_key)"
        " WHERE idempotency_key IS NOT NULL"
    )
    op.execute(
        "ALTER TABLE job_runs SET (autovacuum_vacuum_scale_factor = 0.05,"
        " autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05)"
    )


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
