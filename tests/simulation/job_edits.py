"""Edits of jobs by an operator, in the middle of everything: as the API and `job apply` make them."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from tsuzuki.model.errors import NotFound
from tsuzuki.model.job import JobSpec
from tsuzuki.model.misfire import Misfire
from tsuzuki.model.schedule import parse_schedule
from tsuzuki.services import job_changes
from tsuzuki.store import jobs
from tsuzuki.store.sql.database import Connection

if TYPE_CHECKING:
    from simulation.client import Client

SCHEDULES = tuple(map(parse_schedule, ("every 1s", "every 2s", "every 3s")))
EDITED = ("steady", "eager", "newest", "punctual", "asked", "keyed")
RENAMED = "-renamed"


class JobEdits:
    """Of an operator. No limit is edited: a leader may assign by the one it has just read."""

    def __init__(self, client: "Client") -> None:
        self._client = client
        self._world = client.world
        self._removed: list[JobSpec] = []

    def edit_job(self) -> None:
        """Another schedule, or something that leaves the ticks as they are."""
        random, spec = self._world.random, self._some_job()
        if spec.schedule is None or random.random() < 0.3:
            edited = replace(spec, priority=random.choice((0, 5)))
        else:
            schedule, misfire = random.choice(SCHEDULES), random.choice(tuple(Misfire))
            edited = replace(spec, schedule=schedule, misfire=misfire)
        self._change(
            "edits", spec, lambda c: job_changes.edit(c, edited, version=None, actor=self._actor)
        )

    def switch_job(self) -> None:
        spec = self._some_job()
        self._change(
            "disables" if spec.enabled else "enables",
            spec,
            lambda c: job_changes.set_enabled(c, spec.name, not spec.enabled, actor=self._actor),
        )

    def remove_job(self) -> None:
        spec = self._some_job()
        self._change("removes", spec, lambda c: job_changes.remove(c, spec.name, actor=self._actor))
        self._removed.append(spec)

    def add_job_again(self) -> None:
        if not self._removed:
            raise NotFound("no job was removed")
        spec = self._removed.pop()
        self._change("adds", spec, lambda c: job_changes.create(c, spec, actor=self._actor))

    def rename_job(self) -> None:
        """In one transaction, as a file is applied in which a job has another name."""
        spec = self._some_job()
        other = spec.name.removesuffix(RENAMED)
        renamed = replace(spec, name=other + RENAMED if other == spec.name else other)

        def rename(connection: Connection) -> None:
            job_changes.remove(connection, spec.name, actor=self._actor)
            job_changes.create(connection, renamed, actor=self._actor)

        self._change("renames", spec, rename)

    @property
    def _actor(self) -> str:
        return self._client.name

    def _change(self, verb: str, spec: JobSpec, change: Callable[[Connection], None]) -> None:
        self._world.log(f"{self._actor} {verb} {spec.name}")
        with self._client.database.write() as connection:
            change(connection)
        self._world.coverage[f"an operator {verb} a job"] += 1

    def _some_job(self) -> JobSpec:
        """One that has a schedule with a higher probability."""
        random = self._world.random
        with self._client.database.read() as connection:
            found = [job.spec for job in jobs.find(connection)]
        edited = [spec for spec in found if spec.name.removesuffix(RENAMED) in EDITED]
        timed = [spec for spec in edited if spec.schedule is not None]
        if not edited:
            raise NotFound("every job was removed")
        return random.choice(timed if timed and random.random() < 0.7 else edited)
