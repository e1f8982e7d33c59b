-- The unfinished run because of which a tick was skipped.
ALTER TABLE tsuzuki_job_runs ADD COLUMN blocked_by BIGINT;

-- Skipped runs are counted apart from canceled ones.
ALTER TABLE tsuzuki_run_hours
    DROP CONSTRAINT tsuzuki_ck_run_hours_outcome,
    ADD CONSTRAINT tsuzuki_ck_run_hours_outcome CHECK (outcome IN ('SUCCEEDED', 'FAILED', 'TIMED_OUT', 'CANCELED', 'SKIPPED'));
