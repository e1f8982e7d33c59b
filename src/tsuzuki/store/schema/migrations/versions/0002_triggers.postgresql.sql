-- What no statement may do to the engine's tables, also one written by hand.
--
-- A guard is a row trigger whose WHEN holds the illegal cases, so a legal statement calls no function. History is
-- one statement-level trigger: one INSERT for a whole batch of moves.

-- Vacuum `tsuzuki_job_runs` after a few per cent of changes: every move leaves an old version of a row.
ALTER TABLE tsuzuki_job_runs SET (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_vacuum_insert_scale_factor = 0.05
);

-- Counters of commits that a waiting process reads on SQLite; here NOTIFY wakes it.
INSERT INTO tsuzuki_notices VALUES ('tsuzuki_leader', 0), ('tsuzuki_workers', 0);

-- The database's clock, by which leases and heartbeats are compared.
CREATE FUNCTION tsuzuki_now(offset_seconds double precision) RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT statement_timestamp() + make_interval(secs => offset_seconds)
$$;

CREATE FUNCTION tsuzuki_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'check_violation';
END
$$;


-- A run is created PENDING at version 1, for a job that exists. The leader is told once per statement.
CREATE TRIGGER tsuzuki_job_runs_birth BEFORE INSERT ON tsuzuki_job_runs FOR EACH ROW
WHEN (NEW.state <> 'PENDING' OR NEW.version <> 1)
EXECUTE FUNCTION tsuzuki_refuse('tsuzuki: a run is born PENDING at version 1');

CREATE FUNCTION tsuzuki_require_jobs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT 1 FROM new_rows n
        WHERE NOT EXISTS (SELECT 1 FROM tsuzuki_job_definitions j WHERE j.id = n.job_definition_id)
    ) THEN
        RAISE EXCEPTION 'tsuzuki: a run belongs to a job that exists' USING ERRCODE = 'foreign_key_violation';
    END IF;
    PERFORM pg_notify('tsuzuki_leader', '');
    RETURN NULL;
END
$$;

CREATE TRIGGER tsuzuki_job_runs_job AFTER INSERT ON tsuzuki_job_runs
REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT
EXECUTE FUNCTION tsuzuki_require_jobs();

CREATE TRIGGER tsuzuki_job_runs_same_job BEFORE UPDATE OF job_definition_id ON tsuzuki_job_runs FOR EACH ROW
WHEN (NEW.job_definition_id <> OLD.job_definition_id)
EXECUTE FUNCTION tsuzuki_refuse('tsuzuki: a run belongs to a job that exists');

-- The table of moves: from, to, who. The first two are two moves in one statement, when a leader assigns to the worker
-- of its own process, which starts. Triggers fire in the order of their names.
CREATE TRIGGER tsuzuki_job_runs_move BEFORE UPDATE ON tsuzuki_job_runs FOR EACH ROW
WHEN (
    OLD.state <> NEW.state
    AND OLD.state || '>' || NEW.state || '>' || coalesce(NEW.moved_as, '') <> ALL ('{
        PENDING>RUNNING>leader,
        ORPHANED>RUNNING>leader,
        RUNNING>SUCCEEDED>worker,
        PENDING>ASSIGNED>leader,
        ASSIGNED>RUNNING>worker,
        RUNNING>FAILED>worker,
        RUNNING>TIMED_OUT>worker,
        RUNNING>FAILED>leader,
        RUNNING>CANCELED>operator,
        RUNNING>CANCELED>worker,
        RUNNING>CANCELED>leader,
        PENDING>CANCELED>leader,
        PENDING>CANCELED>operator,
        ASSIGNED>ORPHANED>leader,
        ASSIGNED>ORPHANED>worker,
        ASSIGNED>CANCELED>operator,
        ASSIGNED>CANCELED>worker,
        ASSIGNED>CANCELED>leader,
        ORPHANED>ASSIGNED>leader,
        ORPHANED>FAILED>leader,
        ORPHANED>CANCELED>operator,
        ORPHANED>CANCELED>leader
    }'::text[])
)
EXECUTE FUNCTION tsuzuki_refuse('tsuzuki: this move of a run is not in the table of moves');

CREATE TRIGGER tsuzuki_job_runs_version BEFORE UPDATE ON tsuzuki_job_runs FOR EACH ROW
WHEN (
    NEW.id <> OLD.id
    OR NEW.version <> OLD.version + CASE
        WHEN OLD.state = NEW.state THEN 0
        WHEN NEW.state = 'RUNNING' AND OLD.state <> 'ASSIGNED' THEN 2
        ELSE 1
    END
)
EXECUTE FUNCTION tsuzuki_refuse('tsuzuki: the version of a run grows by one with each move and only then');

CREATE TRIGGER tsuzuki_job_runs_signed BEFORE UPDATE OF state ON tsuzuki_job_runs FOR EACH ROW
WHEN (
    OLD.state <> NEW.state AND (
        NEW.moved_at IS NULL OR NEW.moved_by IS NULL
        OR (NEW.moved_as = 'leader' AND coalesce(NEW.moved_epoch, 0) < 1)
    )
)
EXECUTE FUNCTION tsuzuki_refuse('tsuzuki: a move has a time and an actor, and that of a leader an epoch');

-- Of a finished run only `log_ref` changes, when its log is archived.
CREATE FUNCTION tsuzuki_keep_finished() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    OLD.log_ref := NEW.log_ref;
    IF OLD IS DISTINCT FROM NEW THEN
        RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER tsuzuki_job_runs_finished BEFORE UPDATE ON tsuzuki_job_runs FOR EACH ROW
WHEN (OLD.finished_at IS NOT NULL)
EXECUTE FUNCTION tsuzuki_keep_finished('tsuzuki: a finished run does not change');

-- What a run was created with. `scheduled_for` of a tick is its identity; other runs may be put off.
CREATE TRIGGER tsuzuki_job_runs_fixed BEFORE UPDATE OF
    scheduled_for, trigger, arguments, retries_used, retry_of, origin_id, idempotency_key, work_key,
    defaulted_arguments, concurrency_key, event_id, covers_ticks, covers_until, blocked_by, created_at
ON tsuzuki_job_runs FOR EACH ROW
WHEN (
    (OLD.trigger = 'time' AND OLD.scheduled_for <> NEW.scheduled_for)
    OR OLD.trigger IS DISTINCT FROM NEW.trigger
    OR OLD.arguments IS DISTINCT FROM NEW.arguments
    OR OLD.retries_used IS DISTINCT FROM NEW.retries_used
    OR OLD.retry_of IS DISTINCT FROM NEW.retry_of
    OR OLD.origin_id IS DISTINCT FROM NEW.origin_id
    OR OLD.idempotency_key IS DISTINCT FROM NEW.idempotency_key
    OR OLD.work_key IS DISTINCT FROM NEW.work_key
    OR OLD.defaulted_arguments IS DISTINCT FROM NEW.defaulted_arguments
    OR OLD.concurrency_key IS DISTINCT FROM NEW.concurrency_key
    OR OLD.event_id IS DISTINCT FROM NEW.event_id
    OR OLD.covers_ticks IS DISTINCT FROM NEW.covers_ticks
    OR OLD.covers_until IS DISTINCT FROM NEW.covers_until
    OR OLD.blocked_by IS DISTINCT FROM NEW.blocked_by
    OR OLD.created_at IS DISTINCT FROM NEW.created_at
)
EXECUTE FUNCTION tsuzuki_refuse('tsuzuki: what a run was created with does not change');

CREATE TRIGGER tsuzuki_job_runs_attempt BEFORE UPDATE OF attempt ON tsuzuki_job_runs FOR EACH ROW
WHEN (
    NEW.attempt <> OLD.attempt AND NOT (
        NEW.attempt = OLD.attempt + 1 AND OLD.state = 'ORPHANED' AND NEW.state IN ('ASSIGNED', 'RUNNING')
    )
)
EXECUTE FUNCTION tsuzuki_refuse('tsuzuki: the attempt of a run grows by one when it is assigned again and only then');

-- Who holds a run changes with a move, and a start is under an epoch.
CREATE TRIGGER tsuzuki_job_runs_held BEFORE UPDATE OF assigned_worker_id, assigned_at, leader_epoch, started_at
ON tsuzuki_job_runs FOR EACH ROW
WHEN (
    CASE
        WHEN NEW.version = OLD.version AND NEW.state = OLD.state AND OLD.finished_at IS NULL
            THEN OLD.assigned_worker_id IS DISTINCT FROM NEW.assigned_worker_id
                OR OLD.assigned_at IS DISTINCT FROM NEW.assigned_at
                OR OLD.leader_epoch IS DISTINCT FROM NEW.leader_epoch
                OR OLD.started_at IS DISTINCT FROM NEW.started_at
        ELSE NEW.state = 'RUNNING' AND NEW.leader_epoch < 1
    END
)
EXECUTE FUNCTION tsuzuki_refuse('tsuzuki: worker and epoch of a run change with a move and only then');

CREATE TRIGGER tsuzuki_job_runs_keep BEFORE DELETE ON tsuzuki_job_runs FOR EACH ROW
WHEN (OLD.state NOT IN ('SUCCEEDED', 'FAILED', 'TIMED_OUT', 'CANCELED'))
EXECUTE FUNCTION tsuzuki_refuse('tsuzuki: an unfinished run cannot be deleted');

CREATE TRIGGER tsuzuki_job_runs_truncate BEFORE TRUNCATE ON tsuzuki_job_runs FOR EACH STATEMENT
EXECUTE FUNCTION tsuzuki_refuse('tsuzuki: an unfinished run cannot be deleted');


-- Every move is in the history, because it is written here and nowhere else. Two moves in one statement are two rows:
-- the leader's, then the worker's. An end whose hour is being counted, or was counted, is noted to be added to it.
CREATE FUNCTION tsuzuki_record_moves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tsuzuki_job_run_transitions
        (run_id, version, from_state, to_state, at, actor, actor_id, epoch, reason, worker_id)
    SELECT
        n.id,
        n.version - step.later,
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
    IF EXISTS (
        SELECT FROM new_rows WHERE finished_at IS NOT NULL
        AND moved_at < (SELECT closing FROM tsuzuki_run_hours_progress WHERE id = 1)
    ) THEN
        INSERT INTO tsuzuki_late_ends
        SELECT n.id FROM new_rows n JOIN old_rows o ON o.id = n.id
        WHERE o.finished_at IS NULL AND n.finished_at IS NOT NULL
        AND n.moved_at < (SELECT closing FROM tsuzuki_run_hours_progress WHERE id = 1);
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER tsuzuki_job_runs_history AFTER UPDATE ON tsuzuki_job_runs
REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT
EXECUTE FUNCTION tsuzuki_record_moves();

CREATE TRIGGER tsuzuki_job_run_transitions_insert BEFORE INSERT ON tsuzuki_job_run_transitions FOR EACH ROW
WHEN (pg_trigger_depth() = 0)
EXECUTE FUNCTION tsuzuki_refuse('tsuzuki: the history of runs is written by moves and never rewritten');

CREATE TRIGGER tsuzuki_job_run_transitions_update BEFORE UPDATE ON tsuzuki_job_run_transitions FOR EACH ROW
EXECUTE FUNCTION tsuzuki_refuse('tsuzuki: the history of runs is written by moves and never rewritten');

-- It is pruned after its run.
CREATE FUNCTION tsuzuki_keep_history() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM tsuzuki_job_runs WHERE id = OLD.run_id) THEN
        RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'check_violation';
    END IF;
    RETURN OLD;
END
$$;

CREATE TRIGGER tsuzuki_job_run_transitions_delete BEFORE DELETE ON tsuzuki_job_run_transitions FOR EACH ROW
EXECUTE FUNCTION tsuzuki_keep_history('tsuzuki: the history of runs is written by moves and never rewritten');

CREATE TRIGGER tsuzuki_job_run_transitions_truncate BEFORE TRUNCATE ON tsuzuki_job_run_transitions FOR EACH STATEMENT
EXECUTE FUNCTION tsuzuki_refuse('tsuzuki: the history of runs is written by moves and never rewritten');


-- A removed job is marked and keeps its row, because its runs refer to it.
CREATE TRIGGER tsuzuki_job_definitions_keep BEFORE DELETE OR UPDATE OF id ON tsuzuki_job_definitions FOR EACH ROW
EXECUTE FUNCTION tsuzuki_refuse('tsuzuki: the row of a job stays, because its runs do');

CREATE TRIGGER tsuzuki_job_definitions_truncate BEFORE TRUNCATE ON tsuzuki_job_definitions FOR EACH STATEMENT
EXECUTE FUNCTION tsuzuki_refuse('tsuzuki: the row of a job stays, because its runs do');


-- An event keeps its key and type, and is processed once.
CREATE TRIGGER tsuzuki_events_keep BEFORE UPDATE OF id, event_type, dedupe_key, processed_at ON tsuzuki_events FOR EACH ROW
WHEN (
    NEW.id <> OLD.id
    OR NEW.event_type <> OLD.event_type
    OR OLD.dedupe_key IS DISTINCT FROM NEW.dedupe_key
    OR (OLD.processed_at IS NOT NULL AND OLD.processed_at IS DISTINCT FROM NEW.processed_at)
)
EXECUTE FUNCTION tsuzuki_refuse('tsuzuki: an event keeps its key and its type, and once processed stays processed');


-- The audit log.
CREATE TRIGGER tsuzuki_audit_log_change BEFORE DELETE OR UPDATE ON tsuzuki_audit_log FOR EACH ROW
EXECUTE FUNCTION tsuzuki_refuse('tsuzuki: the audit log is only added to');

CREATE TRIGGER tsuzuki_audit_log_truncate BEFORE TRUNCATE ON tsuzuki_audit_log FOR EACH STATEMENT
EXECUTE FUNCTION tsuzuki_refuse('tsuzuki: the audit log is only added to');


-- Leadership is one row. Taking it raises the epoch by one; a holder changes only then.
INSERT INTO tsuzuki_leadership (id, epoch, lease_expires_at) VALUES (1, 0, '1970-01-01T00:00:00Z');

CREATE TRIGGER tsuzuki_leadership_update BEFORE UPDATE ON tsuzuki_leadership FOR EACH ROW
WHEN (
    (NEW.epoch <> OLD.epoch AND NEW.epoch <> OLD.epoch + 1)
    OR (NEW.epoch = OLD.epoch AND NEW.holder IS NOT NULL AND NEW.holder IS DISTINCT FROM OLD.holder)
)
EXECUTE FUNCTION tsuzuki_refuse('tsuzuki: the epoch only grows, and a new holder needs a new epoch');

CREATE TRIGGER tsuzuki_leadership_delete BEFORE DELETE ON tsuzuki_leadership FOR EACH ROW
EXECUTE FUNCTION tsuzuki_refuse('tsuzuki: the epoch only grows, and a new holder needs a new epoch');

CREATE TRIGGER tsuzuki_leadership_truncate BEFORE TRUNCATE ON tsuzuki_leadership FOR EACH STATEMENT
EXECUTE FUNCTION tsuzuki_refuse('tsuzuki: the epoch only grows, and a new holder needs a new epoch');

-- Past terms are written here only; the last 1,000 are kept.
CREATE FUNCTION tsuzuki_leadership_taken() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE tsuzuki_leader_terms SET ended_at = OLD.lease_expires_at WHERE epoch = OLD.epoch AND ended_at IS NULL;
    INSERT INTO tsuzuki_leader_terms (epoch, holder, taken_at) VALUES (NEW.epoch, NEW.holder, NEW.taken_at)
    ON CONFLICT (epoch) DO NOTHING;
    DELETE FROM tsuzuki_leader_terms WHERE epoch <= NEW.epoch - 1000;
    RETURN NULL;
END
$$;

CREATE TRIGGER tsuzuki_leadership_taken AFTER UPDATE ON tsuzuki_leadership FOR EACH ROW
WHEN (NEW.epoch > OLD.epoch AND NEW.holder IS NOT NULL AND NEW.taken_at IS NOT NULL)
EXECUTE FUNCTION tsuzuki_leadership_taken();

CREATE FUNCTION tsuzuki_leadership_released() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE tsuzuki_leader_terms SET ended_at = NEW.lease_expires_at WHERE epoch = NEW.epoch AND ended_at IS NULL;
    RETURN NULL;
END
$$;

CREATE TRIGGER tsuzuki_leadership_released AFTER UPDATE ON tsuzuki_leadership FOR EACH ROW
WHEN (NEW.epoch = OLD.epoch AND NEW.holder IS NULL AND OLD.holder IS NOT NULL)
EXECUTE FUNCTION tsuzuki_leadership_released();
