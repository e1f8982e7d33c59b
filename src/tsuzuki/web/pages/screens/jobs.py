"""The list of jobs: when each runs, what it did last, how it ends and how long it takes, and its cadence."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from tsuzuki.model.access import Right
from tsuzuki.services.jobs import JobView
from tsuzuki.services.statistics import Outcomes
from tsuzuki.web.answers import Model
from tsuzuki.web.api.jobs import JobOut, JobQuery, is_wanted, job_out
from tsuzuki.web.pages.context import Page, PageContext
from tsuzuki.web.pages.job_views import JobPastOut, past_out
from tsuzuki.web.pages.route import Screen
from tsuzuki.web.paging import LIMIT_MAX, Count

screen = Screen()

STRIP_RUNS = 20
JOBS_SHOWN = 25
"""On a page: each has a drawing of its own."""
FAR = datetime(9999, 1, 1, tzinfo=UTC)


class JobsWindow(StrEnum):
    """The hours whose ends are counted."""

    DAY = "24h"
    WEEK = "7d"
    MONTH = "30d"

    @property
    def hours(self) -> int:
        return {JobsWindow.DAY: 24, JobsWindow.WEEK: 7 * 24, JobsWindow.MONTH: 30 * 24}[self]


class JobsSort(StrEnum):
    NAME = "name"
    NEXT = "next"


class JobsQuery(JobQuery):
    limit: int = Field(JOBS_SHOWN, ge=1, le=LIMIT_MAX)
    window: JobsWindow = JobsWindow.DAY
    sort: JobsSort = JobsSort.NAME


class JobRow(Model):
    """`past` is null for a job that is not applied."""

    job: JobOut
    past: JobPastOut | None


class JobsView(Model):
    """`switched_on` and `switched_off` count the jobs that match, without that filter."""

    jobs: list[JobRow]
    next_cursor: str | None
    filters: dict[str, Any]
    count: Count | None
    switched_on: int
    switched_off: int


@screen.page("/jobs", right=Right.JOBS_READ, template="screens/jobs.html", shared=True)
def jobs_page(context: Page, query: Annotated[JobsQuery, Query()]) -> JobsView:
    either = query.model_copy(update={"enabled": None})
    matching = [view for view in context.application.jobs.find() if is_wanted(view, either)]
    wanted = [view for view in matching if is_wanted(view, query)]
    position = _by_next if query.sort is JobsSort.NEXT else _by_name
    page = context.page_of_rows(
        query.model_copy(update={"count": True}),
        wanted,
        position=position,
        item=lambda view: view,
    )
    on = sum(view.spec.enabled for view in matching)
    return JobsView(
        jobs=_rows(context, page.items, query.window),
        next_cursor=page.next_cursor,
        filters=page.filters,
        count=page.count,
        switched_on=on,
        switched_off=len(matching) - on,
    )


def _by_name(view: JobView) -> str:
    return view.name


def _by_next(view: JobView) -> str:
    return f"{(view.next_at or FAR).astimezone(UTC).isoformat()} {view.name}"


def _rows(context: PageContext, views: list[JobView], window: JobsWindow) -> list[JobRow]:
    stored = [view.job for view in views if view.job is not None]
    past = context.application.job_history.of_jobs(stored, limit=STRIP_RUNS)
    ids = [job.id for job in stored]
    outcomes = context.application.statistics.of_jobs(ids, hours=window.hours)
    return [
        JobRow(
            job=job_out(context, view),
            past=past_out(past[view.job.id], outcomes.get(view.job.id, Outcomes()))
            if view.job
            else None,
        )
        for view in views
    ]
