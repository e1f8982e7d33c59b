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
