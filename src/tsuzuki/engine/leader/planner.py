"""Plans jobs: turns due ticks into runs, and into recorded skips. Each tick exactly once, across leaders.

A job's runs, its skips and how far it has been planned are one transaction under the leader's term: after a
crash, or a change of leader in the middle, the next planning starts exactly where the last one ended.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from tsuzuki.engine.leader.skips import store_skipped
from tsuzuki.engine.log import log
from tsuzuki.model.job import Job, JobEdition
from tsuzuki.model.misfire import Misfire, TickPlan
from tsuzuki.model.overlap import ConcurrencyPolicy, decide_ticks
from tsuzuki.model.run import Run
from tsuzuki.model.schedule import UnreadableSchedule
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import Reason
from tsuzuki.store import jobs
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import cancel_requests, moves, runs
from tsuzuki.store.sql.database import Connection, Database
from tsuzuki.store.wakeups import channels


@dataclass(kw_only=True)
class PlanningResult:
    """What one planning did, and when by the database's clock; `next_at` is the next tick of any job.
    Unless `is_complete`, a tick that was due could not be planned."""

    now: datetime
    created: int = 0
    skipped: int = 0
    more: bool = False
    next_at: datetime | None = None
    is_complete: bool = True


class Planner:
    def __init__(self, *, database: Database, settings: Callable[[], EngineSettings]) -> None:
        self._database = database
        self._settings = settings
        self._jobs: dict[int, Job] = {}
        # Cached by job: computing a schedule's next tick costs more than reading a row, and it does not
        # change while the job and its planned_until do not.
        self._next: dict[int, tuple[JobEdition, datetime, datetime]] = {}
        self._unreadable: dict[int, JobEdition] = {}
        """Jobs that were logged as unreadable, as they were then."""

    def tick(self, term: Term) -> PlanningResult:
        """Plan every job that is due."""
        with self._database.read() as connection:
            scheduled = jobs.find_scheduled(
                connection, known=self._jobs, on_unreadable=self._on_unreadable
            )
            now = self._database.now(connection)
        self._jobs = {job.id: job for job in scheduled}
        planned = PlanningResult(now=now)
        upcoming: list[datetime] = []
        for job in scheduled:
            is_due = self._next_tick(job) <= now
            after = self._plan(job, term, now, planned) if is_due else job
            upcoming.append(self._next_tick(after))
        planned.next_at = min((tick for tick in upcoming if tick > now), default=None)
        planned.is_complete = all(tick > now for tick in upcoming)
        return planned

    def _on_unreadable(self, job: Job, schedule: UnreadableSchedule) -> None:
        """Its ticks wait for a leader on a machine that can read it; the other jobs are planned, and its runs are
        executed."""
        if self._unreadable.get(job.id) == job.edition:
            return
        self._unreadable[job.id] = job.edition
        problem = schedule.problem
        log.error(
            "job not planned in this round",
            job=job.spec.name,
            error=problem.message,
            hint=problem.hint,
        )

    def _next_tick(self, job: Job) -> datetime:
        """When the next tick is to be planned: its time, and the offset of the job's spread."""
        cached = self._next.get(job.id)
        if cached is not None and cached[:2] == (job.edition, job.planned_until):
            return cached[2]
        if job.spec.schedule is None:
            raise ValueError(f"job {job.spec.name} has no schedule")
        due_at = job.spec.schedule.next_after(job.planned_until) + job.spec.spread_offset
        self._next[job.id] = (job.edition, job.planned_until, due_at)
        return due_at

    def _plan(self, job: Job, term: Term, now: datetime, planned: PlanningResult) -> Job:
        """Returns the job as it is afterwards."""
        plan = job.plan_ticks(now, grace_seconds=self._settings().misfire_grace_seconds)
        if plan is None:
            return job
        with self._database.write() as connection:
            # First the compare-and-set: of two plannings of the same stretch, only one can win it.
            if not jobs.advance_planning(
                connection, term=term, job=job, planned_until=plan.planned_until
            ):
                return job
            planned.skipped += self._record_skips(connection, job, plan, term)
            created, skipped = self._create(connection, job, plan, term, now)
        planned.created += created
        planned.skipped += skipped
        planned.more = planned.more or plan.more
        return replace(job, planned_until=plan.planned_until)

    def _record_skips(self, connection: Connection, job: Job, plan: TickPlan, term: Term) -> int:
        late = [job.record_of(ticks) for ticks in plan.skipped]
        return store_skipped(connection, late, Reason.LATE, term)

    def _create(
        self, connection: Connection, job: Job, plan: TickPlan, term: Term, now: datetime
    ) -> tuple[int, int]:
        if not plan.run:
            return 0, 0
        # Under `allow` nothing depends on them, and there may be thousands.
        is_free = job.spec.concurrency_policy is ConcurrencyPolicy.ALLOW
        live = [] if is_free else runs.find_live_now(connection, job.id, now=now)
        decided = decide_ticks(
            plan.run,
            job.spec.concurrency_policy,
            live=len(live),
            limit=job.spec.concurrency_limit,
            queues=plan.missed and job.spec.misfire is Misfire.ALL,
        )
        if decided.replaces_live:
            _replace(connection, live, term)
        replaced = [job.run_for(tick) for tick in decided.replaced]
        skipped = store_skipped(connection, replaced, Reason.REPLACED, term)
        wanted = [job.run_for(tick) for tick in decided.start]
        created = [
            run_id for run_id in runs.create(connection, wanted, term=term) if run_id is not None
        ]
        blocked_by = live[0].id if live else next(iter(created), None)
        overlapping = [job.run_for(tick)._replace(blocked_by=blocked_by) for tick in decided.skip]
        skipped += store_skipped(connection, overlapping, Reason.OVERLAP, term)
        return len(created), skipped


def _replace(connection: Connection, live: Sequence[Run], term: Term) -> None:
    """Cancel the runs, or request it for those whose row is locked: they only keep the new run waiting."""
    replaced = moves.replace(connection, term=term, runs=[run.ref for run in live])
    left = [run.id for run in live if run.id not in replaced]
    cancel_requests.add(
        connection, left, reason=Reason.REPLACED, requested_by=term.holder, term=term
    )
    # The workers that run them are to stop them before the new run has gone far.
    channels.notify(connection, *map(channels.holder_of, live))
