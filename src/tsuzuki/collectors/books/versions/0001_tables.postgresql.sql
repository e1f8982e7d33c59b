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
