-- What a run was created with, as `tsuzuki_job_runs_fixed` guards the other columns.
CREATE TRIGGER tsuzuki_job_runs_blocked_by BEFORE UPDATE OF blocked_by ON tsuzuki_job_runs
WHEN OLD.blocked_by IS NOT NEW.blocked_by
BEGIN
    SELECT RAISE(ABORT, 'tsuzuki: what a run was created with does not change');
END;
