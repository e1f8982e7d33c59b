"""One job: when it runs next, what it did, how long it takes, why it is not running, and its definition."""

from datetime import date
from typing import Any

from tsuzuki.model.access import Right
from tsuzuki.model.errors import Conflict
from tsuzuki.model.job import JobSource
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import Outcome
from tsuzuki.services.audit import AuditEntry
from tsuzuki.services.jobs import JobView, definition_text
from tsuzuki.services.statistics import DayOfRuns, Outcomes
from tsuzuki.web.answers import Model, Moment
from tsuzuki.web.api.explanations import JobExplanation
from tsuzuki.web.api.jobs import JobName, JobOut, explain_job, job_out
from tsuzuki.web.api.run_models import ListedRun, listed_runs
from tsuzuki.web.pages.context import Page, PageContext
from tsuzuki.web.pages.job_views import JobPastOut, past_out
from tsuzuki.web.pages.route import Screen

screen = Screen()

RUNS_DRAWN = 60
RUNS_LISTED = 12
WEEKS_SHOWN = 26
NEXT_SHOWN = 5
CHANGES_SHOWN = 10
HOURS_COUNTED = 30 * 24


class DayOut(Model):
    """What ended on one day of the viewer's zone, from `start` to `end`."""

    day: date
    start: Moment
    end: Moment
    runs: dict[Outcome, int]


class DurationsOut(Model):
    """Of the runs that are drawn, the longest; percentiles are exact, of the newest `runs`, and null if these are too
    few."""

    runs: int
    p50_seconds: float | None
    p95_seconds: float | None
    longest_seconds: float


class KeyChange(Model):
    key: str
    before: Any
    after: Any


class DefinitionChange(Model):
    """One change of the definition. `keys` are those that differ; all of them for a new job."""

    at: Moment
    actor: str
    action: str
    keys: list[KeyChange]


class JobPageView(Model):
    """`place` is where a job of the file stands in it, and its schedule can be changed there. `changes` is null for
    those who may not see the audit log, `past` for a job that is not applied."""

    job: JobOut
    place: str | None
    next_times: list[Moment]
    past: JobPastOut | None
    recent: list[ListedRun]
    durations: DurationsOut | None
    days: list[DayOut]
    explanation: JobExplanation
    definition: str
    changes: list[DefinitionChange] | None
    can_operate: bool
    can_write: bool
    can_reschedule: bool


@screen.page("/jobs/{name}", right=Right.JOBS_READ, template="screens/job.html")
def job_page(context: Page, name: JobName) -> JobPageView:
    jobs = context.application.jobs
    view = jobs.get(name)
    past = _past(context, view)
    place = jobs.place(name) if view.source is JobSource.FILE else None
    may = context.principal.may
    return JobPageView(
        job=job_out(context, view),
        place=str(place) if place else None,
        next_times=_next_times(context, view),
        past=past,
        recent=_recent(context, view) if may(Right.RUNS_READ) else [],
        durations=_durations(past) if past else None,
        days=_days(context, view),
        explanation=explain_job(context, name),
        definition=definition_text(context.mask(jobs.body(name))),
        changes=_changes(context, name) if may(Right.AUDIT_READ) else None,
        can_operate=may(Right.JOBS_OPERATE),
        can_write=may(Right.JOBS_WRITE) and view.source is JobSource.DATABASE,
        can_reschedule=may(Right.JOBS_WRITE) and place is not None,
    )


def _past(context: PageContext, view: JobView) -> JobPastOut | None:
    if view.job is None:
        return None
    job_id = view.job.id
    past = context.application.job_history.of_jobs([view.job], limit=RUNS_DRAWN)[job_id]
    outcomes = context.application.statistics.of_jobs([job_id], hours=HOURS_COUNTED)
    return past_out(past, outcomes.get(job_id, Outcomes()))


def _recent(context: PageContext, view: JobView) -> list[ListedRun]:
    if view.job is None:
        return []
    return listed_runs(context, RunFilter(job_name=view.name, limit=RUNS_LISTED))


def _next_times(context: PageContext, view: JobView) -> list[Moment]:
    if not view.spec.enabled or view.next_at is None:
        return []
    try:
        return context.application.jobs.next_times(view.name, NEXT_SHOWN)
    except Conflict:  # the schedule was removed meanwhile
        return []


def _durations(past: JobPastOut) -> DurationsOut | None:
    """None if no run was started."""
    if all(run.seconds is None for run in past.recent):
        return None
    return DurationsOut(
        runs=past.duration_runs,
        p50_seconds=past.p50_seconds,
        p95_seconds=past.p95_seconds,
        longest_seconds=past.longest_seconds,
    )


def _days(context: PageContext, view: JobView) -> list[DayOut]:
    """Whole weeks, the current one included; none for a job that is not applied."""
    if view.job is None:
        return []
    today = context.viewer.now.astimezone(context.viewer.zone).date()
    days = (WEEKS_SHOWN - 1) * 7 + today.weekday() + 1
    found = context.application.statistics.by_day(view.name, days=days, zone=context.viewer.zone)
    return [_day_out(day) for day in found]


def _day_out(day: DayOfRuns) -> DayOut:
    return DayOut(day=day.day, start=day.start, end=day.end, runs=dict(day.outcomes.runs))


def _changes(context: PageContext, name: str) -> list[DefinitionChange]:
    entries = context.application.audit.find(object_type="job", object_id=name, limit=CHANGES_SHOWN)
    return [
        DefinitionChange(
            at=entry.at, actor=entry.actor, action=entry.action, keys=_differences(context, entry)
        )
        for entry in entries
    ]


def _differences(context: PageContext, entry: AuditEntry) -> list[KeyChange]:
    before, after = context.mask(entry.before), context.mask(entry.after)
    if not isinstance(before, dict) or not isinstance(after, dict):
        return []
    return [
        KeyChange(key=key, before=before.get(key), after=after.get(key))
        for key in {**before, **after}
        if before.get(key) != after.get(key)
    ]
