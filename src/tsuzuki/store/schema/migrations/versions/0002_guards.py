"""The guards: what no statement may do, whoever sends it.

- A run is born PENDING at version 1.
- A run moves only along the table of moves, by an actor who may, and its version grows by one.
- Without a move the version stays.
- A finished run does not change any more; only `log_ref` may be set on it.
- Every move leaves a row in job_run_transitions. Nobody else writes there, nobody rewrites it, and its
  rows leave only after their run did.
- The audit log is only added to; the epoch only grows, and a new holder needs a new epoch.

PostgreSQL: the illegal cases stand in each trigger's WHEN, so that a legal move calls no function; history
is one statement-level trigger over the transition tables, one INSERT for a whole batch.
"""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

LEGAL = """
    'PENDING>ASSIGNED>leader',
    'PENDING>CANCELED>operator', 'PENDING>CANCELED>leader',
    'ASSIGNED>RUNNING>worker',
    'ASSIGNED>ORPHANED>leader', 'ASSIGNED>ORPHANED>worker',
    'ASSIGNED>CANCELED>operator', 'ASSIGNED>CANCELED>worker', 'ASSIGNED>CANCELED>leader',
    'RUNNING>SUCCEEDED>worker',
    'RUNNING>FAILED>worker', 'RUNNING>FAILED>leader',
    'RUNNING>TIMED_OUT>worker',
    'RUNNING>CANCELED>operator', 'RUNNING>CANCELED>worker', 'RUNNING>CANCELED>leader',
    'ORPHANED>ASSIGNED>leader',
    'ORPHANED>FAILED>leader',
    'ORPHANED>CANCELED>operator', 'ORPHANED>CANCELED>leader'
"""

FINAL = "'SUCCEEDED', 'FAILED', 'TIMED_OUT', 'CANCELED'"

# Everything on a run but log_ref.
FROZEN = (
    "id job_definition_id state version trigger scheduled_for priority arguments attempt retries_used "
    "orphan_count retry_of origin_id idempotency_key concurrency_key event_id covers_ticks covers_until "
    "assigned_worker_id assigned_at leader_epoch started_at finished_at continuation_state "
    "continuation_check_deadline_at reason error result progress_processed progress_total progress_at "
    "created_at moved_at moved_as moved_by moved_epoch"
).split()

ILLEGAL_MOVE = f"""
    OLD.state <> NEW.state
    AND (OLD.state || '>' || NEW.state || '>' || COALESCE(NEW.moved_as, '')) NOT IN ({LEGAL})
"""
WRONG_VERSION = """
    NEW.version <> OLD.version + CASE WHEN OLD.state = NEW.state THEN 0 ELSE 1 END
    OR NEW.id <> OLD.id
"""

SAYS = {
    "birth": "tsuzuki: a run is born PENDING at version 1",
    "move": "tsuzuki: this move of a run is not in the table of moves",
    "version": "tsuzuki: the version of a run grows by one with each move and only then",
    "finished": "tsuzuki: a finished run does not change",
    "keep": "tsuzuki: an unfinished run cannot be deleted",
    "history": "tsuzuki: the history of runs is written by moves and never rewritten",
    "audit": "tsuzuki: the audit log is only added to",
    "epoch": "tsuzuki: the epoch only grows, and a new holder needs a new epoch",
}

EPOCH_BROKEN = {
    "sqlite": "NEW.epoch NOT IN (OLD.epoch, OLD.epoch + 1)"
    " OR (NEW.epoch = OLD.epoch AND NEW.holder IS NOT NULL AND NEW.holder IS NOT OLD.holder)",
    "postgresql": "NEW.epoch NOT IN (OLD.epoch, OLD.epoch + 1)"
    " OR (NEW.epoch = OLD.epoch AND NEW.holder IS NOT NULL"
    " AND NEW.holder IS DISTINCT FROM OLD.holder)",
}


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        guard_sqlite()
    else:
        guard_postgresql()


def guard_sqlite() -> None:
    guard_runs_sqlite()
    guard_the_rest_sqlite()


def guard_runs_sqlite() -> None:
    changed = " OR ".join(f"OLD.{name} IS NOT NEW.{name}" for name in FROZEN)
    # REPLACE removes the old row without asking the guards of DELETE, so INSERT has to ask.
    refuse(
        "job_runs_birth",
        "BEFORE INSERT ON job_runs",
        "NEW.state <> 'PENDING' OR NEW.version <> 1"
        " OR EXISTS (SELECT 1 FROM job_runs WHERE id = NEW.id)",
        "birth",
    )
    refuse("job_runs_move", "BEFORE UPDATE ON job_runs", ILLEGAL_MOVE, "move")
    refuse("job_runs_version", "BEFORE UPDATE ON job_runs", WRONG_VERSION, "version")
    refuse(
        "job_runs_finished",
        "BEFORE UPDATE ON job_runs",
        f"OLD.state IN ({FINAL}) AND ({changed})",
        "finished",
    )
    refuse("job_runs_keep", "BEFORE DELETE ON job_runs", f"OLD.state NOT IN ({FINAL})", "keep")
    op.execute("""
        CREATE TRIGGER job_runs_history AFTER UPDATE OF state ON job_runs
        WHEN OLD.state <> NEW.state
        BEGIN
            INSERT INTO job_run_transitions
                (run_id, version, from_state, to_state, at, actor, actor_id, epoch, reason, worker_id)
            VALUES (NEW.id, NEW.version, OLD.state, NEW.state, NEW.moved_at, NEW.moved_as,
                    NEW.moved_by, NEW.moved_epoch, NEW.reason, NEW.assigned_worker_id);
        END
    """)
    refuse(
        "job_run_transitions_insert",
        "BEFORE INSERT ON job_run_transitions",
        "NEW.version = 1 OR NOT EXISTS (SELECT 1 FROM job_runs WHERE id = NEW.run_id"
        " AND version = NEW.version AND state = NEW.to_state)"
        " OR EXISTS (SELECT 1 FROM job_run_transitions WHERE run_id = NEW.run_id"
        " AND version = NEW.version)",
        "history",
    )
    refuse("job_run_transitions_update", "BEFORE UPDATE ON job_run_transitions", "1", "history")
    refuse(
        "job_run_transitions_delete",
        "BEFORE DELETE ON job_run_transitions",
        "EXISTS (SELECT 1 FROM job_runs WHERE id = OLD.run_id)",
        "history",
    )


def guard_the_rest_sqlite() -> None:
    refuse(
        "audit_log_insert",
        "BEFORE INSERT ON audit_log",
        "EXISTS (SELECT 1 FROM audit_log WHERE id = NEW.id)",
        "audit",
    )
    refuse("audit_log_update", "BEFORE UPDATE ON audit_log", "1", "audit")
    refuse("audit_log_delete", "BEFORE DELETE ON audit_log", "1", "audit")
    refuse(
        "leadership_insert",
        "BEFORE INSERT ON leadership",
        "EXISTS (SELECT 1 FROM leadership)",
        "epoch",
    )
    refuse("leadership_update", "BEFORE UPDATE ON leadership", EPOCH_BROKEN["sqlite"], "epoch")
    refuse("leadership_delete", "BEFORE DELETE ON leadership", "1", "epoch")


def refuse(name: str, moment: str, when: str, rule: str) -> None:
    op.execute(
        f"CREATE TRIGGER {name} {moment} WHEN {when} BEGIN SELECT RAISE(ABORT, '{SAYS[rule]}'); END"
    )


def guard_postgresql() -> None:
    make_functions_postgresql()
    guard_runs_postgresql()
    guard_the_rest_postgresql()


def make_functions_postgresql() -> None:
    op.execute("""
        CREATE FUNCTION tsuzuki_now(offset_seconds double precision) RETURNS timestamptz
        LANGUAGE sql STABLE PARALLEL SAFE
        AS $$ SELECT statement_timestamp() + make_interval(secs => offset_seconds) $$
    """)
    op.execute("""
        CREATE FUNCTION tsuzuki_refuse() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'check_violation'; END $$
    """)
    op.execute("""
        CREATE FUNCTION tsuzuki_record_moves() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO job_run_transitions
                (run_id, version, from_state, to_state, at, actor, actor_id, epoch, reason, worker_id)
            SELECT n.id, n.version, o.state, n.state, n.moved_at, n.moved_as, n.moved_by,
                   n.moved_epoch, n.reason, n.assigned_worker_id
            FROM new_rows n JOIN old_rows o ON o.id = n.id
            WHERE o.state <> n.state;
            RETURN NULL;
        END $$
    """)
    op.execute("""
        CREATE FUNCTION tsuzuki_keep_history() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF EXISTS (SELECT 1 FROM job_runs WHERE id = OLD.run_id) THEN
                RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'check_violation';
            END IF;
            RETURN OLD;
        END $$
    """)


def guard_runs_postgresql() -> None:
    old = ", ".join(f"OLD.{name}" for name in FROZEN)
    new = ", ".join(f"NEW.{name}" for name in FROZEN)
    raise_when(
        "job_runs_birth",
        "BEFORE INSERT ON job_runs",
        "NEW.state <> 'PENDING' OR NEW.version <> 1",
        "birth",
    )
    raise_when("job_runs_move", "BEFORE UPDATE ON job_runs", ILLEGAL_MOVE, "move")
    raise_when("job_runs_version", "BEFORE UPDATE ON job_runs", WRONG_VERSION, "version")
    raise_when(
        "job_runs_finished",
        "BEFORE UPDATE ON job_runs",
        f"OLD.state IN ({FINAL}) AND ROW({old}) IS DISTINCT FROM ROW({new})",
        "finished",
    )
    raise_when("job_runs_keep", "BEFORE DELETE ON job_runs", f"OLD.state NOT IN ({FINAL})", "keep")
    raise_always("job_runs_truncate", "BEFORE TRUNCATE ON job_runs", "keep")
    op.execute("""
        CREATE TRIGGER job_runs_history AFTER UPDATE ON job_runs
        REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
        FOR EACH STATEMENT EXECUTE FUNCTION tsuzuki_record_moves()
    """)
    raise_when(
        "job_run_transitions_insert",
        "BEFORE INSERT ON job_run_transitions",
        "pg_trigger_depth() = 0",
        "history",
    )
    raise_when(
        "job_run_transitions_update", "BEFORE UPDATE ON job_run_transitions", "true", "history"
    )
    op.execute(f"""
        CREATE TRIGGER job_run_transitions_delete BEFORE DELETE ON job_run_transitions
        FOR EACH ROW EXECUTE FUNCTION tsuzuki_keep_history('{SAYS["history"]}')
    """)
    raise_always(
        "job_run_transitions_truncate", "BEFORE TRUNCATE ON job_run_transitions", "history"
    )


def guard_the_rest_postgresql() -> None:
    raise_when("audit_log_change", "BEFORE UPDATE OR DELETE ON audit_log", "true", "audit")
    raise_always("audit_log_truncate", "BEFORE TRUNCATE ON audit_log", "audit")
    raise_when(
        "leadership_update", "BEFORE UPDATE ON leadership", EPOCH_BROKEN["postgresql"], "epoch"
    )
    raise_when("leadership_delete", "BEFORE DELETE ON leadership", "true", "epoch")
    raise_always("leadership_truncate", "BEFORE TRUNCATE ON leadership", "epoch")


def raise_when(name: str, moment: str, when: str, rule: str) -> None:
    op.execute(
        f"CREATE TRIGGER {name} {moment} FOR EACH ROW WHEN ({when})"
        f" EXECUTE FUNCTION tsuzuki_refuse('{SAYS[rule]}')"
    )


def raise_always(name: str, moment: str, rule: str) -> None:
    op.execute(
        f"CREATE TRIGGER {name} {moment} FOR EACH STATEMENT"
        f" EXECUTE FUNCTION tsuzuki_refuse('{SAYS[rule]}')"
    )


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
