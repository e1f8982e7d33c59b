"""Turns events into runs of the jobs that subscribe to them, first in, first out.

The runs and the mark that the event is processed are one transaction. Each run's idempotency key is made of
event and job, so an event starts a job once even if it is processed twice. For a disabled job the run is recorded as
skipped.
"""

from collections.abc import Sequence

from tsuzuki.engine.leader.skips import store_skipped
from tsuzuki.model.job import Job
from tsuzuki.model.run import NewRun
from tsuzuki.model.states import Reason, Trigger
from tsuzuki.store import events, jobs
from tsuzuki.store.events import Event
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import runs
from tsuzuki.store.sql.database import Database

EVENTS_MAX = 200
RUNS_MAX = 200
"""Events, and runs that they start, per transaction, so that it stays short. One event may start more."""


class EventIntake:
    def __init__(self, *, database: Database) -> None:
        self._database = database

    def tick(self, term: Term) -> int:
        """Process the oldest unprocessed events. Returns how many."""
        with self._database.read() as connection:
            unprocessed = events.unprocessed(connection, limit=EVENTS_MAX)
            if not unprocessed:
                return 0
            subscribed = jobs.find_by_event(connection, [event.event_type for event in unprocessed])
        enabled = {job.id for job in subscribed if job.spec.enabled}
        wanted = _first_runs(unprocessed, subscribed)
        with self._database.write() as connection:
            processed = events.mark_processed(connection, term=term, event_ids=[*wanted])
            created = [
                run for event_id in wanted if event_id in processed for run in wanted[event_id]
            ]
            runs.create(
                connection, [run for run in created if run.job_definition_id in enabled], term=term
            )
            skipped = [run for run in created if run.job_definition_id not in enabled]
            store_skipped(connection, skipped, Reason.JOB_DISABLED, term)
        return len(processed)


def _first_runs(unprocessed: Sequence[Event], subscribed: Sequence[Job]) -> dict[int, list[NewRun]]:
    """The runs of the first events, by event, up to the limit of a transaction."""
    wanted: dict[int, list[NewRun]] = {}
    count = 0
    for event in unprocessed:
        of_event = [
            _run_for(event, job) for job in subscribed if job.spec.on_event == event.event_type
        ]
        count += len(of_event)
        if wanted and count > RUNS_MAX:
            break
        wanted[event.id] = of_event
    return wanted


def _run_for(event: Event, job: Job) -> NewRun:
    key_source = event.payload if isinstance(event.payload, dict) else {}
    return NewRun(
        job_definition_id=job.id,
        trigger=Trigger.EVENT,
        scheduled_for=event.created_at,
        arguments=job.spec.arguments,
        priority=job.spec.priority,
        idempotency_key=f"event:{event.id}:{job.id}",
        concurrency_key=job.spec.key_for({**job.spec.arguments, **key_source}),
        event_id=event.id,
    )
