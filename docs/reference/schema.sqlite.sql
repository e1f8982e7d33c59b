-- Made from the scripts of the migrations by `make reference`; edit those, not this file.
--
-- The tables of a collector are created when it is first used. `tsuzuki_schema_version_<component>` and
-- `tsuzuki_schema_compatibility` say which migrations a database has; Tsuzuki creates them.

-- engine ----------------------------------------------------------------------------------------------

-- Requests that named an Idempotency-Key, with their answers.
CREATE TABLE tsuzuki_api_requests (
    actor TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    request_id TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    claim TEXT NOT NULL,
    claimed_until TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    status INTEGER,
    headers TEXT,
    body TEXT,
    CONSTRAINT tsuzuki_pk_api_requests PRIMARY KEY (actor, idempotency_key),
    CONSTRAINT tsuzuki_ck_api_requests_answer
        CHECK ((status IS NULL) = (headers IS NULL) AND (status IS NULL) = (body IS NULL))
);
CREATE INDEX tsuzuki_ix_api_requests_expires_at ON tsuzuki_api_requests (expires_at);

-- Who changed what. Rows are only added.
CREATE TABLE tsuzuki_audit_log (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    object_type TEXT NOT NULL,
    object_id TEXT NOT NULL,
    "before" TEXT,
    "after" TEXT
);
CREATE INDEX tsuzuki_ix_audit_log_at ON tsuzuki_audit_log (at);
CREATE INDEX tsuzuki_ix_audit_log_object_type_object_id ON tsuzuki_audit_log (object_type, object_id);
CREATE INDEX tsuzuki_ix_audit_log_actor_id ON tsuzuki_audit_log (actor, id);
CREATE INDEX tsuzuki_ix_audit_log_object_type_id ON tsuzuki_audit_log (object_type, id);

-- Actions on every run that a frozen filter matches.
CREATE TABLE tsuzuki_bulk_actions (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    verb TEXT NOT NULL,
    filter TEXT NOT NULL,
    ceiling_id BIGINT NOT NULL,
    matched INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    created_by TEXT NOT NULL,
    confirmed_at TEXT,
    confirmed_by TEXT,
    run_id INTEGER,
    position BIGINT DEFAULT '0' NOT NULL,
    done INTEGER DEFAULT '0' NOT NULL,
    stopped_at TEXT,
    finished_at TEXT,
    CONSTRAINT tsuzuki_ck_bulk_actions_verb CHECK (verb IN ('cancel', 'retry')),
    CONSTRAINT tsuzuki_ck_bulk_actions_matched CHECK (matched >= 0 AND done >= 0),
    CONSTRAINT tsuzuki_ck_bulk_actions_position CHECK (position >= 0 AND position <= ceiling_id),
    CONSTRAINT tsuzuki_ck_bulk_actions_confirmed
        CHECK ((confirmed_at IS NULL) = (confirmed_by IS NULL) AND (confirmed_at IS NOT NULL OR (run_id IS NULL
            AND stopped_at IS NULL AND finished_at IS NULL AND done = 0)))
);

-- Events received. An event with a key is stored once per type.
CREATE TABLE tsuzuki_events (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    event_type TEXT NOT NULL,
    payload TEXT NOT NULL,
    dedupe_key TEXT,
    created_at TEXT NOT NULL,
    processed_at TEXT,
    CONSTRAINT tsuzuki_uq_events_dedupe_key_event_type UNIQUE (dedupe_key, event_type)
);
CREATE INDEX tsuzuki_ix_events_processed_at_created_at ON tsuzuki_events (processed_at, created_at);
CREATE INDEX tsuzuki_ix_events_event_type_id ON tsuzuki_events (event_type, id);

-- Loops of the engine that fail at the moment, written by the process whose loop it is.
CREATE TABLE tsuzuki_failing_loops (
    process TEXT NOT NULL,
    loop TEXT NOT NULL,
    failures INTEGER NOT NULL,
    since TEXT NOT NULL,
    seen_at TEXT NOT NULL,
    code TEXT NOT NULL,
    error TEXT NOT NULL,
    CONSTRAINT tsuzuki_pk_failing_loops PRIMARY KEY (process, loop)
);

-- Failures with one signature, and what was acknowledged.
CREATE TABLE tsuzuki_failure_groups (
    id TEXT NOT NULL,
    signature TEXT NOT NULL,
    acknowledged_run_id INTEGER,
    acknowledged_at TEXT,
    acknowledged_by TEXT,
    CONSTRAINT tsuzuki_pk_failure_groups PRIMARY KEY (id),
    CONSTRAINT tsuzuki_ck_failure_groups_acknowledged
        CHECK ((acknowledged_run_id IS NULL) = (acknowledged_at IS NULL)
            AND (acknowledged_at IS NULL) = (acknowledged_by IS NULL))
);

-- Jobs. A removed job keeps its row, because its runs refer to it, until a job of its name is added again.
CREATE TABLE tsuzuki_job_definitions (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    source TEXT NOT NULL,
    description TEXT DEFAULT '' NOT NULL,
    handler TEXT NOT NULL,
    options TEXT NOT NULL,
    arguments TEXT NOT NULL,
    enabled BOOLEAN NOT NULL,
    schedule TEXT,
    spread_seconds FLOAT DEFAULT '0' NOT NULL,
    on_event TEXT,
    misfire TEXT NOT NULL,
    catchup_window_seconds FLOAT NOT NULL,
    concurrency_policy TEXT NOT NULL,
    max_concurrent INTEGER,
    concurrency_key TEXT,
    max_concurrent_per_key INTEGER,
    priority INTEGER NOT NULL,
    timeout_seconds FLOAT,
    retry TEXT NOT NULL,
    tags TEXT NOT NULL,
    version INTEGER NOT NULL,
    planned_until TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    deleted_at TEXT,
    CONSTRAINT tsuzuki_ck_job_definitions_source CHECK (source IN ('file', 'database')),
    CONSTRAINT tsuzuki_ck_job_definitions_misfire CHECK (misfire IN ('one', 'skip', 'all')),
    CONSTRAINT tsuzuki_ck_job_definitions_concurrency_policy
        CHECK (concurrency_policy IN ('forbid', 'allow', 'replace')),
    CONSTRAINT tsuzuki_ck_job_definitions_name CHECK (length(name) BETWEEN 1 AND 100),
    CONSTRAINT tsuzuki_ck_job_definitions_version CHECK (version >= 1),
    CONSTRAINT tsuzuki_ck_job_definitions_catchup_window_seconds CHECK (catchup_window_seconds >= 0),
    CONSTRAINT tsuzuki_ck_job_definitions_spread_seconds CHECK (spread_seconds >= 0),
    CONSTRAINT tsuzuki_ck_job_definitions_max_concurrent CHECK (max_concurrent >= 1),
    CONSTRAINT tsuzuki_ck_job_definitions_max_concurrent_per_key CHECK (max_concurrent_per_key >= 1),
    CONSTRAINT tsuzuki_ck_job_definitions_timeout_seconds CHECK (timeout_seconds > 0),
    CONSTRAINT tsuzuki_ck_job_definitions_priority CHECK (priority BETWEEN -1000 AND 1000)
);
CREATE UNIQUE INDEX tsuzuki_uq_job_definitions_name ON tsuzuki_job_definitions (name) WHERE deleted_at IS NULL;

-- Output of runs, in pieces.
CREATE TABLE tsuzuki_job_run_logs (
    run_id INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    at TEXT NOT NULL,
    stream TEXT NOT NULL,
    body TEXT NOT NULL,
    CONSTRAINT tsuzuki_pk_job_run_logs PRIMARY KEY (run_id, seq)
)
 WITHOUT ROWID;

-- History: one row for each move, written by the trigger on job_runs and deleted only after its run.
CREATE TABLE tsuzuki_job_run_transitions (
    run_id INTEGER NOT NULL,
    version INTEGER NOT NULL,
    from_state TEXT NOT NULL,
    to_state TEXT NOT NULL,
    at TEXT NOT NULL,
    actor TEXT NOT NULL,
    actor_id TEXT NOT NULL,
    epoch BIGINT,
    reason TEXT,
    worker_id TEXT,
    seq INTEGER,
    CONSTRAINT tsuzuki_pk_job_run_transitions PRIMARY KEY (run_id, version)
)
 WITHOUT ROWID;
CREATE INDEX tsuzuki_ix_job_run_transitions_at ON tsuzuki_job_run_transitions (at);
CREATE INDEX tsuzuki_ix_job_run_transitions_seq ON tsuzuki_job_run_transitions (seq);

-- Ends stored when their hour was being counted, or had been. They are added to it later.
CREATE TABLE tsuzuki_late_ends (
    run_id INTEGER NOT NULL,
    CONSTRAINT tsuzuki_pk_late_ends PRIMARY KEY (run_id)
);

-- Past and current terms, written by triggers on leadership only.
CREATE TABLE tsuzuki_leader_terms (
    epoch BIGINT NOT NULL,
    holder TEXT NOT NULL,
    taken_at TEXT NOT NULL,
    ended_at TEXT,
    CONSTRAINT tsuzuki_pk_leader_terms PRIMARY KEY (epoch)
);

-- The one row that says who leads. `epoch` grows with every term, and every write of a leader carries it.
CREATE TABLE tsuzuki_leadership (
    id INTEGER NOT NULL,
    epoch BIGINT NOT NULL,
    holder TEXT,
    lease_expires_at TEXT NOT NULL,
    taken_at TEXT,
    lease_seconds FLOAT DEFAULT 600 NOT NULL,
    bulk_cancels BIGINT DEFAULT 0 NOT NULL,
    CONSTRAINT tsuzuki_pk_leadership PRIMARY KEY (id),
    CONSTRAINT tsuzuki_ck_leadership_single CHECK (id = 1),
    CONSTRAINT tsuzuki_ck_leadership_epoch CHECK (epoch >= 0),
    CONSTRAINT tsuzuki_uq_leadership_epoch UNIQUE (epoch)
);
CREATE UNIQUE INDEX tsuzuki_ix_leadership_holder ON tsuzuki_leadership (holder);
CREATE UNIQUE INDEX tsuzuki_ix_leadership_bulk_cancels ON tsuzuki_leadership (bulk_cancels);

-- Wake-ups on SQLite, where PostgreSQL has NOTIFY: how often each channel was notified.
CREATE TABLE tsuzuki_notices (
    audience TEXT NOT NULL,
    stamp INTEGER NOT NULL,
    CONSTRAINT tsuzuki_pk_notices PRIMARY KEY (audience)
);

-- Links by which the owner of a server without users signs in.
CREATE TABLE tsuzuki_owner_links (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    link_hash TEXT NOT NULL,
    created_at TEXT NOT NULL,
    created_by TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    opened_at TEXT,
    session_hash TEXT,
    CONSTRAINT tsuzuki_uq_owner_links_link_hash UNIQUE (link_hash),
    CONSTRAINT tsuzuki_uq_owner_links_session_hash UNIQUE (session_hash),
    CONSTRAINT tsuzuki_ck_owner_links_link_hash CHECK (length(link_hash) = 64),
    CONSTRAINT tsuzuki_ck_owner_links_session_hash CHECK (length(session_hash) = 64),
    CONSTRAINT tsuzuki_ck_owner_links_opened CHECK ((opened_at IS NULL) = (session_hash IS NULL))
);

-- Every deleted transition is of this moment or older, and has this `seq` or a lower one.
CREATE TABLE tsuzuki_pruned_history (
    id INTEGER NOT NULL,
    until TEXT NOT NULL,
    seq INTEGER DEFAULT '0' NOT NULL,
    CONSTRAINT tsuzuki_pk_pruned_history PRIMARY KEY (id),
    CONSTRAINT tsuzuki_ck_pruned_history_single CHECK (id = 1)
);

-- Used by triggers on SQLite to refuse a REPLACE. One row; none on PostgreSQL, which has no REPLACE.
CREATE TABLE tsuzuki_replace_checks (
    id INTEGER NOT NULL,
    is_replacing BOOLEAN NOT NULL,
    CONSTRAINT tsuzuki_pk_replace_checks PRIMARY KEY (id)
);

-- Runs to be canceled as soon as their row is free. No foreign key: its check would wait for the lock.
CREATE TABLE tsuzuki_run_cancel_requests (
    run_id INTEGER NOT NULL,
    reason TEXT NOT NULL,
    requested_by TEXT NOT NULL,
    requested_at TEXT NOT NULL,
    CONSTRAINT tsuzuki_pk_run_cancel_requests PRIMARY KEY (run_id),
    CONSTRAINT tsuzuki_ck_run_cancel_requests_reason CHECK (reason IN ('operator', 'replaced'))
);

-- The group that a failed run belongs to; deleted after its run.
CREATE TABLE tsuzuki_run_failures (
    run_id INTEGER NOT NULL,
    group_id TEXT NOT NULL,
    job_definition_id INTEGER NOT NULL,
    failed_at TEXT NOT NULL,
    CONSTRAINT tsuzuki_pk_run_failures PRIMARY KEY (run_id)
);
CREATE INDEX tsuzuki_ix_run_failures_group_id_run_id ON tsuzuki_run_failures (group_id, run_id);
CREATE INDEX tsuzuki_ix_run_failures_failed_at ON tsuzuki_run_failures (failed_at);
CREATE INDEX tsuzuki_ix_run_failures_grouped ON tsuzuki_run_failures (failed_at, group_id, job_definition_id, run_id);

-- Ends of runs by hour, job, outcome and duration.
CREATE TABLE tsuzuki_run_hours (
    hour TEXT NOT NULL,
    job_definition_id INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    runs INTEGER NOT NULL,
    seconds FLOAT NOT NULL,
    CONSTRAINT tsuzuki_pk_run_hours PRIMARY KEY (hour, job_definition_id, outcome, bucket),
    CONSTRAINT tsuzuki_ck_run_hours_outcome CHECK (outcome IN ('SUCCEEDED', 'FAILED', 'TIMED_OUT', 'CANCELED', 'SKIPPED')),
    CONSTRAINT tsuzuki_ck_run_hours_bucket CHECK (bucket >= 0),
    CONSTRAINT tsuzuki_ck_run_hours_runs CHECK (runs >= 1)
)
 WITHOUT ROWID;
CREATE INDEX tsuzuki_ix_run_hours_job_definition_id ON tsuzuki_run_hours (job_definition_id, hour);

-- Up to which hour runs are counted.
CREATE TABLE tsuzuki_run_hours_progress (
    id INTEGER NOT NULL,
    until TEXT NOT NULL,
    closing TEXT,
    corrections INTEGER DEFAULT '0' NOT NULL,
    CONSTRAINT tsuzuki_pk_run_hours_progress PRIMARY KEY (id),
    CONSTRAINT tsuzuki_ck_run_hours_progress_single CHECK (id = 1)
);

-- Addresses of lists, with their filters, under a name of their owner.
CREATE TABLE tsuzuki_saved_views (
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    address TEXT NOT NULL,
    created_at TEXT NOT NULL,
    CONSTRAINT tsuzuki_pk_saved_views PRIMARY KEY (owner, name),
    CONSTRAINT tsuzuki_ck_saved_views_address CHECK (address LIKE '/%')
);

-- Settings that differ from their defaults.
CREATE TABLE tsuzuki_settings (
    "key" TEXT NOT NULL,
    value TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    updated_by TEXT NOT NULL,
    CONSTRAINT tsuzuki_pk_settings PRIMARY KEY ("key")
);

-- The code by which the first admin is created; at most one row.
CREATE TABLE tsuzuki_setup_codes (
    id INTEGER NOT NULL,
    code_hash TEXT NOT NULL,
    created_at TEXT NOT NULL,
    created_by TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    used_at TEXT,
    CONSTRAINT tsuzuki_pk_setup_codes PRIMARY KEY (id),
    CONSTRAINT tsuzuki_ck_setup_codes_single CHECK (id = 1),
    CONSTRAINT tsuzuki_ck_setup_codes_code_hash CHECK (length(code_hash) = 64)
);

-- How often a name or an address was tried in its window, by the hash of either.
CREATE TABLE tsuzuki_sign_in_attempts (
    key_hash TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    window_ends_at TEXT NOT NULL,
    CONSTRAINT tsuzuki_pk_sign_in_attempts PRIMARY KEY (key_hash),
    CONSTRAINT tsuzuki_ck_sign_in_attempts_key_hash CHECK (length(key_hash) = 64),
    CONSTRAINT tsuzuki_ck_sign_in_attempts_attempts CHECK (attempts >= 1)
);
CREATE INDEX tsuzuki_ix_sign_in_attempts_window_ends_at ON tsuzuki_sign_in_attempts (window_ends_at);

-- Secrets that every process on this database signs with.
CREATE TABLE tsuzuki_signing_keys (
    name TEXT NOT NULL,
    secret TEXT NOT NULL,
    created_at TEXT NOT NULL,
    CONSTRAINT tsuzuki_pk_signing_keys PRIMARY KEY (name)
);

-- People who sign in.
CREATE TABLE tsuzuki_users (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    password_hash TEXT NOT NULL,
    password_changed_at TEXT NOT NULL,
    created_at TEXT NOT NULL,
    created_by TEXT NOT NULL,
    disabled_at TEXT,
    last_sign_in_at TEXT,
    CONSTRAINT tsuzuki_uq_users_name UNIQUE (name),
    CONSTRAINT tsuzuki_ck_users_role CHECK (role IN ('viewer', 'operator', 'admin')),
    CONSTRAINT tsuzuki_ck_users_name CHECK (length(name) BETWEEN 1 AND 100 AND name = lower(name)),
    CONSTRAINT tsuzuki_ck_users_password_hash CHECK (length(password_hash) > 0)
);

-- Processes that execute runs, with what they can execute and when they were last heard from.
CREATE TABLE tsuzuki_workers (
    id TEXT NOT NULL,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    state TEXT NOT NULL,
    detach_reason TEXT,
    capacity INTEGER NOT NULL,
    tags TEXT NOT NULL,
    only_job TEXT,
    only_run BIGINT,
    abilities TEXT,
    software_version TEXT NOT NULL,
    started_at TEXT NOT NULL,
    heartbeat_at TEXT NOT NULL,
    ttl_seconds FLOAT,
    grace_seconds FLOAT,
    silence_recorded_at TEXT,
    drain_ordered_at TEXT,
    CONSTRAINT tsuzuki_pk_workers PRIMARY KEY (id),
    CONSTRAINT tsuzuki_ck_workers_state CHECK (state IN ('ATTACHED', 'DRAINING', 'DETACHED', 'GONE')),
    CONSTRAINT tsuzuki_ck_workers_detach_reason CHECK (detach_reason IN ('silent', 'operator')),
    CONSTRAINT tsuzuki_ck_workers_capacity CHECK (capacity >= 0),
    CONSTRAINT tsuzuki_ck_workers_detached CHECK ((state = 'DETACHED') = (detach_reason IS NOT NULL))
);

-- Credentials of programs. A revoked token keeps its row and frees its name.
CREATE TABLE tsuzuki_api_tokens (
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    scopes TEXT,
    secret_hash TEXT NOT NULL,
    user_id INTEGER,
    created_at TEXT NOT NULL,
    created_by TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    last_used_at TEXT,
    revoked_at TEXT,
    revoked_by TEXT,
    parent_id TEXT,
    CONSTRAINT tsuzuki_pk_api_tokens PRIMARY KEY (id),
    CONSTRAINT tsuzuki_ck_api_tokens_role CHECK (role IN ('viewer', 'operator', 'admin')),
    CONSTRAINT tsuzuki_ck_api_tokens_name CHECK (length(name) BETWEEN 1 AND 100),
    CONSTRAINT tsuzuki_ck_api_tokens_secret_hash CHECK (length(secret_hash) = 64),
    CONSTRAINT tsuzuki_ck_api_tokens_expires_at CHECK (expires_at > created_at),
    CONSTRAINT tsuzuki_ck_api_tokens_revoked CHECK ((revoked_at IS NULL) = (revoked_by IS NULL)),
    CONSTRAINT tsuzuki_fk_api_tokens_user_id FOREIGN KEY(user_id) REFERENCES tsuzuki_users (id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX tsuzuki_uq_api_tokens_name ON tsuzuki_api_tokens (name) WHERE revoked_at IS NULL;
CREATE INDEX tsuzuki_ix_api_tokens_user_id ON tsuzuki_api_tokens (user_id);
CREATE INDEX tsuzuki_ix_api_tokens_parent_id ON tsuzuki_api_tokens (parent_id);

-- What a bulk action did to each run.
CREATE TABLE tsuzuki_bulk_action_runs (
    bulk_id INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    result TEXT NOT NULL,
    new_run_id INTEGER,
    CONSTRAINT tsuzuki_pk_bulk_action_runs PRIMARY KEY (bulk_id, run_id),
    CONSTRAINT tsuzuki_ck_bulk_action_runs_result
        CHECK (result IN ('canceled', 'requested', 'retried', 'ended before', 'retried before')),
    CONSTRAINT tsuzuki_ck_bulk_action_runs_new_run_id CHECK ((result = 'retried') = (new_run_id IS NOT NULL)),
    CONSTRAINT tsuzuki_fk_bulk_action_runs_bulk_id
        FOREIGN KEY(bulk_id) REFERENCES tsuzuki_bulk_actions (id) ON DELETE CASCADE
)
 WITHOUT ROWID;

-- Runs. Their rules are in the triggers; `moved_*` is the last move, stored so that a trigger can write the history.
CREATE TABLE tsuzuki_job_runs (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    job_definition_id INTEGER NOT NULL,
    state TEXT NOT NULL,
    version INTEGER NOT NULL,
    "trigger" TEXT NOT NULL,
    scheduled_for TEXT NOT NULL,
    priority INTEGER NOT NULL,
    arguments TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    retries_used INTEGER NOT NULL,
    orphan_count INTEGER DEFAULT '0' NOT NULL,
    orphans_free INTEGER DEFAULT '0' NOT NULL,
    losses INTEGER DEFAULT '0' NOT NULL,
    losses_free INTEGER DEFAULT '0' NOT NULL,
    retry_of INTEGER,
    origin_id INTEGER,
    idempotency_key TEXT,
    work_key TEXT,
    defaulted_arguments TEXT,
    concurrency_key TEXT,
    event_id INTEGER,
    covers_ticks INTEGER DEFAULT '1' NOT NULL,
    covers_until TEXT,
    assigned_worker_id TEXT,
    assigned_at TEXT,
    leader_epoch BIGINT,
    started_at TEXT,
    finished_at TEXT,
    continuation_state TEXT DEFAULT 'NONE' NOT NULL,
    continuation_check_deadline_at TEXT,
    reason TEXT,
    error TEXT,
    result TEXT,
    progress_processed BIGINT DEFAULT '0' NOT NULL,
    progress_total BIGINT,
    progress_at TEXT,
    progress_number BIGINT,
    log_ref TEXT,
    created_at TEXT NOT NULL,
    moved_at TEXT,
    moved_as TEXT,
    moved_by TEXT,
    moved_epoch BIGINT,
    blocked_by INTEGER,
    CONSTRAINT tsuzuki_ck_job_runs_state
        CHECK (state IN ('PENDING', 'ASSIGNED', 'RUNNING', 'ORPHANED', 'SUCCEEDED', 'FAILED', 'TIMED_OUT',
            'CANCELED')),
    CONSTRAINT tsuzuki_ck_job_runs_trigger CHECK (trigger IN ('time', 'event', 'manual', 'retry')),
    CONSTRAINT tsuzuki_ck_job_runs_reason
        CHECK (reason IN ('handler_failed', 'handler_unknown', 'crashed', 'memory_limit', 'arguments_invalid',
            'timeout', 'worker_lost', 'worker_silent', 'worker_shutdown', 'not_confirmed', 'orphan_limit',
            'late', 'overlap', 'replaced', 'operator', 'job_deleted', 'schedule_changed', 'job_disabled')),
    CONSTRAINT tsuzuki_ck_job_runs_moved_as CHECK (moved_as IN ('leader', 'worker', 'operator')),
    CONSTRAINT tsuzuki_ck_job_runs_continuation_state CHECK (continuation_state IN ('NONE', 'CONFIRMING')),
    CONSTRAINT tsuzuki_ck_job_runs_version CHECK (version >= 1),
    CONSTRAINT tsuzuki_ck_job_runs_attempt CHECK (attempt >= 1),
    CONSTRAINT tsuzuki_ck_job_runs_retries_used CHECK (retries_used >= 0 AND retries_used < attempt),
    CONSTRAINT tsuzuki_ck_job_runs_orphan_count CHECK (orphan_count >= 0),
    CONSTRAINT tsuzuki_ck_job_runs_orphans_free CHECK (orphans_free >= 0),
    CONSTRAINT tsuzuki_ck_job_runs_losses CHECK (losses >= 0),
    CONSTRAINT tsuzuki_ck_job_runs_losses_free CHECK (losses_free >= 0),
    CONSTRAINT tsuzuki_ck_job_runs_covers_ticks CHECK (covers_ticks >= 1),
    CONSTRAINT tsuzuki_ck_job_runs_progress CHECK (progress_processed >= 0 AND progress_total >= 0),
    CONSTRAINT tsuzuki_ck_job_runs_pending
        CHECK (state <> 'PENDING' OR (assigned_worker_id IS NULL AND started_at IS NULL AND finished_at IS NULL)),
    CONSTRAINT tsuzuki_ck_job_runs_assigned
        CHECK (state <> 'ASSIGNED' OR (assigned_worker_id IS NOT NULL AND assigned_at IS NOT NULL
            AND started_at IS NULL AND finished_at IS NULL)),
    CONSTRAINT tsuzuki_ck_job_runs_running
        CHECK (state <> 'RUNNING' OR (assigned_worker_id IS NOT NULL AND started_at IS NOT NULL
            AND leader_epoch IS NOT NULL AND finished_at IS NULL)),
    CONSTRAINT tsuzuki_ck_job_runs_orphaned
        CHECK (state <> 'ORPHANED' OR (orphan_count >= 1 AND started_at IS NULL AND finished_at IS NULL)),
    CONSTRAINT tsuzuki_ck_job_runs_executed
        CHECK (state NOT IN ('SUCCEEDED', 'TIMED_OUT') OR (started_at IS NOT NULL AND finished_at IS NOT NULL)),
    CONSTRAINT tsuzuki_ck_job_runs_ended_for_a_reason
        CHECK (state NOT IN ('FAILED', 'CANCELED', 'TIMED_OUT') OR (reason IS NOT NULL AND finished_at IS NOT NULL)),
    CONSTRAINT tsuzuki_ck_job_runs_continuation
        CHECK ((continuation_state = 'CONFIRMING') = (continuation_check_deadline_at IS NOT NULL)
            AND (continuation_state = 'NONE' OR state = 'RUNNING')),
    CONSTRAINT tsuzuki_uq_job_runs_idempotency_key UNIQUE (idempotency_key),
    CONSTRAINT tsuzuki_fk_job_runs_job_definition_id
        FOREIGN KEY(job_definition_id) REFERENCES tsuzuki_job_definitions (id)
);
CREATE INDEX tsuzuki_ix_job_runs_due ON tsuzuki_job_runs (priority DESC, scheduled_for, id)
    WHERE state IN ('PENDING', 'ORPHANED');
CREATE UNIQUE INDEX tsuzuki_uq_job_runs_job_definition_id_scheduled_for ON tsuzuki_job_runs (job_definition_id, scheduled_for)
    WHERE trigger = 'time';
CREATE INDEX tsuzuki_ix_job_runs_live ON tsuzuki_job_runs (job_definition_id) WHERE finished_at IS NULL;
CREATE INDEX tsuzuki_ix_job_runs_ended_badly ON tsuzuki_job_runs (id)
    WHERE state IN ('FAILED', 'TIMED_OUT', 'CANCELED');
CREATE INDEX tsuzuki_ix_job_runs_waiting_by_key ON tsuzuki_job_runs (job_definition_id, concurrency_key, priority DESC, scheduled_for, id)
    WHERE state IN ('PENDING', 'ORPHANED') AND (concurrency_key IS NULL OR length(concurrency_key) <= 200);
CREATE INDEX tsuzuki_ix_job_runs_waiting_long_key ON tsuzuki_job_runs (job_definition_id, priority DESC, scheduled_for, id)
    WHERE state IN ('PENDING', 'ORPHANED') AND length(concurrency_key) > 200;
CREATE INDEX tsuzuki_ix_job_runs_ended_by_job ON tsuzuki_job_runs (job_definition_id, id)
    WHERE finished_at IS NOT NULL;
CREATE INDEX tsuzuki_ix_job_runs_ended_badly_by_state ON tsuzuki_job_runs (state, id)
    WHERE state IN ('FAILED', 'TIMED_OUT', 'CANCELED');
CREATE INDEX tsuzuki_ix_job_runs_reason ON tsuzuki_job_runs (reason, id) WHERE reason IS NOT NULL;
CREATE INDEX tsuzuki_ix_job_runs_event_id ON tsuzuki_job_runs (event_id, id) WHERE event_id IS NOT NULL;
CREATE INDEX tsuzuki_ix_job_runs_retry_of ON tsuzuki_job_runs (retry_of, id) WHERE retry_of IS NOT NULL;
CREATE INDEX tsuzuki_ix_job_runs_origin_id ON tsuzuki_job_runs (origin_id, id) WHERE origin_id IS NOT NULL;
CREATE INDEX tsuzuki_ix_job_runs_state_scheduled_for ON tsuzuki_job_runs (state, scheduled_for)
    WHERE state IN ('PENDING', 'ORPHANED') OR state = 'PENDING' OR state = 'ORPHANED';
CREATE INDEX tsuzuki_ix_job_runs_assigned_worker_id_state ON tsuzuki_job_runs (assigned_worker_id, state)
    WHERE state IN ('ASSIGNED', 'RUNNING') OR state = 'ASSIGNED' OR state = 'RUNNING';
CREATE INDEX tsuzuki_ix_job_runs_created_at ON tsuzuki_job_runs (created_at);

-- Browsers that are signed in.
CREATE TABLE tsuzuki_user_sessions (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    secret_hash TEXT NOT NULL,
    user_id INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    last_seen_at TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    address TEXT,
    user_agent TEXT,
    CONSTRAINT tsuzuki_uq_user_sessions_secret_hash UNIQUE (secret_hash),
    CONSTRAINT tsuzuki_ck_user_sessions_secret_hash CHECK (length(secret_hash) = 64),
    CONSTRAINT tsuzuki_ck_user_sessions_expires_at CHECK (expires_at > created_at),
    CONSTRAINT tsuzuki_fk_user_sessions_user_id FOREIGN KEY(user_id) REFERENCES tsuzuki_users (id) ON DELETE CASCADE
);
CREATE INDEX tsuzuki_ix_user_sessions_user_id ON tsuzuki_user_sessions (user_id);

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

-- A process that was killed is recorded as dead by another one of its machine.
ALTER TABLE tsuzuki_workers ADD COLUMN process_name TEXT;
ALTER TABLE tsuzuki_workers ADD COLUMN died_at TEXT;

-- A request for the live stack of a run, and its worker's answer. Deleted a minute later, with another request.
CREATE TABLE tsuzuki_run_stacks (
    run_id INTEGER NOT NULL,
    requested_at TEXT NOT NULL,
    stack TEXT,
    dumped_at TEXT,
    CONSTRAINT tsuzuki_pk_run_stacks PRIMARY KEY (run_id),
    CONSTRAINT tsuzuki_ck_run_stacks_dumped CHECK ((stack IS NULL) = (dumped_at IS NULL))
);

-- books -----------------------------------------------------------------------------------------------

-- Where each job continues in each set of queries.
CREATE TABLE collect_cursor (
    job_name TEXT NOT NULL,
    query_set_hash TEXT NOT NULL,
    start_index INTEGER DEFAULT 0 NOT NULL,
    is_exhausted INTEGER DEFAULT 0 NOT NULL,
    last_updated_at TEXT NOT NULL DEFAULT (datetime('now')),
    CONSTRAINT tsuzuki_pk_collect_cursor PRIMARY KEY (job_name, query_set_hash)
);

-- The outbox: one row per mail, written before anything is sent.
CREATE TABLE tsuzuki_book_mails (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    job_name TEXT NOT NULL,
    message_id TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at TEXT NOT NULL,
    changed_at TEXT NOT NULL,
    sent_by_run BIGINT,
    error TEXT,
    CONSTRAINT tsuzuki_ck_book_mails_state CHECK (state IN ('intended', 'sending', 'sent', 'refused', 'unsettled')),
    CONSTRAINT tsuzuki_uq_book_mails_message_id UNIQUE (message_id)
);
CREATE INDEX tsuzuki_ix_book_mails_job_name_state ON tsuzuki_book_mails (job_name, state);
CREATE INDEX tsuzuki_ix_book_mails_sent_by_run ON tsuzuki_book_mails (sent_by_run, id);

-- Every volume ever seen, once.
CREATE TABLE tsuzuki_books (
    volume_id TEXT NOT NULL,
    isbn13 TEXT,
    title TEXT NOT NULL,
    subtitle TEXT,
    authors TEXT NOT NULL,
    publisher TEXT,
    published_date TEXT,
    description TEXT,
    language TEXT,
    print_type TEXT,
    page_count INTEGER,
    info_link TEXT,
    content_hash TEXT NOT NULL,
    first_seen_at TEXT NOT NULL,
    last_seen_at TEXT NOT NULL,
    CONSTRAINT tsuzuki_pk_books PRIMARY KEY (volume_id)
);

-- Calls made, or about to be made, on each day of the quota's zone.
CREATE TABLE tsuzuki_books_quota_days (
    day TEXT NOT NULL,
    calls INTEGER NOT NULL,
    refused_at TEXT,
    CONSTRAINT tsuzuki_pk_books_quota_days PRIMARY KEY (day),
    CONSTRAINT tsuzuki_ck_books_quota_days_calls CHECK (calls >= 0)
);

-- The options that shaped the list the cursor counts in, and the run that holds it.
CREATE TABLE tsuzuki_books_searches (
    job_name TEXT NOT NULL,
    query_set_hash TEXT NOT NULL,
    list_options TEXT NOT NULL,
    held_by_run BIGINT,
    CONSTRAINT tsuzuki_pk_books_searches PRIMARY KEY (job_name, query_set_hash)
);

-- Which volume went into which mail; once for each job.
CREATE TABLE tsuzuki_book_deliveries (
    job_name TEXT NOT NULL,
    volume_id TEXT NOT NULL,
    mail_id BIGINT NOT NULL,
    position INTEGER NOT NULL,
    CONSTRAINT tsuzuki_pk_book_deliveries PRIMARY KEY (job_name, volume_id),
    CONSTRAINT tsuzuki_fk_book_deliveries_volume_id FOREIGN KEY(volume_id) REFERENCES tsuzuki_books (volume_id),
    CONSTRAINT tsuzuki_fk_book_deliveries_mail_id FOREIGN KEY(mail_id) REFERENCES tsuzuki_book_mails (id)
);
CREATE INDEX tsuzuki_ix_book_deliveries_mail_id ON tsuzuki_book_deliveries (mail_id, position);

-- Which job found which volume, and when.
CREATE TABLE tsuzuki_book_finds (
    job_name TEXT NOT NULL,
    volume_id TEXT NOT NULL,
    found_at TEXT NOT NULL,
    found_by_run BIGINT NOT NULL,
    list_index INTEGER NOT NULL,
    CONSTRAINT tsuzuki_pk_book_finds PRIMARY KEY (job_name, volume_id),
    CONSTRAINT tsuzuki_fk_book_finds_volume_id FOREIGN KEY(volume_id) REFERENCES tsuzuki_books (volume_id)
)
 WITHOUT ROWID;

-- commits ---------------------------------------------------------------------------------------------

-- Bulk collections. At most one is running.
CREATE TABLE bulk_collection_runs (
    run_id TEXT NOT NULL,
    started_at_utc TEXT NOT NULL,
    completed_at_utc TEXT,
    status TEXT NOT NULL,
    total_targets INTEGER NOT NULL,
    completed_count INTEGER DEFAULT '0' NOT NULL,
    failed_count INTEGER DEFAULT '0' NOT NULL,
    success_count INTEGER DEFAULT '0' NOT NULL,
    CONSTRAINT tsuzuki_pk_bulk_collection_runs PRIMARY KEY (run_id),
    CONSTRAINT tsuzuki_ck_bulk_collection_runs_status CHECK (status IN ('running', 'completed', 'cancelled')),
    CONSTRAINT tsuzuki_ck_bulk_collection_runs_run_id
        CHECK (run_id LIKE '________-____-4___-____-____________'
            AND substr(run_id, 20, 1) IN ('8', '9', 'a', 'b') AND length(replace(run_id, '-', '')) = 32
            AND ltrim(run_id, '0123456789abcdef-') = ''),
    CONSTRAINT tsuzuki_ck_bulk_collection_runs_counts
        CHECK (completed_count >= 0 AND failed_count >= 0 AND completed_count + failed_count <= total_targets),
    CONSTRAINT tsuzuki_ck_bulk_collection_runs_completed_count CHECK (completed_count = success_count),
    CONSTRAINT tsuzuki_ck_bulk_collection_runs_completed_at_utc
        CHECK ((status = 'running') = (completed_at_utc IS NULL)),
    CONSTRAINT tsuzuki_ck_bulk_collection_runs_completed
        CHECK (status <> 'completed' OR completed_count + failed_count = total_targets)
);
CREATE INDEX idx_bulk_runs_status_started ON bulk_collection_runs (status, started_at_utc);
CREATE UNIQUE INDEX tsuzuki_uq_bulk_runs_running ON bulk_collection_runs (status) WHERE status = 'running';

-- Where commits come from: GitLab projects and Git repositories.
CREATE TABLE projects (
    project_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    location TEXT NOT NULL,
    remote_id INTEGER,
    path TEXT NOT NULL,
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    default_branch TEXT,
    is_archived BOOLEAN NOT NULL,
    added_at_utc TEXT NOT NULL,
    synced_at_utc TEXT NOT NULL,
    CONSTRAINT tsuzuki_ck_projects_kind CHECK (kind IN ('gitlab', 'git')),
    CONSTRAINT tsuzuki_ck_projects_remote_id CHECK ((kind = 'gitlab') = (remote_id IS NOT NULL))
);
CREATE UNIQUE INDEX tsuzuki_uq_projects_remote ON projects (location, remote_id) WHERE kind = 'gitlab';
CREATE UNIQUE INDEX tsuzuki_uq_projects_repository ON projects (location) WHERE kind = 'git';

-- Lines added and removed by each commit in each path.
CREATE TABLE tsuzuki_commit_path_counts (
    project_id INTEGER NOT NULL,
    commit_sha TEXT NOT NULL,
    path_id INTEGER NOT NULL,
    additions INTEGER NOT NULL,
    deletions INTEGER NOT NULL,
    CONSTRAINT tsuzuki_pk_commit_path_counts PRIMARY KEY (project_id, commit_sha, path_id),
    CONSTRAINT tsuzuki_ck_commit_path_counts_counts CHECK (additions >= 0 AND deletions >= 0)
)
 WITHOUT ROWID;

-- How each target of a bulk collection went.
CREATE TABLE bulk_collection_results (
    run_id TEXT NOT NULL,
    project_id INTEGER NOT NULL,
    branch_name TEXT NOT NULL,
    status TEXT NOT NULL,
    new_commits_count INTEGER,
    error_message TEXT,
    processed_at_utc TEXT,
    CONSTRAINT tsuzuki_pk_bulk_collection_results PRIMARY KEY (run_id, project_id, branch_name),
    CONSTRAINT tsuzuki_ck_bulk_collection_results_status CHECK (status IN ('pending', 'success', 'failed')),
    CONSTRAINT tsuzuki_ck_bulk_collection_results_success
        CHECK ((status = 'success') = (new_commits_count IS NOT NULL)),
    CONSTRAINT tsuzuki_ck_bulk_collection_results_failed CHECK ((status = 'failed') = (error_message IS NOT NULL)),
    CONSTRAINT tsuzuki_ck_bulk_collection_results_pending CHECK ((status = 'pending') = (processed_at_utc IS NULL)),
    CONSTRAINT tsuzuki_fk_bulk_collection_results_run_id
        FOREIGN KEY(run_id) REFERENCES bulk_collection_runs (run_id) ON DELETE CASCADE
);
CREATE INDEX idx_bulk_results_run_status ON bulk_collection_results (run_id, status);
CREATE INDEX idx_bulk_results_target_status ON bulk_collection_results (project_id, branch_name, status);

-- Commits of each branch that is collected.
CREATE TABLE commits (
    project_id INTEGER NOT NULL,
    branch_name TEXT NOT NULL,
    sha TEXT NOT NULL,
    author_name TEXT NOT NULL,
    author_email TEXT NOT NULL,
    committed_date_utc TEXT NOT NULL,
    additions INTEGER NOT NULL,
    deletions INTEGER NOT NULL,
    CONSTRAINT tsuzuki_uq_commits_project_id_branch_name_sha UNIQUE (project_id, branch_name, sha),
    CONSTRAINT tsuzuki_fk_commits_project_id FOREIGN KEY(project_id) REFERENCES projects (project_id)
);
CREATE INDEX tsuzuki_idx_commits_target_committed ON commits (project_id, branch_name, committed_date_utc);

-- The run of the engine that works on a bulk collection; any other is fenced.
CREATE TABLE tsuzuki_bulk_collection_owners (
    run_id TEXT NOT NULL,
    job_run_id INTEGER NOT NULL,
    retry_of TEXT,
    CONSTRAINT tsuzuki_pk_bulk_collection_owners PRIMARY KEY (run_id),
    CONSTRAINT tsuzuki_fk_bulk_collection_owners_run_id
        FOREIGN KEY(run_id) REFERENCES bulk_collection_runs (run_id) ON DELETE CASCADE
);

-- Parents that a source was asked for and does not have.
CREATE TABLE tsuzuki_commit_absences (
    project_id INTEGER NOT NULL,
    commit_sha TEXT NOT NULL,
    run_id TEXT NOT NULL,
    CONSTRAINT tsuzuki_pk_commit_absences PRIMARY KEY (project_id, commit_sha),
    CONSTRAINT tsuzuki_fk_commit_absences_project_id FOREIGN KEY(project_id) REFERENCES projects (project_id)
);

-- Authors as written in the commits of a project.
CREATE TABLE tsuzuki_commit_authors (
    author_id INTEGER NOT NULL,
    project_id INTEGER NOT NULL,
    author_email TEXT NOT NULL,
    author_name TEXT NOT NULL,
    CONSTRAINT tsuzuki_pk_commit_authors PRIMARY KEY (author_id),
    CONSTRAINT tsuzuki_uq_commit_authors_project_id_author_email_author_name
        UNIQUE (project_id, author_email, author_name),
    CONSTRAINT tsuzuki_fk_commit_authors_project_id FOREIGN KEY(project_id) REFERENCES projects (project_id)
);

-- The file `.mailmap` of the default branch at `head_sha`; empty if there is none.
CREATE TABLE tsuzuki_commit_mailmaps (
    project_id INTEGER NOT NULL,
    head_sha TEXT NOT NULL,
    content TEXT NOT NULL,
    CONSTRAINT tsuzuki_pk_commit_mailmaps PRIMARY KEY (project_id),
    CONSTRAINT tsuzuki_fk_commit_mailmaps_project_id FOREIGN KEY(project_id) REFERENCES projects (project_id)
);

-- The parents of each commit of a project, ids with one space between.
CREATE TABLE tsuzuki_commit_parents (
    project_id INTEGER NOT NULL,
    commit_sha TEXT NOT NULL,
    parent_count INTEGER NOT NULL,
    parents TEXT NOT NULL,
    CONSTRAINT tsuzuki_pk_commit_parents PRIMARY KEY (project_id, commit_sha),
    CONSTRAINT tsuzuki_ck_commit_parents_parent_count CHECK (parent_count >= 0),
    CONSTRAINT tsuzuki_fk_commit_parents_project_id FOREIGN KEY(project_id) REFERENCES projects (project_id)
)
 WITHOUT ROWID;

-- Paths of a project.
CREATE TABLE tsuzuki_commit_paths (
    path_id INTEGER NOT NULL,
    project_id INTEGER NOT NULL,
    path TEXT NOT NULL,
    CONSTRAINT tsuzuki_pk_commit_paths PRIMARY KEY (path_id),
    CONSTRAINT tsuzuki_uq_commit_paths_project_id_path UNIQUE (project_id, path),
    CONSTRAINT tsuzuki_fk_commit_paths_project_id FOREIGN KEY(project_id) REFERENCES projects (project_id)
);

-- How many commits of a branch are counted in commit_months.
CREATE TABLE tsuzuki_commit_rollups (
    rollup_id INTEGER NOT NULL,
    project_id INTEGER NOT NULL,
    branch_name TEXT NOT NULL,
    commits INTEGER NOT NULL,
    CONSTRAINT tsuzuki_pk_commit_rollups PRIMARY KEY (rollup_id),
    CONSTRAINT tsuzuki_uq_commit_rollups_project_id_branch_name UNIQUE (project_id, branch_name),
    CONSTRAINT tsuzuki_fk_commit_rollups_project_id FOREIGN KEY(project_id) REFERENCES projects (project_id)
);

-- Where each branch stands: up to `head_sha` everything is stored.
CREATE TABLE tsuzuki_commit_targets (
    project_id INTEGER NOT NULL,
    branch_name TEXT NOT NULL,
    is_followed BOOLEAN NOT NULL,
    is_default BOOLEAN NOT NULL,
    head_sha TEXT,
    collected_at_utc TEXT,
    range_old TEXT,
    range_new TEXT,
    range_since_utc TEXT,
    range_mark TEXT,
    range_run_id TEXT,
    range_commits INTEGER DEFAULT '0' NOT NULL,
    closed_sha TEXT,
    CONSTRAINT tsuzuki_pk_commit_targets PRIMARY KEY (project_id, branch_name),
    CONSTRAINT tsuzuki_ck_commit_targets_range
        CHECK (range_new IS NOT NULL OR (range_old IS NULL AND range_since_utc IS NULL AND range_mark IS NULL)),
    CONSTRAINT tsuzuki_fk_commit_targets_project_id FOREIGN KEY(project_id) REFERENCES projects (project_id)
);

-- What statistics add up: each commit of a project once, however many branches have it.
CREATE TABLE tsuzuki_commit_totals (
    project_id INTEGER NOT NULL,
    month TEXT NOT NULL,
    author_email TEXT NOT NULL,
    author_name TEXT NOT NULL,
    commits INTEGER NOT NULL,
    additions INTEGER NOT NULL,
    deletions INTEGER NOT NULL,
    CONSTRAINT tsuzuki_pk_commit_totals PRIMARY KEY (project_id, month, author_email, author_name),
    CONSTRAINT tsuzuki_fk_commit_totals_project_id FOREIGN KEY(project_id) REFERENCES projects (project_id)
)
 WITHOUT ROWID;

-- What a person should know about a target that went well.
CREATE TABLE tsuzuki_bulk_collection_notes (
    run_id TEXT NOT NULL,
    project_id INTEGER NOT NULL,
    branch_name TEXT NOT NULL,
    kind TEXT NOT NULL,
    sentence TEXT NOT NULL,
    CONSTRAINT tsuzuki_pk_bulk_collection_notes PRIMARY KEY (run_id, project_id, branch_name, kind),
    CONSTRAINT tsuzuki_fk_bulk_collection_notes_run_id_project_id_branch_name
        FOREIGN KEY(run_id, project_id, branch_name) REFERENCES bulk_collection_results (run_id, project_id, branch_name) ON DELETE CASCADE,
    CONSTRAINT tsuzuki_ck_bulk_collection_notes_kind
        CHECK (kind IN ('force_push', 'history_replaced', 'head_unknown', 'branch_gone', 'empty_repository',
            'project_renamed', 'default_moved', 'parents_absent'))
);

-- Up to where the commits of a branch have their parents and counts per path.
CREATE TABLE tsuzuki_commit_completions (
    project_id INTEGER NOT NULL,
    branch_name TEXT NOT NULL,
    head_sha TEXT,
    range_old TEXT,
    range_new TEXT,
    range_mark TEXT,
    CONSTRAINT tsuzuki_pk_commit_completions PRIMARY KEY (project_id, branch_name),
    CONSTRAINT tsuzuki_fk_commit_completions_project_id_branch_name
        FOREIGN KEY(project_id, branch_name) REFERENCES tsuzuki_commit_targets (project_id, branch_name) ON DELETE CASCADE,
    CONSTRAINT tsuzuki_ck_commit_completions_range
        CHECK (range_new IS NOT NULL OR (range_old IS NULL AND range_mark IS NULL))
);

-- Commits whose date was not valid, and what is stored instead.
CREATE TABLE tsuzuki_commit_date_notes (
    run_id TEXT NOT NULL,
    project_id INTEGER NOT NULL,
    branch_name TEXT NOT NULL,
    sha TEXT NOT NULL,
    sentence TEXT NOT NULL,
    CONSTRAINT tsuzuki_pk_commit_date_notes PRIMARY KEY (run_id, project_id, branch_name, sha),
    CONSTRAINT tsuzuki_fk_commit_date_notes_run_id_project_id_branch_name
        FOREIGN KEY(run_id, project_id, branch_name) REFERENCES bulk_collection_results (run_id, project_id, branch_name) ON DELETE CASCADE
);

-- Commits by author and day, each commit of a project once. A day is the number 20240229.
CREATE TABLE tsuzuki_commit_days (
    day INTEGER NOT NULL,
    author_id INTEGER NOT NULL,
    merge_state INTEGER NOT NULL,
    commits INTEGER NOT NULL,
    additions INTEGER NOT NULL,
    deletions INTEGER NOT NULL,
    CONSTRAINT tsuzuki_pk_commit_days PRIMARY KEY (day, author_id, merge_state),
    CONSTRAINT tsuzuki_fk_commit_days_author_id FOREIGN KEY(author_id) REFERENCES tsuzuki_commit_authors (author_id)
)
 WITHOUT ROWID;

-- Commits by author and month. A month is the number 202402; 0 is a date that cannot be read.
CREATE TABLE tsuzuki_commit_months (
    rollup_id INTEGER NOT NULL,
    author_id INTEGER NOT NULL,
    merge_state INTEGER NOT NULL,
    month INTEGER NOT NULL,
    commits INTEGER NOT NULL,
    additions INTEGER NOT NULL,
    deletions INTEGER NOT NULL,
    CONSTRAINT tsuzuki_pk_commit_months PRIMARY KEY (rollup_id, author_id, merge_state, month),
    CONSTRAINT tsuzuki_fk_commit_months_author_id FOREIGN KEY(author_id) REFERENCES tsuzuki_commit_authors (author_id)
)
 WITHOUT ROWID;

-- feeds -----------------------------------------------------------------------------------------------

-- Every article by its link, with its state and reason; never deleted.
CREATE TABLE items (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    url TEXT NOT NULL,
    title TEXT NOT NULL,
    published_at TIMESTAMP NOT NULL,
    status INTEGER NOT NULL,
    reason INTEGER,
    retry_count INTEGER NOT NULL,
    created_at TIMESTAMP NOT NULL,
    last_checked_at TIMESTAMP NOT NULL,
    CONSTRAINT tsuzuki_ck_items_status CHECK (status BETWEEN 0 AND 3),
    CONSTRAINT tsuzuki_ck_items_reason
        CHECK ((status IN (0, 2) AND reason IS NULL) OR (status = 1 AND reason IS NOT NULL AND reason BETWEEN 1
            AND 5) OR (status = 3 AND (reason IS NULL OR reason IN (0, 6)))),
    CONSTRAINT tsuzuki_ck_items_retry_count CHECK (retry_count >= 0),
    CONSTRAINT tsuzuki_ck_items_last_checked_at CHECK (last_checked_at >= created_at)
);
CREATE INDEX idx_items_status_last_checked_at ON items (status, last_checked_at);
CREATE INDEX idx_items_status_published_at ON items (status, published_at);
CREATE UNIQUE INDEX idx_items_url ON items (url);

-- The limits of an account's server, and until when nothing is posted there.
CREATE TABLE tsuzuki_feed_accounts (
    account TEXT NOT NULL,
    limits TEXT,
    limits_read_at TEXT,
    limited_until TEXT,
    CONSTRAINT tsuzuki_pk_feed_accounts PRIMARY KEY (account)
);

-- Requests, tokens and cost by scope and time window.
CREATE TABLE tsuzuki_feed_budget_use (
    scope TEXT NOT NULL,
    time_window TEXT NOT NULL,
    requests INTEGER NOT NULL,
    tokens BIGINT NOT NULL,
    cost_micros BIGINT NOT NULL,
    CONSTRAINT tsuzuki_pk_feed_budget_use PRIMARY KEY (scope, time_window),
    CONSTRAINT tsuzuki_ck_feed_budget_use_use CHECK (requests >= 0 AND tokens >= 0 AND cost_micros >= 0)
);

-- Until when a model is not asked.
CREATE TABLE tsuzuki_feed_models (
    model TEXT NOT NULL,
    parked_until TEXT NOT NULL,
    probe_at TEXT NOT NULL,
    why TEXT NOT NULL,
    CONSTRAINT tsuzuki_pk_feed_models PRIMARY KEY (model)
);

-- Where each feed is, and what its last fetch gave.
CREATE TABLE tsuzuki_feeds (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    job_name TEXT NOT NULL,
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    moved_to TEXT,
    etag TEXT,
    last_modified TEXT,
    is_conditional BOOLEAN NOT NULL,
    body_hash TEXT,
    title TEXT,
    first_good_at TEXT,
    tried_at TEXT,
    good_at TEXT,
    full_at TEXT,
    new_at TEXT,
    failing_since TEXT,
    failures INTEGER NOT NULL,
    error TEXT,
    not_before TEXT,
    ended_at TEXT,
    removed_at TEXT,
    held_by_run BIGINT,
    CONSTRAINT tsuzuki_ck_feeds_failures CHECK (failures >= 0),
    CONSTRAINT tsuzuki_ck_feeds_failing_since CHECK ((failures = 0) = (failing_since IS NULL)),
    CONSTRAINT tsuzuki_uq_feeds_job_name_name UNIQUE (job_name, name)
);

-- Which feeds listed an item; the first of them owns it.
CREATE TABLE tsuzuki_feed_items (
    feed_id BIGINT NOT NULL,
    item_id BIGINT NOT NULL,
    first_seen_at TEXT NOT NULL,
    CONSTRAINT tsuzuki_pk_feed_items PRIMARY KEY (feed_id, item_id),
    CONSTRAINT tsuzuki_fk_feed_items_feed_id FOREIGN KEY(feed_id) REFERENCES tsuzuki_feeds (id),
    CONSTRAINT tsuzuki_fk_feed_items_item_id FOREIGN KEY(item_id) REFERENCES items (id)
)
 WITHOUT ROWID;
CREATE INDEX tsuzuki_ix_feed_items_item_id ON tsuzuki_feed_items (item_id);

-- The outbox: one row for each post, edit or reply, written before anything is sent.
CREATE TABLE tsuzuki_feed_posts (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    job_name TEXT NOT NULL,
    feed_id BIGINT NOT NULL,
    item_id BIGINT NOT NULL,
    kind TEXT NOT NULL,
    account TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    state TEXT NOT NULL,
    body TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    remote_id TEXT,
    remote_url TEXT,
    created_at TEXT NOT NULL,
    changed_at TEXT NOT NULL,
    sent_by_run BIGINT,
    error TEXT,
    looks INTEGER DEFAULT '0' NOT NULL,
    absences INTEGER DEFAULT '0' NOT NULL,
    next_look_at TEXT,
    CONSTRAINT tsuzuki_ck_feed_posts_kind CHECK (kind IN ('post', 'edit', 'reply')),
    CONSTRAINT tsuzuki_ck_feed_posts_state CHECK (state IN ('intended', 'sending', 'sent', 'refused', 'unsettled')),
    CONSTRAINT tsuzuki_fk_feed_posts_feed_id FOREIGN KEY(feed_id) REFERENCES tsuzuki_feeds (id),
    CONSTRAINT tsuzuki_fk_feed_posts_item_id FOREIGN KEY(item_id) REFERENCES items (id),
    CONSTRAINT tsuzuki_uq_feed_posts_idempotency_key UNIQUE (idempotency_key)
);
CREATE INDEX tsuzuki_ix_feed_posts_feed_id_state ON tsuzuki_feed_posts (feed_id, state, changed_at);
CREATE INDEX tsuzuki_ix_feed_posts_item_id ON tsuzuki_feed_posts (item_id, id);
CREATE INDEX tsuzuki_ix_feed_posts_job_name_state ON tsuzuki_feed_posts (job_name, state);
CREATE UNIQUE INDEX tsuzuki_uq_feed_posts_item_id_post ON tsuzuki_feed_posts (item_id) WHERE kind = 'post';
CREATE INDEX tsuzuki_ix_feed_posts_sent_by_run ON tsuzuki_feed_posts (sent_by_run, id);

-- Entries that cannot be items, and why.
CREATE TABLE tsuzuki_feed_unusable_entries (
    feed_id BIGINT NOT NULL,
    entry_hash TEXT NOT NULL,
    title TEXT NOT NULL,
    problem TEXT NOT NULL,
    first_seen_at TEXT NOT NULL,
    CONSTRAINT tsuzuki_pk_feed_unusable_entries PRIMARY KEY (feed_id, entry_hash),
    CONSTRAINT tsuzuki_fk_feed_unusable_entries_feed_id FOREIGN KEY(feed_id) REFERENCES tsuzuki_feeds (id)
)
 WITHOUT ROWID;

-- What the feed said about an item, and why one was never worked on.
CREATE TABLE tsuzuki_item_details (
    item_id INTEGER NOT NULL,
    feed_id BIGINT NOT NULL,
    canonical_url TEXT NOT NULL,
    author TEXT,
    categories TEXT NOT NULL,
    excerpt TEXT NOT NULL,
    attachments TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    changed_at TEXT,
    cause TEXT,
    CONSTRAINT tsuzuki_pk_item_details PRIMARY KEY (item_id),
    CONSTRAINT tsuzuki_fk_item_details_item_id FOREIGN KEY(item_id) REFERENCES items (id),
    CONSTRAINT tsuzuki_fk_item_details_feed_id FOREIGN KEY(feed_id) REFERENCES tsuzuki_feeds (id)
);
CREATE INDEX tsuzuki_ix_item_details_feed_id ON tsuzuki_item_details (feed_id, item_id);

-- By which an item is recognized: its link without tracking, its guid.
CREATE TABLE tsuzuki_item_fingerprints (
    fingerprint TEXT NOT NULL,
    item_id BIGINT NOT NULL,
    CONSTRAINT tsuzuki_pk_item_fingerprints PRIMARY KEY (fingerprint),
    CONSTRAINT tsuzuki_fk_item_fingerprints_item_id FOREIGN KEY(item_id) REFERENCES items (id)
)
 WITHOUT ROWID;

-- The text of an item's page, until the item is processed.
CREATE TABLE tsuzuki_item_pages (
    item_id INTEGER NOT NULL,
    final_url TEXT NOT NULL,
    text TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    downloaded_at TEXT NOT NULL,
    CONSTRAINT tsuzuki_pk_item_pages PRIMARY KEY (item_id),
    CONSTRAINT tsuzuki_fk_item_pages_item_id FOREIGN KEY(item_id) REFERENCES items (id)
);

-- Every download, screening and summary, with tokens and cost.
CREATE TABLE tsuzuki_item_steps (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    item_id BIGINT NOT NULL,
    run_id BIGINT NOT NULL,
    step TEXT NOT NULL,
    state TEXT NOT NULL,
    model TEXT,
    prompt_version TEXT,
    input_hash TEXT,
    result TEXT,
    error_code TEXT,
    error TEXT,
    is_paid BOOLEAN NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cost_micros BIGINT,
    started_at TEXT NOT NULL,
    ended_at TEXT,
    CONSTRAINT tsuzuki_ck_item_steps_step CHECK (step IN ('download', 'screening', 'summary')),
    CONSTRAINT tsuzuki_ck_item_steps_state CHECK (state IN ('started', 'done', 'failed')),
    CONSTRAINT tsuzuki_ck_item_steps_ended_at CHECK ((state = 'started') = (ended_at IS NULL)),
    CONSTRAINT tsuzuki_ck_item_steps_tokens CHECK (input_tokens >= 0 AND output_tokens >= 0),
    CONSTRAINT tsuzuki_fk_item_steps_item_id FOREIGN KEY(item_id) REFERENCES items (id)
);
CREATE INDEX tsuzuki_ix_item_steps_item_id ON tsuzuki_item_steps (item_id, id);

-- One row for each item that is not processed: whether it may be drawn, and who has taken it.
CREATE TABLE tsuzuki_waiting_items (
    item_id INTEGER NOT NULL,
    feed_id BIGINT,
    state TEXT NOT NULL,
    is_pending BOOLEAN NOT NULL,
    order_at TEXT NOT NULL,
    not_before TEXT,
    held_by_run BIGINT,
    drawn_by_run BIGINT,
    is_approved BOOLEAN DEFAULT 0 NOT NULL,
    CONSTRAINT tsuzuki_pk_waiting_items PRIMARY KEY (item_id),
    CONSTRAINT tsuzuki_ck_waiting_items_state CHECK (state IN ('ready', 'taken', 'backoff', 'approval')),
    CONSTRAINT tsuzuki_ck_waiting_items_held_by_run CHECK ((state = 'taken') = (held_by_run IS NOT NULL)),
    CONSTRAINT tsuzuki_ck_waiting_items_not_before CHECK ((state = 'backoff') = (not_before IS NOT NULL)),
    CONSTRAINT tsuzuki_ck_waiting_items_approval CHECK (state <> 'approval' OR is_pending),
    CONSTRAINT tsuzuki_fk_waiting_items_item_id FOREIGN KEY(item_id) REFERENCES items (id),
    CONSTRAINT tsuzuki_fk_waiting_items_feed_id FOREIGN KEY(feed_id) REFERENCES tsuzuki_feeds (id)
);
CREATE INDEX tsuzuki_ix_waiting_items_feed_id_state ON tsuzuki_waiting_items (feed_id, state, is_pending, order_at, item_id);
CREATE INDEX tsuzuki_ix_waiting_items_held_by_run ON tsuzuki_waiting_items (held_by_run)
    WHERE held_by_run IS NOT NULL;
CREATE INDEX tsuzuki_ix_waiting_items_not_before ON tsuzuki_waiting_items (not_before) WHERE not_before IS NOT NULL;

-- An item that is not processed has a row in `tsuzuki_waiting_items`, also one that another program or a person has put into
-- `items`. Its times get the form in which ours are compared; what is not a time is refused.

-- The times of items in the form in which they are stored, NULL if one is not a time. Go writes a time as
-- `2024-05-01 09:00:00.5 +0900 JST`, which SQLite reads without the name of its zone and with a colon in its offset.
CREATE VIEW tsuzuki_item_times AS
SELECT
    item_id,
    name,
    CASE
        WHEN written LIKE '____-__-__T__:__:__.______Z' THEN written
        ELSE strftime(
            '%Y-%m-%dT%H:%M:%f',
            CASE
                WHEN written GLOB
                    '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9]* [+-][0-9][0-9][0-9][0-9]*'
                THEN substr(written, 1, 19)
                    || substr(substr(written, 20, instr(substr(written, 20), ' ') - 1), 1, 4)
                    || substr(written, 20 + instr(substr(written, 20), ' '), 3)
                    || ':'
                    || substr(written, 23 + instr(substr(written, 20), ' '), 2)
                ELSE written
            END,
            CASE typeof(written) WHEN 'integer' THEN 'unixepoch' ELSE '+0 seconds' END
        ) || '000Z'
    END AS time
FROM (
    SELECT id AS item_id, 'published_at' AS name, published_at AS written FROM items
    UNION ALL SELECT id, 'created_at', created_at FROM items
    UNION ALL SELECT id, 'last_checked_at', last_checked_at FROM items
);

CREATE TRIGGER tsuzuki_items_times_insert AFTER INSERT ON items
WHEN NEW.published_at NOT LIKE '____-__-__T__:__:__.______Z'
    OR NEW.created_at NOT LIKE '____-__-__T__:__:__.______Z'
    OR NEW.last_checked_at NOT LIKE '____-__-__T__:__:__.______Z'
BEGIN
    SELECT RAISE(ABORT, 'a time of the item is not a date and time')
    WHERE EXISTS (SELECT 1 FROM tsuzuki_item_times WHERE item_id = NEW.id AND time IS NULL);
    UPDATE items SET
        published_at = (SELECT time FROM tsuzuki_item_times WHERE item_id = NEW.id AND name = 'published_at'),
        created_at = (SELECT time FROM tsuzuki_item_times WHERE item_id = NEW.id AND name = 'created_at'),
        last_checked_at = (SELECT time FROM tsuzuki_item_times WHERE item_id = NEW.id AND name = 'last_checked_at')
    WHERE id = NEW.id;
END;

CREATE TRIGGER tsuzuki_items_times_update AFTER UPDATE OF published_at, created_at, last_checked_at ON items
WHEN NEW.published_at NOT LIKE '____-__-__T__:__:__.______Z'
    OR NEW.created_at NOT LIKE '____-__-__T__:__:__.______Z'
    OR NEW.last_checked_at NOT LIKE '____-__-__T__:__:__.______Z'
BEGIN
    SELECT RAISE(ABORT, 'a time of the item is not a date and time')
    WHERE EXISTS (SELECT 1 FROM tsuzuki_item_times WHERE item_id = NEW.id AND time IS NULL);
    UPDATE items SET
        published_at = (SELECT time FROM tsuzuki_item_times WHERE item_id = NEW.id AND name = 'published_at'),
        created_at = (SELECT time FROM tsuzuki_item_times WHERE item_id = NEW.id AND name = 'created_at'),
        last_checked_at = (SELECT time FROM tsuzuki_item_times WHERE item_id = NEW.id AND name = 'last_checked_at')
    WHERE id = NEW.id;
END;

-- A pending item is drawn by when it was published, any other by when it was checked last. The trigger that writes the
-- times in our form may fire later, so they are not taken from NEW.
CREATE TRIGGER tsuzuki_items_waiting_insert AFTER INSERT ON items
WHEN NEW.status <> 3
BEGIN
    INSERT INTO tsuzuki_waiting_items (item_id, state, is_pending, order_at)
    SELECT NEW.id, 'ready', NEW.status = 2, time FROM tsuzuki_item_times
    WHERE item_id = NEW.id AND name = CASE WHEN NEW.status = 2 THEN 'published_at' ELSE 'last_checked_at' END
    ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER tsuzuki_items_waiting_update AFTER UPDATE OF status ON items
WHEN NEW.status <> OLD.status
BEGIN
    DELETE FROM tsuzuki_waiting_items WHERE item_id = NEW.id AND NEW.status = 3;
    UPDATE tsuzuki_waiting_items SET
        is_pending = (NEW.status = 2),
        order_at = (
            SELECT time FROM tsuzuki_item_times
            WHERE item_id = NEW.id AND name = CASE WHEN NEW.status = 2 THEN 'published_at' ELSE 'last_checked_at' END
        ),
        state = CASE WHEN state = 'approval' THEN 'ready' ELSE state END
    WHERE item_id = NEW.id AND is_pending <> (NEW.status = 2);
    INSERT INTO tsuzuki_waiting_items (item_id, feed_id, state, is_pending, order_at)
    SELECT
        NEW.id, (SELECT feed_id FROM tsuzuki_item_details WHERE item_id = NEW.id), 'ready', NEW.status = 2, time
    FROM tsuzuki_item_times
    WHERE item_id = NEW.id AND name = CASE WHEN NEW.status = 2 THEN 'published_at' ELSE 'last_checked_at' END
        AND NEW.status <> 3 AND NOT EXISTS (SELECT 1 FROM tsuzuki_waiting_items WHERE item_id = NEW.id);
END;
