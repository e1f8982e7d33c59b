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
