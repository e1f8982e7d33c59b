"""The overview: one sentence of health, what needs attention, what runs, what is due next, and the last 24 hours."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import ClassVar

from tsuzuki.model.access import Right
from tsuzuki.model.errors import TsuzukiError
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import Outcome, Reason, RunState
from tsuzuki.services.explain import Cause
from tsuzuki.services.workers import EngineStatus
from tsuzuki.web.answers import Model, Moment, SentenceText
from tsuzuki.web.api.failures import FailureGroupOut, group_out
from tsuzuki.web.api.run_models import ListedRun, RunOut, listed_runs, run_out
from tsuzuki.web.pages.context import Page, PageContext
from tsuzuki.web.pages.extension import collector_pages
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.overview_card import Card, cards_of
from tsuzuki.web.pages.route import Screen
from tsuzuki.web.pages.words import Word
from tsuzuki.web.paging import COUNT_MAX, Count, count_of

screen = Screen()

RUNNING_SHOWN = 10
UPCOMING_SHOWN = 10
GROUPS_SHOWN = 5
GROUPS_COUNTED = 100
TROUBLED_SHOWN = 5
TROUBLED_READ = 100
UNSUCCESSFUL = frozenset({Outcome.FAILED, Outcome.TIMED_OUT, Outcome.SKIPPED})
HANDLERS_SHOWN = 5
LATE_AFTER = timedelta(seconds=60)
"""Due work that waits longer is told; a moment of waiting is usual."""

WAITING = frozenset({RunState.PENDING, RunState.ORPHANED})
HELD = frozenset({RunState.ASSIGNED, RunState.RUNNING})


class Health(StrEnum):
    """The worst that holds."""

    NO_LEADER = "no_leader"
    NO_WORKER = "no_worker"
    ATTENTION = "attention"
    GOOD = "good"


class Need(StrEnum):
    """What needs attention."""

    NO_LEADER = "no_leader"
    NO_WORKER = "no_worker"
    SILENT = "silent"
    CONFIRMING = "confirming"
    HANDLER = "handler"
    LOCKED = "locked"
    LATE = "late"
    COLLECTOR = "collector"


NEEDS = {
    Need.NO_LEADER: Word(
        message("No scheduler is running: runs are neither planned nor assigned"), "failed", "bad"
    ),
    Need.NO_WORKER: Word(message("No worker is available"), "failed", "bad"),
    Need.SILENT: Word(message("Worker not responding"), "timed-out", "warn"),
    Need.CONFIRMING: Word(message("Worker awaiting confirmation"), "pending", "warn"),
    Need.HANDLER: Word(message("No worker can run this job"), "failed", "bad"),
    Need.LOCKED: Word(message("Database locked: other processes cannot write"), "pending", "warn"),
    Need.LATE: Word(message("Runs are overdue"), "pending", "warn"),
    Need.COLLECTOR: Word(message("Collector unavailable"), "failed", "bad"),
}


class Attention(Model):
    """`about` names what it is about; `since` when it started; `run_id` the run that causes it."""

    need: Need
    about: str | None = None
    since: Moment | None = None
    detail: SentenceText | None = None
    hint: SentenceText | None = None
    run_id: int | None = None


class EngineLine(Model):
    """Leader and workers in one line; the `holder` only for those who may see workers. `oldest_due_at`: since when the
    oldest due run waits for a worker."""

    is_led: bool
    holder: str | None
    epoch: int
    lease_expires_at: Moment | None
    workers: int
    slots: int
    held: int
    oldest_due_at: Moment | None


class HourOfOutcomes(Model):
    hour: Moment
    until: Moment
    runs: dict[Outcome, int]


class UpcomingOut(Model):
    """A waiting run, or the next tick of a job (`run_id` is null)."""

    job: str
    due_at: Moment
    run_id: int | None
    is_late: bool
    cause: Cause | None


class TroubledJob(Model):
    """The newest failed or skipped `run` of a job, and its last retry. `runs` counts those of the job among the newest
    of all jobs."""

    run: ListedRun
    retry: RunOut | None
    runs: int


class OverviewView(Model):
    """`errors`: of the last run of each failure group.
    `is_new`: there is neither a run nor anything due, and the page teaches the next commands."""

    needs: ClassVar = NEEDS

    health: Health
    attention: list[Attention]
    failures: list[FailureGroupOut]
    errors: dict[int, str]
    failing: int
    troubled: list[TroubledJob]
    engine: EngineLine
    running: list[RunOut]
    running_count: Count
    waiting_count: Count
    ended: dict[Outcome, int]
    hours: list[HourOfOutcomes]
    upcoming: list[UpcomingOut]
    cards: list[Card]
    is_new: bool


@screen.page(
    "/",
    right=Right.RUNS_READ,
    template="screens/overview.html",
    twin="/overview.json",
    shared=True,
)
def overview_page(context: Page) -> OverviewView:
    application = context.application
    status = application.workers.status()
    upcoming = application.due.upcoming.find(limit=UPCOMING_SHOWN)
    oldest = next((item.due_at for item in upcoming if item.run_id and item.is_late), None)
    failures = application.failures.find(
        since=context.viewer.now - timedelta(days=1), limit=GROUPS_COUNTED, unresolved=True
    )
    shown = failures[:GROUPS_SHOWN]
    cards, broken = cards_of(context, collector_pages())
    attention = [*_attention(context, status, oldest), *_unusable(context, broken)]
    running = application.runs.find(RunFilter(states=HELD, limit=RUNNING_SHOWN))
    hours = _hours(context)
    ended = {outcome: sum(hour.runs.get(outcome, 0) for hour in hours) for outcome in Outcome}
    return OverviewView(
        health=_health(attention, bool(failures)),
        attention=attention,
        failures=[group_out(context, group) for group in shown],
        errors=context.mask(application.runs.errors([one.last_run_id for one in shown])),
        failing=len(failures),
        troubled=_troubled(context, {name for group in failures for name in group.job_names}),
        engine=_engine(context, status, oldest),
        running=[run_out(context, run) for run in running],
        running_count=_count(context, HELD),
        waiting_count=_count(context, WAITING),
        ended=ended,
        hours=hours,
        upcoming=[UpcomingOut(**vars(item)) for item in upcoming],
        cards=cards,
        is_new=not upcoming and not running and not _has_runs(context),
    )


def _troubled(context: PageContext, failing: set[str]) -> list[TroubledJob]:
    """Jobs with runs that failed or were skipped in the last day; without those whose failures need attention, and
    without runs that a shutdown ended."""
    since = context.viewer.now - timedelta(days=1)
    wanted = RunFilter(outcomes=UNSUCCESSFUL, finished_from=since, limit=TROUBLED_READ)
    by_job: dict[str, list[ListedRun]] = {}
    for run in listed_runs(context, wanted):
        if run.reason is not Reason.WORKER_SHUTDOWN:
            by_job.setdefault(run.job_name, []).append(run)
    shown = [found for name, found in by_job.items() if name not in failing][:TROUBLED_SHOWN]
    return [
        TroubledJob(run=found[0], retry=_last_retry(context, found[0].id), runs=len(found))
        for found in shown
    ]


def _last_retry(context: PageContext, run_id: int) -> RunOut | None:
    runs = context.application.runs
    view = runs.get(run_id)
    while view.retried_as is not None:
        view = runs.get(view.retried_as)
    return None if view.run.id == run_id else run_out(context, view.run)


def _has_runs(context: PageContext) -> bool:
    return bool(context.application.runs.find(RunFilter(limit=1)))


def _count(context: PageContext, states: frozenset[RunState]) -> Count:
    wanted = RunFilter(states=states)
    return count_of(context.application.runs.count(wanted, at_most=COUNT_MAX + 1))


def _attention(
    context: PageContext, status: EngineStatus, oldest: datetime | None
) -> Iterator[Attention]:
    if not status.is_led:
        yield Attention(need=Need.NO_LEADER)
    if not status.usable and (status.is_led or status.workers):
        yield Attention(need=Need.NO_WORKER)
    may_see_workers = context.principal.may(Right.WORKERS_READ)
    for view in status.workers if may_see_workers else ():
        if status.is_silent(view):
            worker = view.worker
            yield Attention(need=Need.SILENT, about=worker.id, since=worker.heartbeat_at)
    for waiting in status.confirming if may_see_workers else ():
        yield Attention(need=Need.CONFIRMING, about=waiting.worker_id, since=waiting.deadline_at)
    for missing in status.missing_handlers[:HANDLERS_SHOWN]:
        yield Attention(
            need=Need.HANDLER,
            about=missing.job,
            detail=context.mask(missing.sentence),
            hint=context.mask(missing.hint),
        )
    holder = context.application.maintenance.lock_holder()
    if holder is not None and holder.since is not None:
        is_shown = may_see_workers or holder.run_id is not None
        yield Attention(
            need=Need.LOCKED,
            about=context.mask(str(holder)) if is_shown else None,
            since=holder.since,
            run_id=holder.run_id,
        )
    if oldest is not None and status.at - oldest > LATE_AFTER:
        yield Attention(need=Need.LATE, since=oldest)


def _unusable(context: PageContext, broken: Mapping[str, TsuzukiError]) -> Iterator[Attention]:
    """Collectors that are refused, and those that could not make their cards."""
    for name, problem in sorted({**broken, **context.application.refused_collectors}.items()):
        yield Attention(need=Need.COLLECTOR, about=name, detail=context.mask(problem.message))


def _health(attention: list[Attention], has_failures: bool) -> Health:
    needs = {item.need for item in attention}
    if Need.NO_LEADER in needs:
        return Health.NO_LEADER
    if Need.NO_WORKER in needs:
        return Health.NO_WORKER
    return Health.ATTENTION if needs or has_failures else Health.GOOD


def _engine(context: PageContext, status: EngineStatus, oldest: datetime | None) -> EngineLine:
    lead = status.leadership
    return EngineLine(
        is_led=status.is_led,
        holder=lead.holder if context.principal.may(Right.WORKERS_READ) else None,
        epoch=lead.epoch,
        lease_expires_at=lead.lease_expires_at if status.is_led else None,
        workers=len(status.usable),
        slots=status.slots,
        held=sum(view.held for view in status.workers),
        oldest_due_at=oldest,
    )


def _hours(context: PageContext) -> list[HourOfOutcomes]:
    return [
        HourOfOutcomes(
            hour=of.hour,
            until=of.hour + timedelta(hours=1),
            runs=dict(sorted(of.outcomes.runs.items())),
        )
        for of in context.application.statistics.by_hour(hours=24)
    ]
