-- A run of an isolated function can end with its process.
ALTER TABLE tsuzuki_job_runs
    DROP CONSTRAINT tsuzuki_ck_job_runs_reason,
    ADD CONSTRAINT tsuzuki_ck_job_runs_reason
        CHECK (reason IN ('handler_failed', 'handler_unknown', 'crashed', 'memory_limit', 'arguments_invalid',
            'timeout', 'worker_lost', 'worker_silent', 'worker_shutdown', 'not_confirmed', 'orphan_limit', 'late',
            'overlap', 'replaced', 'operator', 'job_deleted', 'schedule_changed', 'job_disabled'));
