"""Dry runs: execute due jobs whose type can work without sending anything, and leave them due.

Collectors declare which types can (`Collector.dry_run_arguments`). A scheduled job that has never run counts as
due, so it can be tried before its first tick.
"""

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from tsuzuki.model.errors import Conflict
from tsuzuki.model.job import Job
from tsuzuki.model.run import NewRun, Run
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import Trigger
from tsuzuki.services.acting import ActingService
from tsuzuki.services.due import SKIP, DueItem, DueItems
from tsuzuki.services.job_changes import JobSyncChange
from tsuzuki.services.jobs import Jobs
from tsuzuki.services.local_engine import LocalEngine
from tsuzuki.services.lookup import job_unknown
from tsuzuki.services.runs import Runs
from tsuzuki.store import jobs
from tsuzuki.store.runs import runs
from tsuzuki.store.sql.database import Connection, Database

LOOKED_MAX = 100
"""Of a job's newest runs, so many are looked at for one that was not dry."""


class DryRuns(ActingService):
    """`arguments` are those of a dry run, by kind of job."""

    def __init__(
        self,
        *,
        database: Database,
        arguments: Mapping[str, Mapping[str, Any]],
        due: DueItems,
        jobs: Jobs,
        runs: Runs,
        local_engine: LocalEngine,
    ) -> None:
        self._database = database
        self._arguments = arguments
        self._due = due
        self._jobs = jobs
        self._runs = runs
        self._local_engine = local_engine

    def are_in_file(self) -> bool:
        """Whether the file has a job that can be dry-run."""
        return self._jobs.has_in_file(self._arguments)

    def apply(self) -> list[JobSyncChange]:
        """Bring what the file says of jobs that can be dry-run into the database; of no others. Without such a job
        nothing is written."""
        kinds = [*self._arguments]
        if not self._jobs.apply(dry_run=True, of_kinds=kinds):
            return []
        return self._jobs.apply(of_kinds=kinds)

    def find(self) -> list[DueItem]:
        """Everything due at this moment, and the first runs of new jobs that can be dry-run."""
        found = self._due.find()
        due = {item.job for item in found}
        with self._database.read() as connection:
            now = self._database.now(connection)
            first = [
                _first_run(job, now)
                for job in jobs.find_scheduled(connection)
                if job.spec.name not in due and self._is_new(connection, job)
            ]
        return [*found, *first]

    def runnable(self, found: Sequence[DueItem]) -> list[str]:
        """The jobs of these items that can be dry-run."""
        names = list(dict.fromkeys(item.job for item in found if item.what != SKIP))
        with self._database.read() as connection:
            known = jobs.find_by_name(connection, names)
        return [
            name
            for name in names
            if name in known and known[name].spec.enabled and self._can_run(known[name])
        ]

    def run(self, job_name: str, *, stop: threading.Event) -> Run:
        """Run a job without sending anything, in this process. What made it due is left as it is, and so is what was
        to follow: a dry run is not tried again."""
        with self._database.read() as connection:
            job = jobs.get_by_name(connection, job_name)
        if job is None:  # removed meanwhile
            raise job_unknown(job_name, ())
        arguments = {**job.spec.arguments, **self._arguments[job.spec.handler]}
        wanted = NewRun(
            job_definition_id=job.id,
            trigger=Trigger.MANUAL,
            scheduled_for=None,
            arguments=arguments,
            priority=job.spec.priority,
            concurrency_key=job.spec.key_for(arguments),
        )
        run_id = self._local_engine.run_one(job, wanted, stop=stop)
        return self._without_retry(run_id)

    def _without_retry(self, run_id: int) -> Run:
        view = self._runs.get(run_id)
        for left in (run_id, view.retried_as):
            if left is not None and not self._runs.get(left).run.state.is_final:
                with suppress(Conflict):  # it has just ended
                    self._runs.cancel(left)
        return self._runs.get(run_id).run

    def _can_run(self, job: Job) -> bool:
        return job.spec.handler in self._arguments

    def _is_new(self, connection: Connection, job: Job) -> bool:
        if not self._can_run(job):
            return False
        dry = self._arguments[job.spec.handler].items()
        newest = runs.find(connection, RunFilter(job_name=job.spec.name, limit=LOOKED_MAX))
        return all(dry <= run.arguments.items() for run in newest)


def _first_run(job: Job, now: datetime) -> DueItem:
    return DueItem(job=job.spec.name, scheduled_for=now, what="first run")
