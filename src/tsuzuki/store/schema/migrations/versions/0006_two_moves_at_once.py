"""A leader may make the two moves of a run that it gives to the worker of its own process at once.

The row is written once and its version grows by two; the history has both moves, the first signed by the leader, the
second by the worker. To everybody else it is what it was: nobody could see the state between the two before either,
because they were made in one transaction.
"""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

# The commonest first: SQLite tries conditions in order.
LEGAL = """
    RUNNING>SUCCEEDED>worker PENDING>ASSIGNED>leader ASSIGNED>RUNNING>worker RUNNING>FAILED>worker
    RUNNING>TIMED_OUT>worker RUNNING>FAILED>leader
    RUNNING>CANCELED>operator RUNNING>CANCELED>worker RUNNING>CANCELED>leader
    PENDING>CANCELED>leader PENDING>CANCELED>operator
    ASSIGNED>ORPHANED>leader ASSIGNED>ORPHANED>worker
    ASSIGNED>CANCELED>operator ASSIGNED>CANCELED>worker ASSIGNED>CANCELED>leader
    ORPHANED>ASSIGNED>leader ORPHANED>FAILED>leader ORPHANED>CANCELED>operator ORPHANED>CANCELED>leader
""".split()
LEGAL_AT_ONCE = ("PENDING>RUNNING>leader", "ORPHANED>RUNNING>leader")

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
    "history": "tsuzuki: the history of runs is written by moves and never rewritten",
}

HISTORY = (
    "job_run_transitions"
    " (run_id, version, from_state, to_state, at, actor, actor_id, epoch, reason, worker_id)"
)


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        guard_sqlite()
        record_sqlite()
    else:
        guard_postgresql()
        record_postgresql()


def guard_sqlite() -> None:
    def listed(moves: tuple[str, ...] | list[str]) -> str:
        return " OR ".join(
            "(OLD.state = '{}' AND NEW.state = '{}' AND NEW.moved_as = '{}')".format(
                *move.split(">")
            )
            for move in moves
        )

    one, both = listed(LEGAL), listed(LEGAL_AT_ONCE)
    same_row = "NEW.id = OLD.id"
    a_move = f"NEW.version = OLD.version + 1 AND ({one})"
    two_moves = f"NEW.version = OLD.version + 2 AND ({both})"
    no_move = f"OLD.state = NEW.state AND NEW.version = OLD.version AND OLD.state NOT IN ({FINAL})"
    op.execute("DROP TRIGGER job_runs_guard")
    op.execute(f"""
        CREATE TRIGGER job_runs_guard BEFORE UPDATE OF {", ".join(FROZEN)} ON job_runs
        WHEN NOT ({same_row} AND (({a_move}) OR ({two_moves}) OR ({no_move}))) IS TRUE
        BEGIN
            SELECT CASE
                WHEN OLD.state <> NEW.state AND NOT (({one}) OR ({both})) IS TRUE
                    THEN RAISE(ABORT, '{SAYS["move"]}')
                WHEN NOT ({same_row}) OR OLD.state <> NEW.state OR NEW.version <> OLD.version
                    THEN RAISE(ABORT, '{SAYS["version"]}')
                ELSE RAISE(ABORT, '{SAYS["finished"]}')
            END;
        END
    """)


def record_sqlite() -> None:
    op.execute("DROP TRIGGER job_runs_history")
    op.execute(f"""
        CREATE TRIGGER job_runs_history AFTER UPDATE OF state ON job_runs
        WHEN NEW.version = OLD.version + 1
        BEGIN
            INSERT INTO {HISTORY}
            VALUES (NEW.id, NEW.version, OLD.state, NEW.state, NEW.moved_at, NEW.moved_as,
                    NEW.moved_by, NEW.moved_epoch, NEW.reason, NEW.assigned_worker_id);
        END
    """)
    op.execute(f"""
        CREATE TRIGGER job_runs_history_of_two AFTER UPDATE OF state ON job_runs
        WHEN NEW.version = OLD.version + 2
        BEGIN
            INSERT INTO {HISTORY}
            VALUES (NEW.id, NEW.version - 1, OLD.state, 'ASSIGNED', NEW.moved_at, NEW.moved_as,
                    NEW.moved_by, NEW.moved_epoch, NEW.reason, NEW.assigned_worker_id),
                   (NEW.id, NEW.version, 'ASSIGNED', NEW.state, NEW.moved_at, 'worker',
                    NEW.assigned_worker_id, NEW.moved_epoch, NEW.reason, NEW.assigned_worker_id);
        END
    """)
    op.execute("DROP TRIGGER job_run_transitions_insert")
    op.execute(f"""
        CREATE TRIGGER job_run_transitions_insert BEFORE INSERT ON job_run_transitions
        WHEN NEW.version = 1
            OR NOT EXISTS (
                SELECT 1 FROM job_runs WHERE id = NEW.run_id AND (
                    (version = NEW.version AND state = NEW.to_state)
                    OR (version = NEW.version + 1 AND state = 'RUNNING' AND moved_as = 'leader'
                        AND NEW.to_state = 'ASSIGNED')))
            OR EXISTS (
                SELECT 1 FROM job_run_transitions
                WHERE run_id = NEW.run_id AND version = NEW.version)
        BEGIN SELECT RAISE(ABORT, '{SAYS["history"]}'); END
    """)


def guard_postgresql() -> None:
    op.execute("DROP TRIGGER job_runs_move ON job_runs")
    op.execute(f"""
        CREATE TRIGGER job_runs_move BEFORE UPDATE ON job_runs FOR EACH ROW
        WHEN (
            OLD.state <> NEW.state
            AND OLD.state || '>' || NEW.state || '>' || coalesce(NEW.moved_as, '')
                <> ALL ('{{{",".join((*LEGAL_AT_ONCE, *LEGAL))}}}'::text[])
        )
        EXECUTE FUNCTION tsuzuki_refuse('{SAYS["move"]}')
    """)
    op.execute("DROP TRIGGER job_runs_version ON job_runs")
    op.execute(f"""
        CREATE TRIGGER job_runs_version BEFORE UPDATE ON job_runs FOR EACH ROW
        WHEN (
            NEW.id <> OLD.id
            OR NEW.version <> OLD.version + CASE
                WHEN OLD.state = NEW.state THEN 0
                WHEN NEW.state = 'RUNNING' AND OLD.state <> 'ASSIGNED' THEN 2
                ELSE 1
            END
        )
        EXECUTE FUNCTION tsuzuki_refuse('{SAYS["version"]}')
    """)


def record_postgresql() -> None:
    """A row of history for each step that the version has grown. `later` is how many steps follow it."""
    op.execute(f"""
        CREATE OR REPLACE FUNCTION tsuzuki_record_moves() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO {HISTORY}
            SELECT n.id, n.version - step.later,
                   CASE WHEN step.is_second THEN 'ASSIGNED' ELSE o.state END,
                   CASE WHEN step.later = 1 THEN 'ASSIGNED' ELSE n.state END,
                   n.moved_at,
                   CASE WHEN step.is_second THEN 'worker' ELSE n.moved_as END,
                   CASE WHEN step.is_second THEN n.assigned_worker_id ELSE n.moved_by END,
                   n.moved_epoch, n.reason, n.assigned_worker_id
            FROM new_rows n
            JOIN old_rows o ON o.id = n.id
            JOIN (VALUES (1, 0, false), (2, 1, false), (2, 0, true)) AS step (steps, later, is_second)
                ON step.steps = n.version - o.version;
            RETURN NULL;
        END $$
    """)


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
