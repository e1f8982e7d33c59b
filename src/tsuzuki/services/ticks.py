"""Ticks: prove that every tick between two moments became a run or a recorded skip.

Each job's schedule says what was due when; across edits, the audit log does. Ticks not planned yet are not judged,
nor ticks within `EDIT_MARGIN` of an edit, because the audit log's time of an edit is not exactly the time up to
which its ticks were settled.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from tsuzuki.model.job import Job
from tsuzuki.model.schedule import Schedule, UnreadableSchedule, read_stored
from tsuzuki.model.verification import Comparison, FaultKind, Verified
from tsuzuki.store import audit, jobs, settings
from tsuzuki.store.runs import ticks
from tsuzuki.store.runs.ticks import TickRun
from tsuzuki.store.sql.database import Database

EDIT_MARGIN = timedelta(seconds=60)
ADVANCE_TICKS = 1000
_AUDIT_PAGE = 200


@dataclass(frozen=True, kw_only=True)
class _Edition:
    """What a job's planning went by for a time. `spread` is the bound of the offset of its runs."""

    schedule: Schedule | None
    is_enabled: bool
    spread: timedelta

    @classmethod
    def of_columns(cls, columns: dict[str, Any]) -> "_Edition":
        stored = columns["schedule"]
        return cls(
            schedule=read_stored(stored) if stored else None,
            is_enabled=columns["enabled"],
            spread=timedelta(seconds=columns.get("spread_seconds", 0.0)),
        )


@dataclass(frozen=True, kw_only=True)
class _Stretch:
    """The ticks of a schedule from `since` to `until`, both inclusive, each of which has a run or a skip."""

    schedule: Schedule
    since: datetime
    until: datetime


class Ticks:
    def __init__(self, *, database: Database) -> None:
        self._database = database

    def verify(
        self, *, since: datetime, until: datetime | None, advance: Callable[[int], None]
    ) -> Iterator[Verified]:
        """One subject for each job that had a schedule. Without `until`, up to where each job has been planned. Runs
        that the retention may have deleted are not looked for."""
        with self._database.read() as connection:
            found = jobs.find(connection)
            days = settings.load(connection).run_retention_days
            now = self._database.now(connection)
        kept_since = max(since, now - timedelta(days=days)) if days else since
        for job in found:
            end = min(until or job.planned_until, job.planned_until)
            stretches = [*self._stretches(job, kept_since, end)]
            if stretches:
                yield self._verified(job, stretches, advance)

    def _verified(
        self, job: Job, stretches: list[_Stretch], advance: Callable[[int], None]
    ) -> Verified:
        comparison = Comparison(job.spec.name)
        for stretch in reversed(stretches):
            if isinstance(stretch.schedule, UnreadableSchedule):
                return comparison.result(problem=stretch.schedule.problem.message)
            self._compare(job.id, stretch, comparison, advance)
        return comparison.result()

    def _compare(
        self, job_id: int, stretch: _Stretch, comparison: Comparison, advance: Callable[[int], None]
    ) -> None:
        schedule, reported = stretch.schedule, comparison.compared
        stored = self._stored(job_id, stretch)
        run = next(stored, None)
        tick = schedule.next_after(stretch.since - timedelta.resolution)
        while tick <= stretch.until:
            while run is not None and run.last < tick:
                following = next(stored, None)
                if following is not None and following.first == run.first:
                    comparison.add(FaultKind.REPEATED, f"{_named(run.first)} has two runs")
                run = following
            if run is None or run.first > tick:
                comparison.add(FaultKind.MISSING, f"{_named(tick)} has neither a run nor a skip")
                last, count = tick, 1
            else:
                last = max(tick, run.last)
                count = run.covers_ticks if run.first == tick else 1
            comparison.compared += count
            if comparison.compared - reported >= ADVANCE_TICKS:
                advance(comparison.compared - reported)
                reported = comparison.compared
            tick = schedule.next_after(last)
        advance(comparison.compared - reported)

    def _stored(self, job_id: int, stretch: _Stretch) -> Iterator[TickRun]:
        """The runs of ticks of a stretch; first the one of a range that began before it. Read page by page, so that
        no transaction is long."""
        since, until = stretch.since, stretch.until
        with self._database.read() as connection:
            before = ticks.last_before(connection, job_id, since)
        if before is not None and before.last >= since:
            yield before
        last: TickRun | None = None
        while True:
            with self._database.read() as connection:
                page = [*ticks.page(connection, job_id, since=since, until=until, after=last)]
            yield from page
            if len(page) < ticks.PAGE:
                return
            last = page[-1]

    def _stretches(self, job: Job, since: datetime, until: datetime) -> Iterator[_Stretch]:
        """Newest first. Ticks are owed while a job is enabled, and for a pause once it is over."""
        later: _Edition | None = None
        edition: _Edition | None = _Edition(
            schedule=job.spec.schedule,
            is_enabled=job.spec.enabled,
            spread=timedelta(seconds=job.spec.spread_seconds),
        )
        upper = until
        for entry in self._edits(job, since):
            before = None if entry.before is None else _Edition.of_columns(entry.before)
            if before is not None and edition is not None and _is_planned_alike(before, edition):
                continue
            yield from _owed(edition, later, entry.at + EDIT_MARGIN, upper)
            # A tick of the former edition whose spread run was due only after the edit was not settled by it.
            spread = before.spread if before else timedelta()
            upper = min(until, entry.at - spread - EDIT_MARGIN)
            later, edition = edition, before
        lower = max(since, job.created_at + EDIT_MARGIN)
        yield from _owed(edition, later, lower, upper)

    def _edits(self, job: Job, since: datetime) -> Iterator[audit.AuditEntry]:
        """What was done to a job since a moment, newest first."""
        before_id: int | None = None
        while True:
            with self._database.read() as connection:
                entries = audit.find(
                    connection,
                    object_type="job",
                    object_id=job.spec.name,
                    before_id=before_id,
                    limit=_AUDIT_PAGE,
                )
            for entry in entries:
                if entry.at < since:
                    return
                yield entry
            if len(entries) < _AUDIT_PAGE:
                return
            before_id = entries[-1].id


def _is_planned_alike(before: _Edition, after: _Edition) -> bool:
    """Whether an edit left the planning as it was."""
    return replace(before, spread=after.spread) == after


def _owed(
    edition: _Edition | None, later: _Edition | None, since: datetime, until: datetime
) -> Iterator[_Stretch]:
    if edition is None or edition.schedule is None or since > until:
        return
    if edition.is_enabled or (later is not None and later.is_enabled):
        yield _Stretch(schedule=edition.schedule, since=since, until=until)


def _named(tick: datetime) -> str:
    return f"the tick of {tick:%Y-%m-%d %H:%M:%S} UTC"
