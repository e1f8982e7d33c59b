-- What a run was created with, as `tsuzuki_job_runs_fixed` guards the other columns.
CREATE TRIGGER tsuzuki_job_runs_blocked_by BEFORE UPDATE OF blocked_by ON tsuzuki_job_runs FOR EACH ROW
WHEN (OLD.blocked_by IS DISTINCT FROM NEW.blocked_by)
EXECUTE FUNCTION tsuzuki_refuse('tsuzuki: what a run was created with does not change');
