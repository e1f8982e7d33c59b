"""A program that uses the library: it defines jobs and submits runs in transactions of its own, and rolls some back."""

from typing import TYPE_CHECKING

from support.factories import spec
from tsuzuki.model.errors import Conflict
from tsuzuki.model.job import JobSpec
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.services import job_changes
from tsuzuki.services.runs import Request, Runs

if TYPE_CHECKING:
    from simulation.client import Client


class LibraryUse:
    """Of an operator's process."""

    def __init__(self, client: "Client") -> None:
        self._client = client
        self._world = client.world
        self._runs = Runs(database=client.database, actor=client.name)
        self._names = 0

    def roll_back(self) -> None:
        """A job and its run are rolled back; another job gets its id. Then the first is submitted again by its name,
        which is not known any more."""
        lost = self._new_name()
        try:
            with self._client.database.write() as connection:
                job_changes.define(connection, [_job(lost)], actor=self._client.name)
                self._runs.submit_many([Request(job=lost)], connection=connection)
                raise Conflict("the caller rolls back", code="rolled_back")
        except Conflict as problem:
            self._world.coverage["a caller rolled back"] += problem.specific_code == "rolled_back"
        if self._world.random.random() < 0.7:
            self.define_and_submit()
        self._world.log(f"{self._client.name} submits a run of {lost}, which was rolled back")
        self._world.ledger.runs[self._runs.submit(Request(job=lost)).run_id] = lost

    def define_and_submit(self) -> None:
        """Both in one transaction of the caller's."""
        name = self._new_name()
        with self._client.database.write() as connection:
            job_changes.define(connection, [_job(name)], actor=self._client.name)
            (submission,) = self._runs.submit_many([Request(job=name)], connection=connection)
        self._world.ledger.runs[submission.run_id] = name

    def _new_name(self) -> str:
        self._names += 1
        return f"program-{self._names}"


def _job(name: str) -> JobSpec:
    return spec(name, concurrency_policy=ConcurrencyPolicy.ALLOW)
