"""Follow-up runs: a job goes on by itself at the moment when there is quota again."""

from datetime import datetime

from tsuzuki.engine.run_context import RunContext
from tsuzuki.model.run import NewRun
from tsuzuki.model.states import Trigger
from tsuzuki.store import jobs
from tsuzuki.store.runs import runs
from tsuzuki.store.sql.database import Connection


def schedule_run_at(
    connection: Connection, run: RunContext, moment: datetime, *, purpose: str
) -> None:
    """Ask for one run of the same job: one for each purpose and moment, however many runs ask."""
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
                idempotency_key=f"{purpose}:{job.id}:{moment:%Y-%m-%dT%H:%MZ}",
                concurrency_key=job.spec.key_for(run.arguments),
            )
        ],
    )
