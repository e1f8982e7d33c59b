"""Turns events into runs of the jobs that wait for them, in the order in which they came.

The runs and the mark that the event was seen are one transaction; each run's key names event and job, so
an event starts a job once even if it is taken in twice.
"""

from collections.abc import Sequence

from tsuzuki.model.job import Job
from tsuzuki.model.run import NewRun
from tsuzuki.model.states import Trigger
from tsuzuki.store import events, jobs
from tsuzuki.store.events import Event
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import runs
from tsuzuki.store.sql.database import Database

EVENTS_MAX = 200
"""At most so many events in one transaction."""


class EventIntake:
    def __init__(self, *, database: Database) -> None:
        self._database = database

    def tick(self, term: Term) -> int:
        """Take in what waits. Answers how many events were seen."""
        with self._database.read() as connection:
            waiting = events.unprocessed(connection, limit=EVENTS_MAX)
            if not waiting:
                return 0
            interested = jobs.find_by_event(connection, [event.event_type for event in waiting])
        with self._database.write() as connection:
            taken = events.mark_processed(
                connection, term=term, event_ids=[event.id for event in waiting]
            )
            wanted = [
                _run_for(event, job)
                for event in waiting
                if event.id in taken
                for job in _interested_in(event, interested)
            ]
            runs.create(connection, wanted, term=term)
        return len(taken)


def _interested_in(event: Event, interested: Sequence[Job]) -> list[Job]:
    return [job for job in interested if job.spec.on_event == event.event_type]


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
