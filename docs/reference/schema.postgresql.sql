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
    claimed_until TIMESTAMP WITH TIME ZONE NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
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
    id BIGSERIAL NOT NULL,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    object_type TEXT NOT NULL,
    object_id TEXT NOT NULL,
    before TEXT,
    after TEXT,
    CONSTRAINT tsuzuki_pk_audit_log PRIMARY KEY (id)
);
CREATE INDEX tsuzuki_ix_audit_log_at ON tsuzuki_audit_log (at);
CREATE INDEX tsuzuki_ix_audit_log_object_type_object_id ON tsuzuki_audit_log (object_type, object_id);
CREATE INDEX tsuzuki_ix_audit_log_actor_id ON tsuzuki_audit_log (actor, id);
CREATE INDEX tsuzuki_ix_audit_log_object_type_id ON tsuzuki_audit_log (object_type, id);

-- Actions on every run that a frozen filter matches.
CREATE TABLE tsuzuki_bulk_actions (
    id BIGSERIAL NOT NULL,
    verb TEXT NOT NULL,
    filter TEXT NOT NULL,
    ceiling_id BIGINT NOT NULL,
    matched INTEGER NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    created_by TEXT NOT NULL,
    confirmed_at TIMESTAMP WITH TIME ZONE,
    confirmed_by TEXT,
    run_id BIGINT,
    position BIGINT DEFAULT '0' NOT NULL,
    done INTEGER DEFAULT '0' NOT NULL,
    stopped_at TIMESTAMP WITH TIME ZONE,
    finished_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT tsuzuki_pk_bulk_actions PRIMARY KEY (id),
    CONSTRAINT tsuzuki_ck_bulk_actions_verb CHECK (verb IN ('cancel', 'retry')),
    CONSTRAINT tsuzuki_ck_bulk_actions_matched CHECK (matched >= 0 AND done >= 0),
    CONSTRAINT tsuzuki_ck_bulk_actions_position CHECK (position >= 0 AND position <= ceiling_id),
    CONSTRAINT tsuzuki_ck_bulk_actions_confirmed
        CHECK ((confirmed_at IS NULL) = (confirmed_by IS NULL) AND (confirmed_at IS NOT NULL OR (run_id IS NULL
            AND stopped_at IS NULL AND finished_at IS NULL AND done = 0)))
);

-- Events received. An event with a key is stored once per type.
CREATE TABLE tsuzuki_events (
    id BIGSERIAL NOT NULL,
    event_type TEXT NOT NULL,
    payload TEXT NOT NULL,
    dedupe_key TEXT,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    processed_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT tsuzuki_pk_events PRIMARY KEY (id),
    CONSTRAINT tsuzuki_uq_events_dedupe_key_event_type UNIQUE (dedupe_key, event_type)
);
CREATE INDEX tsuzuki_ix_events_processed_at_created_at ON tsuzuki_events (processed_at, created_at);
CREATE INDEX tsuzuki_ix_events_event_type_id ON tsuzuki_events (event_type, id);

-- Loops of the engine that fail at the moment, written by the process whose loop it is.
CREATE TABLE tsuzuki_failing_loops (
    process TEXT NOT NULL,
    loop TEXT NOT NULL,
    failures INTEGER NOT NULL,
    since TIMESTAMP WITH TIME ZONE NOT NULL,
    seen_at TIMESTAMP WITH TIME ZONE NOT NULL,
    code TEXT NOT NULL,
    error TEXT NOT NULL,
    CONSTRAINT tsuzuki_pk_failing_loops PRIMARY KEY (process, loop)
);

-- Failures with one signature, and what was acknowledged.
CREATE TABLE tsuzuki_failure_groups (
    id TEXT NOT NULL,
    signature TEXT NOT NULL,
    acknowledged_run_id BIGINT,
    acknowledged_at TIMESTAMP WITH TIME ZONE,
    acknowledged_by TEXT,
    CONSTRAINT tsuzuki_pk_failure_groups PRIMARY KEY (id),
    CONSTRAINT tsuzuki_ck_failure_groups_acknowledged
        CHECK ((acknowledged_run_id IS NULL) = (acknowledged_at IS NULL)
            AND (acknowledged_at IS NULL) = (acknowledged_by IS NULL))
);

-- Jobs. A removed job keeps its row, because its runs refer to it, until a job of its name is added again.
CREATE TABLE tsuzuki_job_definitions (
    id BIGSERIAL NOT NULL,
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
    planned_until TIMESTAMP WITH TIME ZONE NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    deleted_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT tsuzuki_pk_job_definitions PRIMARY KEY (id),
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
    run_id BIGINT NOT NULL,
    seq INTEGER NOT NULL,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    stream TEXT NOT NULL,
    body TEXT NOT NULL,
    CONSTRAINT tsuzuki_pk_job_run_logs PRIMARY KEY (run_id, seq)
);

-- History: one row for each move, written by the trigger on job_runs and deleted only after its run.
CREATE TABLE tsuzuki_job_run_transitions (
    run_id BIGINT NOT NULL,
    version INTEGER NOT NULL,
    from_state TEXT NOT NULL,
    to_state TEXT NOT NULL,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    actor TEXT NOT NULL,
    actor_id TEXT NOT NULL,
    epoch BIGINT,
    reason TEXT,
    worker_id TEXT,
    seq BIGINT,
    CONSTRAINT tsuzuki_pk_job_run_transitions PRIMARY KEY (run_id, version)
);
CREATE INDEX tsuzuki_ix_job_run_transitions_at ON tsuzuki_job_run_transitions (at);

-- Ends stored when their hour was being counted, or had been. They are added to it later.
CREATE TABLE tsuzuki_late_ends (
    run_id BIGINT NOT NULL,
    CONSTRAINT tsuzuki_pk_late_ends PRIMARY KEY (run_id)
);

-- Past and current terms, written by triggers on leadership only.
CREATE TABLE tsuzuki_leader_terms (
    epoch BIGINT NOT NULL,
    holder TEXT NOT NULL,
    taken_at TIMESTAMP WITH TIME ZONE NOT NULL,
    ended_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT tsuzuki_pk_leader_terms PRIMARY KEY (epoch)
);

-- The one row that says who leads. `epoch` grows with every term, and every write of a leader carries it.
CREATE TABLE tsuzuki_leadership (
    id INTEGER NOT NULL,
    epoch BIGINT NOT NULL,
    holder TEXT,
    lease_expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    taken_at TIMESTAMP WITH TIME ZONE,
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
    id BIGSERIAL NOT NULL,
    link_hash TEXT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    created_by TEXT NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    opened_at TIMESTAMP WITH TIME ZONE,
    session_hash TEXT,
    CONSTRAINT tsuzuki_pk_owner_links PRIMARY KEY (id),
    CONSTRAINT tsuzuki_uq_owner_links_link_hash UNIQUE (link_hash),
    CONSTRAINT tsuzuki_uq_owner_links_session_hash UNIQUE (session_hash),
    CONSTRAINT tsuzuki_ck_owner_links_link_hash CHECK (length(link_hash) = 64),
    CONSTRAINT tsuzuki_ck_owner_links_session_hash CHECK (length(session_hash) = 64),
    CONSTRAINT tsuzuki_ck_owner_links_opened CHECK ((opened_at IS NULL) = (session_hash IS NULL))
);

-- Every deleted transition is of this moment or older, and has this `seq` or a lower one.
CREATE TABLE tsuzuki_pruned_history (
    id INTEGER NOT NULL,
    until TIMESTAMP WITH TIME ZONE NOT NULL,
    seq BIGINT DEFAULT '0' NOT NULL,
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
    run_id BIGINT NOT NULL,
    reason TEXT NOT NULL,
    requested_by TEXT NOT NULL,
    requested_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT tsuzuki_pk_run_cancel_requests PRIMARY KEY (run_id),
    CONSTRAINT tsuzuki_ck_run_cancel_requests_reason CHECK (reason IN ('operator', 'replaced'))
);

-- The group that a failed run belongs to; deleted after its run.
CREATE TABLE tsuzuki_run_failures (
    run_id BIGINT NOT NULL,
    group_id TEXT NOT NULL,
    job_definition_id BIGINT NOT NULL,
    failed_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT tsuzuki_pk_run_failures PRIMARY KEY (run_id)
);
CREATE INDEX tsuzuki_ix_run_failures_group_id_run_id ON tsuzuki_run_failures (group_id, run_id);
CREATE INDEX tsuzuki_ix_run_failures_failed_at ON tsuzuki_run_failures (failed_at);
CREATE INDEX tsuzuki_ix_run_failures_grouped ON tsuzuki_run_failures (failed_at, group_id, job_definition_id, run_id);

-- Ends of runs by hour, job, outcome and duration.
CREATE TABLE tsuzuki_run_hours (
    hour TIMESTAMP WITH TIME ZONE NOT NULL,
    job_definition_id BIGINT NOT NULL,
    outcome TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    runs INTEGER NOT NULL,
    seconds FLOAT NOT NULL,
    CONSTRAINT tsuzuki_pk_run_hours PRIMARY KEY (hour, job_definition_id, outcome, bucket),
    CONSTRAINT tsuzuki_ck_run_hours_outcome CHECK (outcome IN ('SUCCEEDED', 'FAILED', 'TIMED_OUT', 'CANCELED', 'SKIPPED')),
    CONSTRAINT tsuzuki_ck_run_hours_bucket CHECK (bucket >= 0),
    CONSTRAINT tsuzuki_ck_run_hours_runs CHECK (runs >= 1)
);
CREATE INDEX tsuzuki_ix_run_hours_job_definition_id ON tsuzuki_run_hours (job_definition_id, hour);

-- Up to which hour runs are counted.
CREATE TABLE tsuzuki_run_hours_progress (
    id INTEGER NOT NULL,
    until TIMESTAMP WITH TIME ZONE NOT NULL,
    closing TIMESTAMP WITH TIME ZONE,
    corrections INTEGER DEFAULT '0' NOT NULL,
    CONSTRAINT tsuzuki_pk_run_hours_progress PRIMARY KEY (id),
    CONSTRAINT tsuzuki_ck_run_hours_progress_single CHECK (id = 1)
);

-- Addresses of lists, with their filters, under a name of their owner.
CREATE TABLE tsuzuki_saved_views (
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    address TEXT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT tsuzuki_pk_saved_views PRIMARY KEY (owner, name),
    CONSTRAINT tsuzuki_ck_saved_views_address CHECK (address LIKE '/%')
);

-- Settings that differ from their defaults.
CREATE TABLE tsuzuki_settings (
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_by TEXT NOT NULL,
    CONSTRAINT tsuzuki_pk_settings PRIMARY KEY (key)
);

-- The code by which the first admin is created; at most one row.
CREATE TABLE tsuzuki_setup_codes (
    id INTEGER NOT NULL,
    code_hash TEXT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    created_by TEXT NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    used_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT tsuzuki_pk_setup_codes PRIMARY KEY (id),
    CONSTRAINT tsuzuki_ck_setup_codes_single CHECK (id = 1),
    CONSTRAINT tsuzuki_ck_setup_codes_code_hash CHECK (length(code_hash) = 64)
);

-- How often a name or an address was tried in its window, by the hash of either.
CREATE TABLE tsuzuki_sign_in_attempts (
    key_hash TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    window_ends_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT tsuzuki_pk_sign_in_attempts PRIMARY KEY (key_hash),
    CONSTRAINT tsuzuki_ck_sign_in_attempts_key_hash CHECK (length(key_hash) = 64),
    CONSTRAINT tsuzuki_ck_sign_in_attempts_attempts CHECK (attempts >= 1)
);
CREATE INDEX tsuzuki_ix_sign_in_attempts_window_ends_at ON tsuzuki_sign_in_attempts (window_ends_at);

-- Secrets that every process on this database signs with.
CREATE TABLE tsuzuki_signing_keys (
    name TEXT NOT NULL,
    secret TEXT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT tsuzuki_pk_signing_keys PRIMARY KEY (name)
);

-- People who sign in.
CREATE TABLE tsuzuki_users (
    id BIGSERIAL NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    password_hash TEXT NOT NULL,
    password_changed_at TIMESTAMP WITH TIME ZONE NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    created_by TEXT NOT NULL,
    disabled_at TIMESTAMP WITH TIME ZONE,
    last_sign_in_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT tsuzuki_pk_users PRIMARY KEY (id),
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
    started_at TIMESTAMP WITH TIME ZONE NOT NULL,
    heartbeat_at TIMESTAMP WITH TIME ZONE NOT NULL,
    ttl_seconds FLOAT,
    grace_seconds FLOAT,
    silence_recorded_at TIMESTAMP WITH TIME ZONE,
    drain_ordered_at TIMESTAMP WITH TIME ZONE,
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
    user_id BIGINT,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    created_by TEXT NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    last_used_at TIMESTAMP WITH TIME ZONE,
    revoked_at TIMESTAMP WITH TIME ZONE,
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
    bulk_id BIGINT NOT NULL,
    run_id BIGINT NOT NULL,
    result TEXT NOT NULL,
    new_run_id BIGINT,
    CONSTRAINT tsuzuki_pk_bulk_action_runs PRIMARY KEY (bulk_id, run_id),
    CONSTRAINT tsuzuki_ck_bulk_action_runs_result
        CHECK (result IN ('canceled', 'requested', 'retried', 'ended before', 'retried before')),
    CONSTRAINT tsuzuki_ck_bulk_action_runs_new_run_id CHECK ((result = 'retried') = (new_run_id IS NOT NULL)),
    CONSTRAINT tsuzuki_fk_bulk_action_runs_bulk_id
        FOREIGN KEY(bulk_id) REFERENCES tsuzuki_bulk_actions (id) ON DELETE CASCADE
);

-- Runs. Their rules are in the triggers; `moved_*` is the last move, stored so that a trigger can write the history.
CREATE TABLE tsuzuki_job_runs (
    id BIGSERIAL NOT NULL,
    job_definition_id BIGINT NOT NULL,
    state TEXT NOT NULL,
    version INTEGER NOT NULL,
    trigger TEXT NOT NULL,
    scheduled_for TIMESTAMP WITH TIME ZONE NOT NULL,
    priority INTEGER NOT NULL,
    arguments TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    retries_used INTEGER NOT NULL,
    orphan_count INTEGER DEFAULT '0' NOT NULL,
    orphans_free INTEGER DEFAULT '0' NOT NULL,
    losses INTEGER DEFAULT '0' NOT NULL,
    losses_free INTEGER DEFAULT '0' NOT NULL,
    retry_of BIGINT,
    origin_id BIGINT,
    idempotency_key TEXT,
    work_key TEXT,
    defaulted_arguments TEXT,
    concurrency_key TEXT,
    event_id BIGINT,
    covers_ticks INTEGER DEFAULT '1' NOT NULL,
    covers_until TIMESTAMP WITH TIME ZONE,
    assigned_worker_id TEXT,
    assigned_at TIMESTAMP WITH TIME ZONE,
    leader_epoch BIGINT,
    started_at TIMESTAMP WITH TIME ZONE,
    finished_at TIMESTAMP WITH TIME ZONE,
    continuation_state TEXT DEFAULT 'NONE' NOT NULL,
    continuation_check_deadline_at TIMESTAMP WITH TIME ZONE,
    reason TEXT,
    error TEXT,
    result TEXT,
    progress_processed BIGINT DEFAULT '0' NOT NULL,
    progress_total BIGINT,
    progress_at TIMESTAMP WITH TIME ZONE,
    progress_number BIGINT,
    log_ref TEXT,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    moved_at TIMESTAMP WITH TIME ZONE,
    moved_as TEXT,
    moved_by TEXT,
    moved_epoch BIGINT,
    blocked_by BIGINT,
    CONSTRAINT tsuzuki_pk_job_runs PRIMARY KEY (id),
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
            AND (continuation_state = 'NONE' OR state = 'RUNNING'))
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
    WHERE state IN ('PENDING', 'ORPHANED');
CREATE INDEX tsuzuki_ix_job_runs_assigned_worker_id_state ON tsuzuki_job_runs (assigned_worker_id, state)
    WHERE state IN ('ASSIGNED', 'RUNNING');
CREATE INDEX tsuzuki_ix_job_runs_created_at ON tsuzuki_job_runs (created_at) WHERE finished_at IS NOT NULL;
CREATE UNIQUE INDEX tsuzuki_uq_job_runs_idempotency_key_given ON tsuzuki_job_runs (idempotency_key)
    WHERE idempotency_key IS NOT NULL;

-- Browsers that are signed in.
CREATE TABLE tsuzuki_user_sessions (
    id BIGSERIAL NOT NULL,
    secret_hash TEXT NOT NULL,
    user_id BIGINT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    last_seen_at TIMESTAMP WITH TIME ZONE NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    address TEXT,
    user_agent TEXT,
    CONSTRAINT tsuzuki_pk_user_sessions PRIMARY KEY (id),
    CONSTRAINT tsuzuki_uq_user_sessions_secret_hash UNIQUE (secret_hash),
    CONSTRAINT tsuzuki_ck_user_sessions_secret_hash CHECK (length(secret_hash) = 64),
    CONSTRAINT tsuzuki_ck_user_sessions_expires_at CHECK (expires_at > created_at),
    CONSTRAINT tsuzuki_fk_user_sessions_user_id FOREIGN KEY(user_id) REFERENCES tsuzuki_users (id) ON DELETE CASCADE
);
CREATE INDEX tsuzuki_ix_user_sessions_user_id ON tsuzuki_user_sessions (user_id);

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

-- A process that was killed is recorded as dead by another one of its machine.
ALTER TABLE tsuzuki_workers ADD COLUMN process_name TEXT;
ALTER TABLE tsuzuki_workers ADD COLUMN died_at TIMESTAMP WITH TIME ZONE;

-- A request for the live stack of a run, and its worker's answer. Deleted a minute later, with another request.
CREATE TABLE tsuzuki_run_stacks (
    run_id BIGINT NOT NULL,
    requested_at TIMESTAMP WITH TIME ZONE NOT NULL,
    stack TEXT,
    dumped_at TIMESTAMP WITH TIME ZONE,
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
    last_updated_at TEXT NOT NULL
        DEFAULT to_char(statement_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS'),
    CONSTRAINT tsuzuki_pk_collect_cursor PRIMARY KEY (job_name, query_set_hash)
);

-- The outbox: one row per mail, written before anything is sent.
CREATE TABLE tsuzuki_book_mails (
    id BIGSERIAL NOT NULL,
    job_name TEXT NOT NULL,
    message_id TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    changed_at TIMESTAMP WITH TIME ZONE NOT NULL,
    sent_by_run BIGINT,
    error TEXT,
    CONSTRAINT tsuzuki_pk_book_mails PRIMARY KEY (id),
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
    first_seen_at TIMESTAMP WITH TIME ZONE NOT NULL,
    last_seen_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT tsuzuki_pk_books PRIMARY KEY (volume_id)
);

-- Calls made, or about to be made, on each day of the quota's zone.
CREATE TABLE tsuzuki_books_quota_days (
    day TEXT NOT NULL,
    calls INTEGER NOT NULL,
    refused_at TIMESTAMP WITH TIME ZONE,
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
    found_at TIMESTAMP WITH TIME ZONE NOT NULL,
    found_by_run BIGINT NOT NULL,
    list_index INTEGER NOT NULL,
    CONSTRAINT tsuzuki_pk_book_finds PRIMARY KEY (job_name, volume_id),
    CONSTRAINT tsuzuki_fk_book_finds_volume_id FOREIGN KEY(volume_id) REFERENCES tsuzuki_books (volume_id)
);

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
    project_id BIGSERIAL NOT NULL,
    kind TEXT NOT NULL,
    location TEXT NOT NULL,
    remote_id BIGINT,
    path TEXT NOT NULL,
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    default_branch TEXT,
    is_archived BOOLEAN NOT NULL,
    added_at_utc TEXT NOT NULL,
    synced_at_utc TEXT NOT NULL,
    CONSTRAINT tsuzuki_pk_projects PRIMARY KEY (project_id),
    CONSTRAINT tsuzuki_ck_projects_kind CHECK (kind IN ('gitlab', 'git')),
    CONSTRAINT tsuzuki_ck_projects_remote_id CHECK ((kind = 'gitlab') = (remote_id IS NOT NULL))
);
CREATE UNIQUE INDEX tsuzuki_uq_projects_remote ON projects (location, remote_id) WHERE kind = 'gitlab';
CREATE UNIQUE INDEX tsuzuki_uq_projects_repository ON projects (location) WHERE kind = 'git';

-- Lines added and removed by each commit in each path.
CREATE TABLE tsuzuki_commit_path_counts (
    project_id BIGINT NOT NULL,
    commit_sha TEXT NOT NULL,
    path_id BIGINT NOT NULL,
    additions INTEGER NOT NULL,
    deletions INTEGER NOT NULL,
    CONSTRAINT tsuzuki_pk_commit_path_counts PRIMARY KEY (project_id, commit_sha, path_id),
    CONSTRAINT tsuzuki_ck_commit_path_counts_counts CHECK (additions >= 0 AND deletions >= 0)
);

-- How each target of a bulk collection went.
CREATE TABLE bulk_collection_results (
    run_id TEXT NOT NULL,
    project_id BIGINT NOT NULL,
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
    project_id BIGINT NOT NULL,
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
    job_run_id BIGINT NOT NULL,
    retry_of TEXT,
    CONSTRAINT tsuzuki_pk_bulk_collection_owners PRIMARY KEY (run_id),
    CONSTRAINT tsuzuki_fk_bulk_collection_owners_run_id
        FOREIGN KEY(run_id) REFERENCES bulk_collection_runs (run_id) ON DELETE CASCADE
);

-- Parents that a source was asked for and does not have.
CREATE TABLE tsuzuki_commit_absences (
    project_id BIGINT NOT NULL,
    commit_sha TEXT NOT NULL,
    run_id TEXT NOT NULL,
    CONSTRAINT tsuzuki_pk_commit_absences PRIMARY KEY (project_id, commit_sha),
    CONSTRAINT tsuzuki_fk_commit_absences_project_id FOREIGN KEY(project_id) REFERENCES projects (project_id)
);

-- Authors as written in the commits of a project.
CREATE TABLE tsuzuki_commit_authors (
    author_id BIGSERIAL NOT NULL,
    project_id BIGINT NOT NULL,
    author_email TEXT NOT NULL,
    author_name TEXT NOT NULL,
    CONSTRAINT tsuzuki_pk_commit_authors PRIMARY KEY (author_id),
    CONSTRAINT tsuzuki_uq_commit_authors_project_id_author_email_author_name
        UNIQUE (project_id, author_email, author_name),
    CONSTRAINT tsuzuki_fk_commit_authors_project_id FOREIGN KEY(project_id) REFERENCES projects (project_id)
);

-- The file `.mailmap` of the default branch at `head_sha`; empty if there is none.
CREATE TABLE tsuzuki_commit_mailmaps (
    project_id BIGINT NOT NULL,
    head_sha TEXT NOT NULL,
    content TEXT NOT NULL,
    CONSTRAINT tsuzuki_pk_commit_mailmaps PRIMARY KEY (project_id),
    CONSTRAINT tsuzuki_fk_commit_mailmaps_project_id FOREIGN KEY(project_id) REFERENCES projects (project_id)
);

-- The parents of each commit of a project, ids with one space between.
CREATE TABLE tsuzuki_commit_parents (
    project_id BIGINT NOT NULL,
    commit_sha TEXT NOT NULL,
    parent_count INTEGER NOT NULL,
    parents TEXT NOT NULL,
    CONSTRAINT tsuzuki_pk_commit_parents PRIMARY KEY (project_id, commit_sha),
    CONSTRAINT tsuzuki_ck_commit_parents_parent_count CHECK (parent_count >= 0),
    CONSTRAINT tsuzuki_fk_commit_parents_project_id FOREIGN KEY(project_id) REFERENCES projects (project_id)
);

-- Paths of a project.
CREATE TABLE tsuzuki_commit_paths (
    path_id BIGSERIAL NOT NULL,
    project_id BIGINT NOT NULL,
    path TEXT NOT NULL,
    CONSTRAINT tsuzuki_pk_commit_paths PRIMARY KEY (path_id),
    CONSTRAINT tsuzuki_uq_commit_paths_project_id_path UNIQUE (project_id, path),
    CONSTRAINT tsuzuki_fk_commit_paths_project_id FOREIGN KEY(project_id) REFERENCES projects (project_id)
);

-- How many commits of a branch are counted in commit_months.
CREATE TABLE tsuzuki_commit_rollups (
    rollup_id BIGSERIAL NOT NULL,
    project_id BIGINT NOT NULL,
    branch_name TEXT NOT NULL,
    commits BIGINT NOT NULL,
    CONSTRAINT tsuzuki_pk_commit_rollups PRIMARY KEY (rollup_id),
    CONSTRAINT tsuzuki_uq_commit_rollups_project_id_branch_name UNIQUE (project_id, branch_name),
    CONSTRAINT tsuzuki_fk_commit_rollups_project_id FOREIGN KEY(project_id) REFERENCES projects (project_id)
);

-- Where each branch stands: up to `head_sha` everything is stored.
CREATE TABLE tsuzuki_commit_targets (
    project_id BIGINT NOT NULL,
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
    project_id BIGINT NOT NULL,
    month TEXT NOT NULL,
    author_email TEXT NOT NULL,
    author_name TEXT NOT NULL,
    commits BIGINT NOT NULL,
    additions BIGINT NOT NULL,
    deletions BIGINT NOT NULL,
    CONSTRAINT tsuzuki_pk_commit_totals PRIMARY KEY (project_id, month, author_email, author_name),
    CONSTRAINT tsuzuki_fk_commit_totals_project_id FOREIGN KEY(project_id) REFERENCES projects (project_id)
);

-- What a person should know about a target that went well.
CREATE TABLE tsuzuki_bulk_collection_notes (
    run_id TEXT NOT NULL,
    project_id BIGINT NOT NULL,
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
    project_id BIGINT NOT NULL,
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
    project_id BIGINT NOT NULL,
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
    author_id BIGINT NOT NULL,
    merge_state INTEGER NOT NULL,
    commits BIGINT NOT NULL,
    additions BIGINT NOT NULL,
    deletions BIGINT NOT NULL,
    CONSTRAINT tsuzuki_pk_commit_days PRIMARY KEY (day, author_id, merge_state),
    CONSTRAINT tsuzuki_fk_commit_days_author_id FOREIGN KEY(author_id) REFERENCES tsuzuki_commit_authors (author_id)
);

-- Commits by author and month. A month is the number 202402; 0 is a date that cannot be read.
CREATE TABLE tsuzuki_commit_months (
    rollup_id BIGINT NOT NULL,
    author_id BIGINT NOT NULL,
    merge_state INTEGER NOT NULL,
    month INTEGER NOT NULL,
    commits BIGINT NOT NULL,
    additions BIGINT NOT NULL,
    deletions BIGINT NOT NULL,
    CONSTRAINT tsuzuki_pk_commit_months PRIMARY KEY (rollup_id, author_id, merge_state, month),
    CONSTRAINT tsuzuki_fk_commit_months_author_id FOREIGN KEY(author_id) REFERENCES tsuzuki_commit_authors (author_id)
);

-- feeds -----------------------------------------------------------------------------------------------

-- Every article by its link, with its state and reason; never deleted.
CREATE TABLE items (
    id BIGSERIAL NOT NULL,
    url TEXT NOT NULL,
    title TEXT NOT NULL,
    published_at TIMESTAMP WITH TIME ZONE NOT NULL,
    status INTEGER NOT NULL,
    reason INTEGER,
    retry_count INTEGER NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    last_checked_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT tsuzuki_pk_items PRIMARY KEY (id),
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
    limits_read_at TIMESTAMP WITH TIME ZONE,
    limited_until TIMESTAMP WITH TIME ZONE,
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
    parked_until TIMESTAMP WITH TIME ZONE NOT NULL,
    probe_at TIMESTAMP WITH TIME ZONE NOT NULL,
    why TEXT NOT NULL,
    CONSTRAINT tsuzuki_pk_feed_models PRIMARY KEY (model)
);

-- Where each feed is, and what its last fetch gave.
CREATE TABLE tsuzuki_feeds (
    id BIGSERIAL NOT NULL,
    job_name TEXT NOT NULL,
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    moved_to TEXT,
    etag TEXT,
    last_modified TEXT,
    is_conditional BOOLEAN NOT NULL,
    body_hash TEXT,
    title TEXT,
    first_good_at TIMESTAMP WITH TIME ZONE,
    tried_at TIMESTAMP WITH TIME ZONE,
    good_at TIMESTAMP WITH TIME ZONE,
    full_at TIMESTAMP WITH TIME ZONE,
    new_at TIMESTAMP WITH TIME ZONE,
    failing_since TIMESTAMP WITH TIME ZONE,
    failures INTEGER NOT NULL,
    error TEXT,
    not_before TIMESTAMP WITH TIME ZONE,
    ended_at TIMESTAMP WITH TIME ZONE,
    removed_at TIMESTAMP WITH TIME ZONE,
    held_by_run BIGINT,
    CONSTRAINT tsuzuki_pk_feeds PRIMARY KEY (id),
    CONSTRAINT tsuzuki_ck_feeds_failures CHECK (failures >= 0),
    CONSTRAINT tsuzuki_ck_feeds_failing_since CHECK ((failures = 0) = (failing_since IS NULL)),
    CONSTRAINT tsuzuki_uq_feeds_job_name_name UNIQUE (job_name, name)
);

-- Which feeds listed an item; the first of them owns it.
CREATE TABLE tsuzuki_feed_items (
    feed_id BIGINT NOT NULL,
    item_id BIGINT NOT NULL,
    first_seen_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT tsuzuki_pk_feed_items PRIMARY KEY (feed_id, item_id),
    CONSTRAINT tsuzuki_fk_feed_items_feed_id FOREIGN KEY(feed_id) REFERENCES tsuzuki_feeds (id),
    CONSTRAINT tsuzuki_fk_feed_items_item_id FOREIGN KEY(item_id) REFERENCES items (id)
);
CREATE INDEX tsuzuki_ix_feed_items_item_id ON tsuzuki_feed_items (item_id);

-- The outbox: one row for each post, edit or reply, written before anything is sent.
CREATE TABLE tsuzuki_feed_posts (
    id BIGSERIAL NOT NULL,
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
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    changed_at TIMESTAMP WITH TIME ZONE NOT NULL,
    sent_by_run BIGINT,
    error TEXT,
    looks INTEGER DEFAULT '0' NOT NULL,
    absences INTEGER DEFAULT '0' NOT NULL,
    next_look_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT tsuzuki_pk_feed_posts PRIMARY KEY (id),
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
    first_seen_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT tsuzuki_pk_feed_unusable_entries PRIMARY KEY (feed_id, entry_hash),
    CONSTRAINT tsuzuki_fk_feed_unusable_entries_feed_id FOREIGN KEY(feed_id) REFERENCES tsuzuki_feeds (id)
);

-- What the feed said about an item, and why one was never worked on.
CREATE TABLE tsuzuki_item_details (
    item_id BIGINT NOT NULL,
    feed_id BIGINT NOT NULL,
    canonical_url TEXT NOT NULL,
    author TEXT,
    categories TEXT NOT NULL,
    excerpt TEXT NOT NULL,
    attachments TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    changed_at TIMESTAMP WITH TIME ZONE,
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
);

-- The text of an item's page, until the item is processed.
CREATE TABLE tsuzuki_item_pages (
    item_id BIGINT NOT NULL,
    final_url TEXT NOT NULL,
    text TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    downloaded_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT tsuzuki_pk_item_pages PRIMARY KEY (item_id),
    CONSTRAINT tsuzuki_fk_item_pages_item_id FOREIGN KEY(item_id) REFERENCES items (id)
);

-- Every download, screening and summary, with tokens and cost.
CREATE TABLE tsuzuki_item_steps (
    id BIGSERIAL NOT NULL,
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
    started_at TIMESTAMP WITH TIME ZONE NOT NULL,
    ended_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT tsuzuki_pk_item_steps PRIMARY KEY (id),
    CONSTRAINT tsuzuki_ck_item_steps_step CHECK (step IN ('download', 'screening', 'summary')),
    CONSTRAINT tsuzuki_ck_item_steps_state CHECK (state IN ('started', 'done', 'failed')),
    CONSTRAINT tsuzuki_ck_item_steps_ended_at CHECK ((state = 'started') = (ended_at IS NULL)),
    CONSTRAINT tsuzuki_ck_item_steps_tokens CHECK (input_tokens >= 0 AND output_tokens >= 0),
    CONSTRAINT tsuzuki_fk_item_steps_item_id FOREIGN KEY(item_id) REFERENCES items (id)
);
CREATE INDEX tsuzuki_ix_item_steps_item_id ON tsuzuki_item_steps (item_id, id);

-- One row for each item that is not processed: whether it may be drawn, and who has taken it.
CREATE TABLE tsuzuki_waiting_items (
    item_id BIGINT NOT NULL,
    feed_id BIGINT,
    state TEXT NOT NULL,
    is_pending BOOLEAN NOT NULL,
    order_at TIMESTAMP WITH TIME ZONE NOT NULL,
    not_before TIMESTAMP WITH TIME ZONE,
    held_by_run BIGINT,
    drawn_by_run BIGINT,
    is_approved BOOLEAN DEFAULT false NOT NULL,
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
-- `items`. A pending item is drawn by when it was published, any other by when it was checked last.

CREATE FUNCTION tsuzuki_items_waiting_insert() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tsuzuki_waiting_items (item_id, state, is_pending, order_at)
    SELECT
        item.id, 'ready', item.status = 2,
        CASE WHEN item.status = 2 THEN item.published_at ELSE item.last_checked_at END
    FROM added AS item
    WHERE item.status <> 3
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;

CREATE TRIGGER tsuzuki_items_waiting_insert AFTER INSERT ON items
REFERENCING NEW TABLE AS added FOR EACH STATEMENT
EXECUTE FUNCTION tsuzuki_items_waiting_insert();

CREATE FUNCTION tsuzuki_items_waiting_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM tsuzuki_waiting_items WHERE item_id = NEW.id AND NEW.status = 3;
    UPDATE tsuzuki_waiting_items SET
        is_pending = (NEW.status = 2),
        order_at = CASE WHEN NEW.status = 2 THEN NEW.published_at ELSE NEW.last_checked_at END,
        state = CASE WHEN state = 'approval' THEN 'ready' ELSE state END
    WHERE item_id = NEW.id AND is_pending <> (NEW.status = 2);
    INSERT INTO tsuzuki_waiting_items (item_id, feed_id, state, is_pending, order_at)
    SELECT
        NEW.id, (SELECT feed_id FROM tsuzuki_item_details WHERE item_id = NEW.id), 'ready', NEW.status = 2,
        CASE WHEN NEW.status = 2 THEN NEW.published_at ELSE NEW.last_checked_at END
    WHERE NEW.status <> 3 AND NOT EXISTS (SELECT 1 FROM tsuzuki_waiting_items WHERE item_id = NEW.id);
    RETURN NULL;
END
$$;

CREATE TRIGGER tsuzuki_items_waiting_update AFTER UPDATE OF status ON items FOR EACH ROW
WHEN (NEW.status <> OLD.status)
EXECUTE FUNCTION tsuzuki_items_waiting_update();
