"""More of what no statement may do, also one that is written by hand.

- REPLACE on SQLite deletes the rows that it conflicts with, and no DELETE trigger fires. A trigger that finds such a row
  writes to `replace_checks` with OR IGNORE; the conflict policy of the outer statement takes the place of that IGNORE, so
  only REPLACE changes the row there, and is refused. INSERT, ON CONFLICT and OR IGNORE go on as before.
- An assignment to `rowid` is one to `id`, but a trigger on `UPDATE OF id` does not fire for it: the names stand in its list.
- What a run was created with does not change; its attempt grows only when it is assigned again; its worker and epoch
  change only with a move.
- A move names its time and its actor, and a leader's move an epoch. UPDATE OR IGNORE on SQLite left such a move without
  history.
- An event keeps its key, and once processed it stays processed.

Nothing that the version before sends is refused.
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None
expands = True

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

# Everything on a run but log_ref and what 0008 added.
FROZEN = (
    "id job_definition_id state version trigger scheduled_for priority arguments attempt retries_used "
    "orphan_count retry_of origin_id idempotency_key concurrency_key event_id covers_ticks covers_until "
    "assigned_worker_id assigned_at leader_epoch started_at finished_at continuation_state "
    "continuation_check_deadline_at reason error result progress_processed progress_total progress_at "
    "created_at moved_at moved_as moved_by moved_epoch"
).split()

FIXED = (
    "trigger arguments retries_used retry_of origin_id idempotency_key"
    " concurrency_key event_id covers_ticks covers_until created_at"
).split()
HELD = "assigned_worker_id assigned_at leader_epoch started_at".split()

# The names under which SQLite takes an assignment to an INTEGER PRIMARY KEY.
ID = "id, rowid, oid, _rowid_"

SAYS = {
    "move": "tsuzuki: this move of a run is not in the table of moves",
    "version": "tsuzuki: the version of a run grows by one with each move and only then",
    "finished": "tsuzuki: a finished run does not change",
    "replace": "tsuzuki: REPLACE would delete another row",
    "fixed": "tsuzuki: what a run was created with does not change",
    "attempt": "tsuzuki: the attempt of a run grows by one when it is assigned again and only then",
    "held": "tsuzuki: worker and epoch of a run change with a move and only then",
    "signed": "tsuzuki: a move has a time and an actor, and that of a leader an epoch",
    "event": "tsuzuki: an event keeps its key, and once processed stays processed",
    "keep_job": "tsuzuki: the row of a job stays, because its runs do",
}

ATTEMPT_BROKEN = """
    NEW.attempt <> OLD.attempt AND NOT (
        NEW.attempt = OLD.attempt + 1 AND OLD.state = 'ORPHANED' AND NEW.state IN ('ASSIGNED', 'RUNNING'))
"""
UNSIGNED = """
    NEW.moved_at IS NULL OR NEW.moved_by IS NULL
    OR (NEW.moved_as = 'leader' AND coalesce(NEW.moved_epoch, 0) < 1)
"""
NOT_MOVED = "NEW.version = OLD.version AND NEW.state = OLD.state AND OLD.finished_at IS NULL"
STARTED_UNDER_NO_EPOCH = "NEW.state = 'RUNNING' AND NEW.leader_epoch < 1"


def upgrade() -> None:
    op.create_table(
        "replace_checks",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("is_replacing", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_replace_checks"),
    )
    if op.get_bind().dialect.name == "sqlite":
        guard_moves_sqlite()
        guard_columns_sqlite()
        refuse_replace_sqlite()
    else:
        guard_postgresql()


def changed(names: list[str], unlike: str) -> str:
    return " OR ".join(f"OLD.{name} {unlike} NEW.{name}" for name in names)


# --- SQLite ---------------------------------------------------------------------------------------


def guard_moves_sqlite() -> None:
    """The guard of 0006, which now asks for a signature as well."""

    def listed(moves: tuple[str, ...] | list[str]) -> str:
        return " OR ".join(
            "(OLD.state = '{}' AND NEW.state = '{}' AND NEW.moved_as = '{}')".format(
                *move.split(">")
            )
            for move in moves
        )

    one, both = listed(LEGAL), listed(LEGAL_AT_ONCE)
    same_row = "NEW.id = OLD.id"
    is_signed = f"NOT ({UNSIGNED})"
    a_move = f"NEW.version = OLD.version + 1 AND ({one}) AND {is_signed}"
    two_moves = f"NEW.version = OLD.version + 2 AND ({both}) AND {is_signed}"
    no_move = f"OLD.state = NEW.state AND NEW.version = OLD.version AND OLD.state NOT IN ({FINAL})"
    wrong_version = f"""
        NEW.version <> OLD.version + CASE
            WHEN OLD.state = NEW.state THEN 0 WHEN ({both}) THEN 2 ELSE 1 END
    """
    op.execute("DROP TRIGGER job_runs_guard")
    op.execute(f"""
        CREATE TRIGGER job_runs_guard BEFORE UPDATE OF {", ".join(FROZEN)} ON job_runs
        WHEN NOT ({same_row} AND (({a_move}) OR ({two_moves}) OR ({no_move}))) IS TRUE
        BEGIN
            SELECT CASE
                WHEN OLD.state <> NEW.state AND NOT (({one}) OR ({both})) IS TRUE
                    THEN RAISE(ABORT, '{SAYS["move"]}')
                WHEN NOT ({same_row}) OR ({wrong_version})
                    THEN RAISE(ABORT, '{SAYS["version"]}')
                WHEN OLD.state IN ({FINAL})
                    THEN RAISE(ABORT, '{SAYS["finished"]}')
                ELSE RAISE(ABORT, '{SAYS["signed"]}')
            END;
        END
    """)


def guard_columns_sqlite() -> None:
    moved_tick = "(OLD.trigger = 'time' AND OLD.scheduled_for IS NOT NEW.scheduled_for)"
    refuse(
        "job_runs_fixed",
        f"BEFORE UPDATE OF {ID}, job_definition_id, scheduled_for, {', '.join(FIXED)} ON job_runs",
        "NEW.id <> OLD.id OR NEW.job_definition_id <> OLD.job_definition_id"
        f" OR {moved_tick} OR {changed(FIXED, 'IS NOT')}",
        "fixed",
    )
    refuse("job_runs_attempt", "BEFORE UPDATE OF attempt ON job_runs", ATTEMPT_BROKEN, "attempt")
    refuse(
        "job_runs_held",
        f"BEFORE UPDATE OF {', '.join(HELD)} ON job_runs",
        f"CASE WHEN {NOT_MOVED} THEN {changed(HELD, 'IS NOT')} ELSE {STARTED_UNDER_NO_EPOCH} END",
        "held",
    )
    refuse(
        "job_definitions_id",
        f"BEFORE UPDATE OF {ID} ON job_definitions",
        "NEW.id <> OLD.id",
        "keep_job",
    )
    refuse(
        "events_keep",
        f"BEFORE UPDATE OF {ID}, dedupe_key, processed_at ON events",
        "NEW.id <> OLD.id OR OLD.dedupe_key IS NOT NEW.dedupe_key"
        " OR (OLD.processed_at IS NOT NULL AND OLD.processed_at IS NOT NEW.processed_at)",
        "event",
    )


def refuse(name: str, moment: str, when: str, rule: str) -> None:
    op.execute(
        f"CREATE TRIGGER {name} {moment} WHEN {when} BEGIN SELECT RAISE(ABORT, '{SAYS[rule]}'); END"
    )


def refuse_replace_sqlite() -> None:
    op.execute("INSERT INTO replace_checks VALUES (1, 0)")
    # A row with the id of another was refused by 0002 already, with or without REPLACE.
    same_key = exists("job_runs", "idempotency_key = NEW.idempotency_key")
    same_tick = exists(
        "job_runs",
        "trigger = 'time' AND job_definition_id = NEW.job_definition_id"
        " AND scheduled_for = NEW.scheduled_for",
    )
    check_replace(
        "job_runs_replace",
        "BEFORE INSERT ON job_runs",
        f"(NEW.idempotency_key IS NOT NULL AND {same_key}) OR (NEW.trigger = 'time' AND {same_tick})",
    )
    same_name = exists("job_definitions", "name = NEW.name AND deleted_at IS NULL")
    check_replace(
        "job_definitions_replace",
        "BEFORE INSERT ON job_definitions",
        f"{exists('job_definitions', 'id = NEW.id')} OR (NEW.deleted_at IS NULL AND {same_name})",
    )
    check_replace(
        "job_definitions_replace_by_update",
        "BEFORE UPDATE OF name, deleted_at ON job_definitions",
        "NEW.deleted_at IS NULL AND "
        + exists("job_definitions", "name = NEW.name AND deleted_at IS NULL AND id <> OLD.id"),
    )
    check_replace(
        "events_replace",
        "BEFORE INSERT ON events",
        f"{exists('events', 'id = NEW.id')} OR (NEW.dedupe_key IS NOT NULL"
        f" AND {exists('events', 'dedupe_key = NEW.dedupe_key')})",
    )


def exists(table: str, where: str) -> str:
    return f"EXISTS (SELECT 1 FROM {table} WHERE {where})"


def check_replace(name: str, moment: str, conflicts: str) -> None:
    """The first INSERT puts the row back, should it be missing; the second one takes effect under REPLACE only."""
    op.execute(f"""
        CREATE TRIGGER {name} {moment} WHEN {conflicts}
        BEGIN
            INSERT OR IGNORE INTO replace_checks VALUES (1, 0);
            INSERT OR IGNORE INTO replace_checks VALUES (1, 1);
            SELECT RAISE(ABORT, '{SAYS["replace"]}') FROM replace_checks WHERE is_replacing;
        END
    """)


# --- PostgreSQL -----------------------------------------------------------------------------------


def guard_postgresql() -> None:
    raise_when(
        "job_runs_signed",
        "BEFORE UPDATE OF state ON job_runs",
        f"OLD.state <> NEW.state AND ({UNSIGNED})",
        "signed",
    )
    raise_when(
        "job_runs_fixed",
        f"BEFORE UPDATE OF scheduled_for, {', '.join(FIXED)} ON job_runs",
        "(OLD.trigger = 'time' AND OLD.scheduled_for <> NEW.scheduled_for)"
        f" OR {changed(FIXED, 'IS DISTINCT FROM')}",
        "fixed",
    )
    raise_when(
        "job_runs_attempt", "BEFORE UPDATE OF attempt ON job_runs", ATTEMPT_BROKEN, "attempt"
    )
    raise_when(
        "job_runs_held",
        f"BEFORE UPDATE OF {', '.join(HELD)} ON job_runs",
        f"CASE WHEN {NOT_MOVED} THEN {changed(HELD, 'IS DISTINCT FROM')}"
        f" ELSE {STARTED_UNDER_NO_EPOCH} END",
        "held",
    )
    raise_when(
        "events_keep",
        "BEFORE UPDATE OF id, dedupe_key, processed_at ON events",
        "NEW.id <> OLD.id OR OLD.dedupe_key IS DISTINCT FROM NEW.dedupe_key"
        " OR (OLD.processed_at IS NOT NULL AND OLD.processed_at IS DISTINCT FROM NEW.processed_at)",
        "event",
    )


def raise_when(name: str, moment: str, when: str, rule: str) -> None:
    op.execute(
        f"CREATE TRIGGER {name} {moment} FOR EACH ROW WHEN ({when})"
        f" EXECUTE FUNCTION tsuzuki_refuse('{SAYS[rule]}')"
    )


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
