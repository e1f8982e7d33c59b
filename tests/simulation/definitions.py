"""Every job definition that was ever stored, as the store's triggers have recorded it, with the ticks that it owes."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from simulation.violations import InvariantViolated
from tsuzuki.model.job import JobSpec
from tsuzuki.model.schedule import Schedule
from tsuzuki.store import jobs
from tsuzuki.store.sql.stored_values import to_text

if TYPE_CHECKING:
    from simulation.world import World

CHANGES_SQL = "SELECT seq, job_id, changed_at, is_deleted FROM sim_definitions WHERE seq > ?"
TIMED_RUNS_SQL = (
    "SELECT scheduled_for, covers_ticks, covers_until, reason FROM tsuzuki_job_runs"
    " WHERE job_definition_id = ? AND trigger = 'time' ORDER BY scheduled_for"
)
REASONS_OF_CHANGES = {"schedule_changed", "job_disabled", "job_deleted"}


@dataclass(frozen=True, kw_only=True)
class Span:
    """A stretch of time in which a job owed the same ticks: after `since`, until the next one. An edit that leaves the
    schedule as it is begins none: due ticks are still to be planned after it."""

    since: str
    schedule: Schedule | None
    is_enabled: bool


class Definitions:
    def __init__(self, world: "World") -> None:
        self._world = world
        self._raw = world.store.raw
        self.specs: dict[int, JobSpec] = {}
        self._spans: dict[int, list[Span]] = {}
        self._seen = 0
        self._planned_until: dict[int, str] | None = None
        """At the end: how far the ticks of each job are checked."""
        self.read_changes()

    def close(self) -> None:
        """From now on schedules are removed: ticks are checked as far as they are planned."""
        self._planned_until = {job_id: self._planned(job_id) for job_id in self._spans}

    def read_changes(self) -> None:
        if self._planned_until is not None:
            return
        for seq, job_id, changed_at, is_deleted in self._raw.execute(CHANGES_SQL, (self._seen,)):
            self._seen = seq
            job = jobs.get(self._world.store.connection, job_id)
            if job is None:
                raise InvariantViolated(f"the definition {job_id} is gone")
            if job_id in self.specs:
                self._world.log(f"the job {job.spec.name} is changed")
            self.specs[job_id] = job.spec
            span = Span(
                since=changed_at,
                schedule=None if is_deleted else job.spec.schedule,
                is_enabled=job.spec.enabled,
            )
            spans = self._spans.setdefault(job_id, [])
            if not (spans and spans[-1] == replace(span, since=spans[-1].since)):
                spans.append(span)

    def name(self, job_id: int) -> str:
        return self.specs[job_id].name

    def present(self) -> list[JobSpec]:
        """Of the jobs that were not removed."""
        return [spec for job_id, spec in self.specs.items() if self.is_present(job_id)]

    def is_present(self, job_id: int) -> bool:
        """Whether the job was not removed."""
        found = self._raw.execute(
            "SELECT deleted_at IS NULL FROM tsuzuki_job_definitions WHERE id = ?", (job_id,)
        )
        return bool(found.fetchone()[0])

    def scheduled(self) -> Iterator[tuple[Schedule, str]]:
        """The schedule of each job that is enabled now, and until when it is planned."""
        for job_id, spans in self._spans.items():
            if (schedule := spans[-1].schedule) is not None and spans[-1].is_enabled:
                yield schedule, self._planned(job_id)

    def check_ticks(self) -> None:
        """Each tick is there once, as a run or as a recorded skip, as far as the job is planned."""
        for job_id, planned_until in (self._planned_until or {}).items():
            self._check_ticks_of(job_id, planned_until)

    def _check_ticks_of(self, job_id: int, planned_until: str) -> None:
        due, possible = self._ticks(job_id, planned_until)
        covered: list[str] = []
        skipped_by_change = 0
        for first, count, last, reason in self._raw.execute(TIMED_RUNS_SQL, (job_id,)):
            ticks = [tick for tick in sorted(possible) if first <= tick <= (last or first)]
            if len(ticks) != count:
                raise InvariantViolated(
                    f"job {job_id}: {first} stands for {count} ticks, found {ticks}"
                )
            covered += ticks
            skipped_by_change += count if reason in REASONS_OF_CHANGES else 0
        if len(set(covered)) != len(covered) or not due <= set(covered):
            wrong = sorted(due - set(covered)) or sorted(covered)
            raise InvariantViolated(f"job {job_id}: ticks {wrong} are wrong")
        self._world.coverage["ticks were skipped by a change"] += skipped_by_change

    def _ticks(self, job_id: int, planned_until: str) -> tuple[set[str], set[str]]:
        """The ticks that must be covered; and those that may be: of a disabled job they are recorded when it is
        enabled, and only then."""
        due: set[str] = set()
        possible: set[str] = set()
        spans = self._spans[job_id]
        ends = [span.since for span in spans[1:]] + [planned_until]
        is_enabled_after = [span.is_enabled for span in spans[1:]] + [False]
        for span, until, is_enabled_next in zip(spans, ends, is_enabled_after, strict=True):
            if span.schedule is not None:
                ticks = set(ticks_between(span.schedule, span.since, until))
                possible |= ticks
                due |= ticks if span.is_enabled or is_enabled_next else set()
        return due, possible

    def _planned(self, job_id: int) -> str:
        found = self._raw.execute(
            "SELECT planned_until FROM tsuzuki_job_definitions WHERE id = ?", (job_id,)
        )
        return str(found.fetchone()[0])


def ticks_between(schedule: Schedule, after: str, until: str) -> Iterator[str]:
    tick = datetime.fromisoformat(after)
    while to_text(tick := schedule.next_after(tick)) <= until:
        yield to_text(tick)
