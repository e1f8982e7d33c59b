"""What is due now: ticks and events that would become runs or skips, and waiting runs."""

from dataclasses import dataclass
from datetime import datetime

from tsuzuki.model.job import Job
from tsuzuki.services.upcoming import Upcoming
from tsuzuki.store import events, jobs, settings
from tsuzuki.store.runs import queue, runs
from tsuzuki.store.sql.database import Connection, Database

WAITING_MAX = 1000
SKIP = "skip (late)"


@dataclass(frozen=True, kw_only=True)
class DueItem:
    """One thing that would happen now. `ticks` is how many ticks it stands for."""

    job: str
    scheduled_for: datetime
    what: str
    ticks: int = 1


class DueItems:
    def __init__(self, *, database: Database) -> None:
        self._database = database
        self.upcoming = Upcoming(database=database)

    def find(self) -> list[DueItem]:
        """Everything due at this moment, oldest first. Nothing is changed."""
        with self._database.read() as connection:
            now = self._database.now(connection)
            grace_seconds = settings.load(connection).misfire_grace_seconds
            scheduled = jobs.find_scheduled(connection)
            waiting = runs.get_many(
                connection,
                [run.ref.id for run in queue.due_runs(connection, limit=WAITING_MAX)],
            )
            of_events = _of_events(connection)
        found = [
            DueItem(
                job=run.job_name, scheduled_for=run.scheduled_for, what=f"run {run.id} is waiting"
            )
            for run in waiting
        ]
        found.extend(of_events)
        for job in scheduled:
            found.extend(_planned(job, now, grace_seconds))
        return sorted(found, key=lambda due: (due.scheduled_for, due.job))


def _of_events(connection: Connection) -> list[DueItem]:
    waiting = events.unprocessed(connection, limit=WAITING_MAX)
    if not waiting:
        return []
    subscribed = jobs.find_by_event(connection, [event.event_type for event in waiting])
    return [
        DueItem(job=job.spec.name, scheduled_for=event.created_at, what=f"run for event {event.id}")
        for event in waiting
        for job in subscribed
        if job.spec.on_event == event.event_type and job.spec.enabled
    ]


def _planned(job: Job, now: datetime, grace_seconds: float) -> list[DueItem]:
    plan = job.plan_ticks(now, grace_seconds=grace_seconds)
    if plan is None:
        return []
    name = job.spec.name
    return [
        *(
            DueItem(job=name, scheduled_for=ticks.first, what=SKIP, ticks=ticks.count)
            for ticks in plan.skipped
        ),
        *(DueItem(job=name, scheduled_for=tick, what="run") for tick in plan.run),
    ]
