"""Failure groups: failures with the same cause, the affected jobs and counts; retry or acknowledge a group."""

from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any

from tsuzuki.model.errors import Conflict, NotFound
from tsuzuki.model.run import Run
from tsuzuki.services.acting import ActingService
from tsuzuki.services.runs import Runs
from tsuzuki.store import audit, failures
from tsuzuki.store.failures import FailureGroup, GroupPosition
from tsuzuki.store.runs import runs
from tsuzuki.store.sql.database import Connection, Database

__all__ = ["FailureGroup", "FailureGroupView", "Failures", "GroupPosition", "GroupRetry"]

WINDOW_SECONDS = 7 * 86_400.0
RUNS_SHOWN_MAX = 50
RETRIED_MAX = 500
"""Runs that are retried in one call; the newest of a group."""


@dataclass(frozen=True, kw_only=True)
class FailureGroupView:
    """A group, the names of the jobs it hit, and its newest runs."""

    group: FailureGroup
    job_names: tuple[str, ...]
    run_ids: tuple[int, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            **group_as_dict(self.group),
            "job_names": list(self.job_names),
            "run_ids": list(self.run_ids),
        }


@dataclass(frozen=True, kw_only=True)
class GroupRetry:
    """The new run of each run that was retried, and which runs were not, with the reason's code."""

    retried: dict[int, int]
    refused: dict[int, str]


def group_as_dict(group: FailureGroup) -> dict[str, Any]:
    values = {field.name: getattr(group, field.name) for field in fields(group)}
    return {**values, "is_open": group.is_open}


class Failures(ActingService):
    def __init__(self, *, database: Database, runs: Runs, actor: str) -> None:
        self._database = database
        self._runs = runs
        self._actor = actor

    def find(
        self,
        *,
        since: datetime | None = None,
        with_acknowledged: bool = False,
        limit: int = 50,
        after: GroupPosition | None = None,
        unresolved: bool = False,
    ) -> list[FailureGroup]:
        """Groups with a failure since then (a week unless said), the newest failure first, with the names of their
        jobs. `after` continues a page. `unresolved`: only failures that still need attention: not acknowledged, and
        no retry has succeeded."""
        with self._database.read() as connection:
            start = since or self._database.now(connection) - timedelta(seconds=WINDOW_SECONDS)
            found = failures.find(
                connection,
                since=start,
                with_acknowledged=with_acknowledged,
                limit=limit,
                after=after,
                unresolved=unresolved,
            )
            names = failures.job_names_of(connection, [group.id for group in found], since=start)
        return [replace(group, job_names=tuple(names[group.id])) for group in found]

    def get(self, group_id: str) -> FailureGroupView:
        """Raises `NotFound`."""
        with self._database.read() as connection:
            return FailureGroupView(
                group=_require(connection, group_id),
                job_names=tuple(failures.job_names(connection, group_id)),
                run_ids=tuple(failures.run_ids(connection, group_id, limit=RUNS_SHOWN_MAX)),
            )

    def group_of_run(self, run_id: int) -> str | None:
        """The id of the group that a run failed in; None if it did not fail."""
        with self._database.read() as connection:
            return failures.group_of_run(connection, run_id)

    def runs(self, group_id: str, *, before_id: int | None = None, limit: int = 50) -> list[Run]:
        """The runs of a group, the newest first. `before_id` continues a page."""
        with self._database.read() as connection:
            _require(connection, group_id)
            found = failures.run_ids(connection, group_id, before_id=before_id, limit=limit)
            return runs.get_many(connection, found)[::-1]

    def retry(self, group_id: str, *, limit: int = RETRIED_MAX) -> GroupRetry:
        """Retry the newest runs of a group that were not retried before, each in a transaction of its own."""
        with self._database.read() as connection:
            _require(connection, group_id)
            run_ids = failures.run_ids(connection, group_id, limit=min(limit, RETRIED_MAX))
        retried: dict[int, int] = {}
        refused: dict[int, str] = {}
        for run_id in run_ids:
            try:
                retried[run_id] = self._runs.retry(run_id).run_id
            except (Conflict, NotFound) as problem:
                refused[run_id] = problem.specific_code
        return GroupRetry(retried=retried, refused=refused)

    def acknowledge(self, group_id: str, *, through: int | None = None) -> FailureGroup:
        """Acknowledge the failures of a group: all, or those of runs up to `through`, which the caller has seen. A
        later failure opens it again. Raises `Conflict` (`failures_acknowledged`) if there is nothing new."""
        with self._database.write() as connection:
            group = _require(connection, group_id)
            last = group.last_run_id if through is None else min(through, group.last_run_id)
            if not failures.acknowledge(connection, group, through=last, actor=self._actor):
                raise Conflict(
                    "these failures were already acknowledged",
                    hint="A new failure reopens the group.",
                    code="failures_acknowledged",
                )
            audit.record(
                connection,
                actor=self._actor,
                action="failures.acknowledge",
                object_type="failure_group",
                object_id=group_id,
                before={"acknowledged_run_id": group.acknowledged_run_id},
                after={"acknowledged_run_id": last, "signature": group.signature},
            )
            return _require(connection, group_id)


def _require(connection: Connection, group_id: str) -> FailureGroup:
    group = failures.get(connection, group_id)
    if group is None:
        raise NotFound(
            f"there is no failure group {group_id!r}",
            hint="Its runs may have been deleted after run_retention_days. See: tsuzuki run "
            "failures ls",
            code="failure_group_unknown",
        )
    return group
