-- What no statement may do to the engine's tables, also one written by hand.
--
-- SQLite tries the conditions of a trigger in order, and reads every column that a trigger names for every row, whether
-- the trigger fires or not. So the commonest case comes first, and `UPDATE OF` lists what a statement has to set for the
-- trigger to be considered at all.

-- REPLACE deletes the rows it conflicts with, and no DELETE trigger fires. A trigger that finds such a row inserts into
-- `tsuzuki_replace_checks` with OR IGNORE. The conflict policy of the outer statement takes the place of that IGNORE, so only
-- REPLACE changes the row there, and is refused. INSERT, ON CONFLICT and OR IGNORE work as usual.
INSERT INTO tsuzuki_replace_checks VALUES (1, 0);

-- Counters of commits that a waiting process reads; PostgreSQL has NOTIFY.
INSERT INTO tsuzuki_notices VALUES ('tsuzuki_leader', 0), ('tsuzuki_workers', 0);


-- A run is created PENDING at version 1, and replaces no other run.
CREATE TRIGGER tsuzuki_job_runs_birth BEFORE INSERT ON tsuzuki_job_runs
WHEN NEW.state <> 'PENDING' OR NEW.version <> 1 OR EXISTS (SELECT 1 FROM tsuzuki_job_runs WHERE id = NEW.id)
BEGIN
    SELECT RAISE(ABORT, 'tsuzuki: a run is born PENDING at version 1');
END;

CREATE TRIGGER tsuzuki_job_runs_replace BEFORE INSERT ON tsuzuki_job_runs
WHEN (
    NEW.idempotency_key IS NOT NULL
    AND EXISTS (SELECT 1 FROM tsuzuki_job_runs WHERE idempotency_key = NEW.idempotency_key)
) OR (
    NEW.trigger = 'time'
    AND EXISTS (
        SELECT 1 FROM tsuzuki_job_runs
        WHERE trigger = 'time' AND job_definition_id = NEW.job_definition_id AND scheduled_for = NEW.scheduled_for
    )
)
BEGIN
    INSERT OR IGNORE INTO tsuzuki_replace_checks VALUES (1, 0);
    INSERT OR IGNORE INTO tsuzuki_replace_checks VALUES (1, 1);
    SELECT RAISE(ABORT, 'tsuzuki: REPLACE would delete another row') FROM tsuzuki_replace_checks WHERE is_replacing;
END;

-- The table of moves. Lists every column but `log_ref`, which changes when the log of a finished run is archived.
CREATE TRIGGER tsuzuki_job_runs_guard BEFORE UPDATE OF
    id, job_definition_id, state, version, trigger, scheduled_for, priority, arguments, attempt, retries_used,
    orphan_count, orphans_free, losses, losses_free, retry_of, origin_id, idempotency_key, concurrency_key, event_id,
    covers_ticks, covers_until, assigned_worker_id, assigned_at, leader_epoch, started_at, finished_at,
    continuation_state, continuation_check_deadline_at, reason, error, result, progress_processed, progress_total,
    progress_at, progress_number, created_at, moved_at, moved_as, moved_by, moved_epoch
ON tsuzuki_job_runs
WHEN NOT (
    NEW.id = OLD.id AND (
        (
            -- A move: the version grows by one.
            NEW.version = OLD.version + 1 AND (
                (OLD.state = 'RUNNING' AND NEW.state = 'SUCCEEDED' AND NEW.moved_as = 'worker')
                OR (OLD.state = 'PENDING' AND NEW.state = 'ASSIGNED' AND NEW.moved_as = 'leader')
                OR (OLD.state = 'ASSIGNED' AND NEW.state = 'RUNNING' AND NEW.moved_as = 'worker')
                OR (OLD.state = 'RUNNING' AND NEW.state = 'FAILED' AND NEW.moved_as IN ('worker', 'leader'))
                OR (OLD.state = 'RUNNING' AND NEW.state = 'TIMED_OUT' AND NEW.moved_as = 'worker')
                OR (OLD.state = 'RUNNING' AND NEW.state = 'CANCELED' AND NEW.moved_as IN ('operator', 'worker', 'leader'))
                OR (OLD.state = 'PENDING' AND NEW.state = 'CANCELED' AND NEW.moved_as IN ('leader', 'operator'))
                OR (OLD.state = 'ASSIGNED' AND NEW.state = 'ORPHANED' AND NEW.moved_as IN ('leader', 'worker'))
                OR (OLD.state = 'ASSIGNED' AND NEW.state = 'CANCELED' AND NEW.moved_as IN ('operator', 'worker', 'leader'))
                OR (OLD.state = 'ORPHANED' AND NEW.state = 'ASSIGNED' AND NEW.moved_as = 'leader')
                OR (OLD.state = 'ORPHANED' AND NEW.state = 'FAILED' AND NEW.moved_as = 'leader')
                OR (OLD.state = 'ORPHANED' AND NEW.state = 'CANCELED' AND NEW.moved_as IN ('operator', 'leader'))
            )
            -- It names its time and its actor, and that of a leader an epoch.
            AND NOT (
                NEW.moved_at IS NULL OR NEW.moved_by IS NULL
                OR (NEW.moved_as = 'leader' AND coalesce(NEW.moved_epoch, 0) < 1)
            )
        ) OR (
            -- Two moves in one statement: a leader assigns to the worker of its own process, which starts.
            NEW.version = OLD.version + 2
            AND OLD.state IN ('PENDING', 'ORPHANED') AND NEW.state = 'RUNNING' AND NEW.moved_as = 'leader'
            AND NOT (NEW.moved_at IS NULL OR NEW.moved_by IS NULL OR coalesce(NEW.moved_epoch, 0) < 1)
        ) OR (
            -- No move, of a run that has not finished.
            NEW.version = OLD.version AND NEW.state = OLD.state
            AND OLD.state NOT IN ('SUCCEEDED', 'FAILED', 'TIMED_OUT', 'CANCELED')
        )
    )
) IS TRUE
BEGIN
    SELECT CASE
        WHEN NEW.state <> OLD.state AND NEW.moved_as IS NULL
            THEN RAISE(ABORT, 'tsuzuki: this move of a run is not in the table of moves')
        WHEN NEW.id = OLD.id AND NEW.state = OLD.state AND NEW.version = OLD.version
            THEN RAISE(ABORT, 'tsuzuki: a finished run does not change')
        WHEN NEW.id <> OLD.id OR NEW.state = OLD.state OR NEW.version <> OLD.version
            + CASE WHEN NEW.state = 'RUNNING' AND OLD.state IN ('PENDING', 'ORPHANED') THEN 2 ELSE 1 END
            THEN RAISE(ABORT, 'tsuzuki: the version of a run grows by one with each move and only then')
        WHEN NEW.moved_at IS NULL OR NEW.moved_by IS NULL
            OR (NEW.moved_as = 'leader' AND coalesce(NEW.moved_epoch, 0) < 1)
            THEN RAISE(ABORT, 'tsuzuki: a move has a time and an actor, and that of a leader an epoch')
        ELSE RAISE(ABORT, 'tsuzuki: this move of a run is not in the table of moves')
    END;
END;

-- What a run was created with. `scheduled_for` of a tick is its identity; other runs may be put off.
CREATE TRIGGER tsuzuki_job_runs_fixed BEFORE UPDATE OF
    id, rowid, oid, _rowid_, job_definition_id, scheduled_for, trigger, arguments, retries_used, retry_of, origin_id,
    idempotency_key, work_key, defaulted_arguments, concurrency_key, event_id, covers_ticks, covers_until, blocked_by,
    created_at
ON tsuzuki_job_runs
WHEN NEW.id <> OLD.id
    OR NEW.job_definition_id <> OLD.job_definition_id
    OR (OLD.trigger = 'time' AND OLD.scheduled_for IS NOT NEW.scheduled_for)
    OR OLD.trigger IS NOT NEW.trigger
    OR OLD.arguments IS NOT NEW.arguments
    OR OLD.retries_used IS NOT NEW.retries_used
    OR OLD.retry_of IS NOT NEW.retry_of
    OR OLD.origin_id IS NOT NEW.origin_id
    OR OLD.idempotency_key IS NOT NEW.idempotency_key
    OR OLD.work_key IS NOT NEW.work_key
    OR OLD.defaulted_arguments IS NOT NEW.defaulted_arguments
    OR OLD.concurrency_key IS NOT NEW.concurrency_key
    OR OLD.event_id IS NOT NEW.event_id
    OR OLD.covers_ticks IS NOT NEW.covers_ticks
    OR OLD.covers_until IS NOT NEW.covers_until
    OR OLD.blocked_by IS NOT NEW.blocked_by
    OR OLD.created_at IS NOT NEW.created_at
BEGIN
    SELECT RAISE(ABORT, 'tsuzuki: what a run was created with does not change');
END;

CREATE TRIGGER tsuzuki_job_runs_attempt BEFORE UPDATE OF attempt ON tsuzuki_job_runs
WHEN NEW.attempt <> OLD.attempt AND NOT (
    NEW.attempt = OLD.attempt + 1 AND OLD.state = 'ORPHANED' AND NEW.state IN ('ASSIGNED', 'RUNNING')
)
BEGIN
    SELECT RAISE(ABORT, 'tsuzuki: the attempt of a run grows by one when it is assigned again and only then');
END;

-- Who holds a run changes with a move, and a start is under an epoch.
CREATE TRIGGER tsuzuki_job_runs_held BEFORE UPDATE OF assigned_worker_id, assigned_at, leader_epoch, started_at ON tsuzuki_job_runs
WHEN CASE
    WHEN NEW.version = OLD.version AND NEW.state = OLD.state AND OLD.finished_at IS NULL
        THEN OLD.assigned_worker_id IS NOT NEW.assigned_worker_id
            OR OLD.assigned_at IS NOT NEW.assigned_at
            OR OLD.leader_epoch IS NOT NEW.leader_epoch
            OR OLD.started_at IS NOT NEW.started_at
    ELSE NEW.state = 'RUNNING' AND NEW.leader_epoch < 1
END
BEGIN
    SELECT RAISE(ABORT, 'tsuzuki: worker and epoch of a run change with a move and only then');
END;

CREATE TRIGGER tsuzuki_job_runs_keep BEFORE DELETE ON tsuzuki_job_runs
WHEN OLD.state NOT IN ('SUCCEEDED', 'FAILED', 'TIMED_OUT', 'CANCELED')
BEGIN
    SELECT RAISE(ABORT, 'tsuzuki: an unfinished run cannot be deleted');
END;


-- Every move is in the history, because it is written here and nowhere else. `seq` is the order of commits.
CREATE TRIGGER tsuzuki_job_runs_history AFTER UPDATE OF state ON tsuzuki_job_runs
WHEN NEW.version = OLD.version + 1
BEGIN
    INSERT INTO tsuzuki_job_run_transitions
        (run_id, version, from_state, to_state, at, actor, actor_id, epoch, reason, worker_id, seq)
    VALUES (
        NEW.id, NEW.version, OLD.state, NEW.state, NEW.moved_at, NEW.moved_as, NEW.moved_by, NEW.moved_epoch,
        NEW.reason, NEW.assigned_worker_id,
        1 + max(
            coalesce((SELECT max(seq) FROM tsuzuki_job_run_transitions), 0),
            coalesce((SELECT seq FROM tsuzuki_pruned_history WHERE id = 1), 0)
        )
    );
END;

-- Two moves in one statement are two rows: the leader's, then the worker's.
CREATE TRIGGER tsuzuki_job_runs_history_of_two AFTER UPDATE OF state ON tsuzuki_job_runs
WHEN NEW.version = OLD.version + 2
BEGIN
    INSERT INTO tsuzuki_job_run_transitions
        (run_id, version, from_state, to_state, at, actor, actor_id, epoch, reason, worker_id, seq)
    VALUES (
        NEW.id, NEW.version - 1, OLD.state, 'ASSIGNED', NEW.moved_at, NEW.moved_as, NEW.moved_by, NEW.moved_epoch,
        NEW.reason, NEW.assigned_worker_id,
        1 + max(
            coalesce((SELECT max(seq) FROM tsuzuki_job_run_transitions), 0),
            coalesce((SELECT seq FROM tsuzuki_pruned_history WHERE id = 1), 0)
        )
    );
    INSERT INTO tsuzuki_job_run_transitions
        (run_id, version, from_state, to_state, at, actor, actor_id, epoch, reason, worker_id, seq)
    VALUES (
        NEW.id, NEW.version, 'ASSIGNED', NEW.state, NEW.moved_at, 'worker', NEW.assigned_worker_id, NEW.moved_epoch,
        NEW.reason, NEW.assigned_worker_id,
        1 + max(
            coalesce((SELECT max(seq) FROM tsuzuki_job_run_transitions), 0),
            coalesce((SELECT seq FROM tsuzuki_pruned_history WHERE id = 1), 0)
        )
    );
END;

-- An end whose hour is being counted, or was counted, is noted to be added to it.
CREATE TRIGGER tsuzuki_job_runs_late_end AFTER UPDATE OF finished_at ON tsuzuki_job_runs
WHEN OLD.finished_at IS NULL AND NEW.finished_at IS NOT NULL
    AND NEW.moved_at < (SELECT closing FROM tsuzuki_run_hours_progress WHERE id = 1)
BEGIN
    INSERT INTO tsuzuki_late_ends VALUES (NEW.id);
END;

-- A row of history tells the move that its run has just made.
CREATE TRIGGER tsuzuki_job_run_transitions_insert BEFORE INSERT ON tsuzuki_job_run_transitions
WHEN NEW.version = 1
    OR NOT EXISTS (
        SELECT 1 FROM tsuzuki_job_runs
        WHERE id = NEW.run_id AND (
            (version = NEW.version AND state = NEW.to_state)
            OR (
                version = NEW.version + 1 AND state = 'RUNNING' AND moved_as = 'leader'
                AND NEW.to_state = 'ASSIGNED'
            )
        )
    )
    OR EXISTS (SELECT 1 FROM tsuzuki_job_run_transitions WHERE run_id = NEW.run_id AND version = NEW.version)
BEGIN
    SELECT RAISE(ABORT, 'tsuzuki: the history of runs is written by moves and never rewritten');
END;

CREATE TRIGGER tsuzuki_job_run_transitions_update BEFORE UPDATE ON tsuzuki_job_run_transitions
BEGIN
    SELECT RAISE(ABORT, 'tsuzuki: the history of runs is written by moves and never rewritten');
END;

-- It is pruned after its run.
CREATE TRIGGER tsuzuki_job_run_transitions_delete BEFORE DELETE ON tsuzuki_job_run_transitions
WHEN EXISTS (SELECT 1 FROM tsuzuki_job_runs WHERE id = OLD.run_id)
BEGIN
    SELECT RAISE(ABORT, 'tsuzuki: the history of runs is written by moves and never rewritten');
END;


-- A removed job is marked and keeps its row, because its runs refer to it.
CREATE TRIGGER tsuzuki_job_definitions_keep BEFORE DELETE ON tsuzuki_job_definitions
BEGIN
    SELECT RAISE(ABORT, 'tsuzuki: the row of a job stays, because its runs do');
END;

CREATE TRIGGER tsuzuki_job_definitions_id BEFORE UPDATE OF id, rowid, oid, _rowid_ ON tsuzuki_job_definitions
WHEN NEW.id <> OLD.id
BEGIN
    SELECT RAISE(ABORT, 'tsuzuki: the row of a job stays, because its runs do');
END;

CREATE TRIGGER tsuzuki_job_definitions_replace BEFORE INSERT ON tsuzuki_job_definitions
WHEN EXISTS (SELECT 1 FROM tsuzuki_job_definitions WHERE id = NEW.id)
    OR (
        NEW.deleted_at IS NULL
        AND EXISTS (SELECT 1 FROM tsuzuki_job_definitions WHERE name = NEW.name AND deleted_at IS NULL)
    )
BEGIN
    INSERT OR IGNORE INTO tsuzuki_replace_checks VALUES (1, 0);
    INSERT OR IGNORE INTO tsuzuki_replace_checks VALUES (1, 1);
    SELECT RAISE(ABORT, 'tsuzuki: REPLACE would delete another row') FROM tsuzuki_replace_checks WHERE is_replacing;
END;

CREATE TRIGGER tsuzuki_job_definitions_replace_by_update BEFORE UPDATE OF name, deleted_at ON tsuzuki_job_definitions
WHEN NEW.deleted_at IS NULL
    AND EXISTS (SELECT 1 FROM tsuzuki_job_definitions WHERE name = NEW.name AND deleted_at IS NULL AND id <> OLD.id)
BEGIN
    INSERT OR IGNORE INTO tsuzuki_replace_checks VALUES (1, 0);
    INSERT OR IGNORE INTO tsuzuki_replace_checks VALUES (1, 1);
    SELECT RAISE(ABORT, 'tsuzuki: REPLACE would delete another row') FROM tsuzuki_replace_checks WHERE is_replacing;
END;


-- An event keeps its key and type, and is processed once.
CREATE TRIGGER tsuzuki_events_keep BEFORE UPDATE OF id, rowid, oid, _rowid_, event_type, dedupe_key, processed_at ON tsuzuki_events
WHEN NEW.id <> OLD.id
    OR NEW.event_type <> OLD.event_type
    OR OLD.dedupe_key IS NOT NEW.dedupe_key
    OR (OLD.processed_at IS NOT NULL AND OLD.processed_at IS NOT NEW.processed_at)
BEGIN
    SELECT RAISE(ABORT, 'tsuzuki: an event keeps its key and its type, and once processed stays processed');
END;

CREATE TRIGGER tsuzuki_events_replace BEFORE INSERT ON tsuzuki_events
WHEN EXISTS (SELECT 1 FROM tsuzuki_events WHERE id = NEW.id)
    OR (
        NEW.dedupe_key IS NOT NULL
        AND EXISTS (SELECT 1 FROM tsuzuki_events WHERE dedupe_key = NEW.dedupe_key AND event_type = NEW.event_type)
    )
BEGIN
    INSERT OR IGNORE INTO tsuzuki_replace_checks VALUES (1, 0);
    INSERT OR IGNORE INTO tsuzuki_replace_checks VALUES (1, 1);
    SELECT RAISE(ABORT, 'tsuzuki: REPLACE would delete another row') FROM tsuzuki_replace_checks WHERE is_replacing;
END;


-- The audit log.
CREATE TRIGGER tsuzuki_audit_log_insert BEFORE INSERT ON tsuzuki_audit_log
WHEN EXISTS (SELECT 1 FROM tsuzuki_audit_log WHERE id = NEW.id)
BEGIN
    SELECT RAISE(ABORT, 'tsuzuki: the audit log is only added to');
END;

CREATE TRIGGER tsuzuki_audit_log_update BEFORE UPDATE ON tsuzuki_audit_log
BEGIN
    SELECT RAISE(ABORT, 'tsuzuki: the audit log is only added to');
END;

CREATE TRIGGER tsuzuki_audit_log_delete BEFORE DELETE ON tsuzuki_audit_log
BEGIN
    SELECT RAISE(ABORT, 'tsuzuki: the audit log is only added to');
END;


-- Leadership is one row. Taking it raises the epoch by one; a holder changes only then.
INSERT INTO tsuzuki_leadership (id, epoch, lease_expires_at) VALUES (1, 0, '1970-01-01T00:00:00.000000Z');

CREATE TRIGGER tsuzuki_leadership_insert BEFORE INSERT ON tsuzuki_leadership
WHEN EXISTS (SELECT 1 FROM tsuzuki_leadership)
BEGIN
    SELECT RAISE(ABORT, 'tsuzuki: the epoch only grows, and a new holder needs a new epoch');
END;

CREATE TRIGGER tsuzuki_leadership_update BEFORE UPDATE ON tsuzuki_leadership
WHEN NEW.epoch NOT IN (OLD.epoch, OLD.epoch + 1)
    OR (NEW.epoch = OLD.epoch AND NEW.holder IS NOT NULL AND NEW.holder IS NOT OLD.holder)
BEGIN
    SELECT RAISE(ABORT, 'tsuzuki: the epoch only grows, and a new holder needs a new epoch');
END;

CREATE TRIGGER tsuzuki_leadership_delete BEFORE DELETE ON tsuzuki_leadership
BEGIN
    SELECT RAISE(ABORT, 'tsuzuki: the epoch only grows, and a new holder needs a new epoch');
END;

-- Past terms are written here only; the last 1,000 are kept.
CREATE TRIGGER tsuzuki_leadership_taken AFTER UPDATE ON tsuzuki_leadership
WHEN NEW.epoch > OLD.epoch AND NEW.holder IS NOT NULL AND NEW.taken_at IS NOT NULL
BEGIN
    UPDATE tsuzuki_leader_terms SET ended_at = OLD.lease_expires_at WHERE epoch = OLD.epoch AND ended_at IS NULL;
    INSERT INTO tsuzuki_leader_terms (epoch, holder, taken_at) VALUES (NEW.epoch, NEW.holder, NEW.taken_at)
    ON CONFLICT (epoch) DO NOTHING;
    DELETE FROM tsuzuki_leader_terms WHERE epoch <= NEW.epoch - 1000;
END;

CREATE TRIGGER tsuzuki_leadership_released AFTER UPDATE ON tsuzuki_leadership
WHEN NEW.epoch = OLD.epoch AND NEW.holder IS NULL AND OLD.holder IS NOT NULL
BEGIN
    UPDATE tsuzuki_leader_terms SET ended_at = NEW.lease_expires_at WHERE epoch = NEW.epoch AND ended_at IS NULL;
END;
