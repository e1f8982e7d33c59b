-- The unfinished run because of which a tick was skipped.
ALTER TABLE tsuzuki_job_runs ADD COLUMN blocked_by INTEGER;

-- Skipped runs are counted apart from canceled ones.
ALTER TABLE tsuzuki_run_hours RENAME TO tsuzuki_run_hours_0001;
DROP INDEX tsuzuki_ix_run_hours_job_definition_id;
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
INSERT INTO tsuzuki_run_hours SELECT hour, job_definition_id, outcome, bucket, runs, seconds FROM tsuzuki_run_hours_0001;
DROP TABLE tsuzuki_run_hours_0001;
