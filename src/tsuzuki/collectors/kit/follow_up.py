"""A run asked for at the moment when there is quota again, so that a job goes on by itself."""

from datetime import datetime

from tsuzuki.engine.run_context import RunContext
from tsuzuki.model.run import NewRun
from tsuzuki.model.states import Trigger
from tsuzuki.store import jobs
from tsuzuki.store.runs import runs
from tsuzuki.store.sql.database import Connection


def schedule_run_at(connection: Connection, run: RunContext, moment: datetime) -> None:
    """Ask for one run of the same job, once for each such moment however many runs stop before it."""
    job = jobs.get_by_name(connection, run.job_name)
    if job is None:  # removed meanwhile: nothing goes on
        return
    runs.create(
        connection,
        [
            NewRun(
                job_definition_id=job.id,
                trigger=Trigger.MANUAL,
                scheduled_for=moment,
                arguments=run.arguments,
                priority=job.spec.priority,
                idempotency_key=f"books-quota:{job.id}:{moment:%Y-%m-%dT%H:%MZ}",
                concurrency_key=job.spec.key_for(run.arguments),
            )
        ],
    )
