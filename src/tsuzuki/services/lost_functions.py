"""Jobs whose function no longer exists in the code, for example after a rename: they must not be started forever."""

from collections.abc import Callable, Sequence

from tsuzuki.model.abilities import PYTHON_KIND
from tsuzuki.model.job import Job, JobSource, JobSpec
from tsuzuki.services import job_changes
from tsuzuki.services.liveness import Liveness
from tsuzuki.store import jobs
from tsuzuki.store.sql.database import Connection, Database


def disable_lost(
    database: Database, is_lost: Callable[[JobSpec], bool], *, actor: str
) -> list[str]:
    """Disable the jobs of the database that start by themselves and whose function is lost, and answer their names.
    A job stays enabled while a live worker has its code: that may be a version that still has the function. Defining
    it again enables it."""
    with database.read() as connection:
        if not _lost(connection, is_lost):
            return []
    live = Liveness(database=database)
    with database.write() as connection:
        jobs.hold(connection)
        workers = live.live_workers(connection)
        gone = [
            job
            for job in _lost(connection, is_lost)
            if not any(worker.can_execute(job.spec.needs) for worker in workers)
        ]
        for job in gone:
            job_changes.set_enabled(connection, job.spec.name, False, actor=actor)
    if gone:
        _log(gone)
    return [job.spec.name for job in gone]


def _log(gone: Sequence[Job]) -> None:
    from tsuzuki.engine.log import log  # noqa: PLC0415 -- slow to load, and rarely needed

    for job in gone:
        function = job.spec.needs.function
        log.warning(
            "job disabled because its function no longer exists",
            job=job.spec.name,
            function=function,
        )


def _lost(connection: Connection, is_lost: Callable[[JobSpec], bool]) -> list[Job]:
    return [
        job
        for job in jobs.find_by_handler(connection, PYTHON_KIND, [])
        if job.source is JobSource.DATABASE
        and job.spec.enabled
        and (job.spec.schedule or job.spec.on_event)
        and is_lost(job.spec)
    ]
