"""A worker's abilities, kept up to date while it is registered: what it can execute of what jobs ask for.

A worker does not list everything that it could import. It reads which packages jobs name, and registers those that it
finds, without importing them. Read again with every poll: a job may name another package, a package may be installed.
This has a loop of its own, because looking for a package may hang (a network file system) and heartbeats must not.
"""

from collections.abc import Callable, Collection

from tsuzuki.model.abilities import PYTHON_KIND, Abilities
from tsuzuki.model.job import Job
from tsuzuki.store import jobs, workers
from tsuzuki.store.sql.database import Database

FindAbilities = Callable[[Collection[str]], Abilities]
"""What this process can execute, given the packages that jobs name."""


class WorkerAbilities:
    """`current` is what the worker registers with; `tick` stores what has changed since."""

    def __init__(self, *, database: Database, find: FindAbilities) -> None:
        self.current: Abilities | None = None
        self._database = database
        self._find = find
        self._jobs: dict[int, Job] = {}
        self._stored: tuple[str, Abilities] | None = None

    def refresh(self) -> Abilities:
        with self._database.read() as connection:
            found = jobs.find_of_kind(connection, PYTHON_KIND, known=self._jobs)
        self._jobs = {job.id: job for job in found}
        packages = {package for job in found if (package := job.spec.needs.package)}
        self.current = self._find(packages)
        return self.current

    def tick(self, worker_id: str) -> None:
        """Look again, and store it for this worker unless it is stored."""
        wanted = worker_id, self.refresh()
        if wanted == self._stored:
            return
        with self._database.write() as connection:
            workers.set_abilities(connection, *wanted)
        self._stored = wanted
