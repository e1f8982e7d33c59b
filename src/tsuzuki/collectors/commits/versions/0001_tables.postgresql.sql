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
