"""Look up a run or job by its number, name or key, with the same error everywhere if there is none."""

from collections.abc import Iterable

from tsuzuki.model.errors import Conflict, NotFound
from tsuzuki.model.job import Job
from tsuzuki.model.run import Run
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.suggestion import did_you_mean
from tsuzuki.store import jobs
from tsuzuki.store.runs import runs
from tsuzuki.store.sql.database import Connection


def require_run(connection: Connection, run_id: int) -> Run:
    run = runs.get(connection, run_id)
    if run is None:
        raise NotFound(f"there is no run {run_id}", hint="See: tsuzuki run ls", code="run_unknown")
    return run


def require_job(connection: Connection, name: str) -> Job:
    job = jobs.get_by_name(connection, name)
    if job is None:
        raise job_unknown(name, (job.spec.name for job in jobs.find(connection)))
    return job


def require_jobs(connection: Connection, wanted: RunFilter) -> None:
    """Every job that a filter of runs names must be there."""
    alone = () if wanted.job_name is None else (wanted.job_name,)
    for name in sorted({*alone, *wanted.job_names}):
        require_job(connection, name)


def job_unknown(name: str, known: Iterable[str]) -> NotFound:
    return NotFound(
        f"there is no job {name!r}",
        hint=did_you_mean(name, list(known))
        + "See: tsuzuki job ls. Jobs added to the file are applied with: tsuzuki job apply",
        code="job_unknown",
    )


def key_used(key: str | None, run: Run) -> Conflict:
    """The key of a request has a run already, of another job or with other arguments."""
    return Conflict(
        f"the key {key!r} was already used for run {run.id} with another job or other arguments",
        hint="Use a new key for each run.",
        code="run_key_used",
    )
