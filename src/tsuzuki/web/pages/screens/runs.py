"""The list of runs: filters in the address, one page after the other, and what is done to those that are selected."""

from dataclasses import replace
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any

from fastapi import Form, Query, Response
from pydantic import BaseModel, ConfigDict, Field, NaiveDatetime

from tsuzuki.model.access import Right
from tsuzuki.model.bulk import BulkVerb
from tsuzuki.model.errors import Conflict, NotFound, ReadTimedOut
from tsuzuki.model.run import Run
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.services.explain import StatusReason
from tsuzuki.web.answers import Model, to_utc_text
from tsuzuki.web.api.run_models import ListedRun, RunOut, listed_out, run_out
from tsuzuki.web.api.run_query import Id, RunConditions, RunQuery
from tsuzuki.web.pages.context import Page, PageContext
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.route import Screen
from tsuzuki.web.pages.viewer import Viewer
from tsuzuki.web.paging import COUNT_MAX, Count, SearchedRows
from tsuzuki.web.problems import Problem

screen = Screen()

SELECTED_MAX = 200
REFUSED_NAMED = 20
"""The message travels in a cookie, which has room for no more; the number of all stands behind them."""


class RunsWindow(StrEnum):
    """How far back the list goes, by the time at which a run was created."""

    HOUR = "1h"
    DAY = "24h"
    WEEK = "7d"
    MONTH = "30d"
    ALL = "all"

    @property
    def length(self) -> timedelta | None:
        return _LENGTHS.get(self)


_LENGTHS = {
    RunsWindow.HOUR: timedelta(hours=1),
    RunsWindow.DAY: timedelta(days=1),
    RunsWindow.WEEK: timedelta(days=7),
    RunsWindow.MONTH: timedelta(days=30),
}


class RunsQuery(RunQuery):
    """`since` and `until` are times on the viewer's clock, as the fields of a form give them; the page is shown at
    the address that names them in UTC."""

    window: RunsWindow = RunsWindow.WEEK
    since: NaiveDatetime | None = None
    until: NaiveDatetime | None = None

    def in_utc(self, viewer: Viewer) -> dict[str, str]:
        """The times on the viewer's clock as parameters of the address."""
        given = {"created_from": self.since, "created_until": self.until}
        return {
            name: to_utc_text(at.replace(tzinfo=viewer.zone)) for name, at in given.items() if at
        }

    def within(self, context: PageContext, **page: Any) -> RunFilter:
        """The filter, with the window unless a time was given."""
        wanted = self.run_filter(**page)
        has_time = wanted.created_from or wanted.created_until or wanted.finished_from
        if self.window.length is None or has_time:
            return wanted
        return replace(wanted, created_from=context.viewer.now - self.window.length)


class RunsView(Model):
    """`count` is of the whole list; null if counting took too long. `stopped_early`: there may be more, which the
    next page finds. `problem` says why the filter found nothing."""

    runs: list[ListedRun]
    next_cursor: str | None
    filters: dict[str, Any]
    count: Count | None = None
    stopped_early: bool = False
    problem: Problem | None = None


@screen.page("/runs", right=Right.RUNS_READ, template="screens/runs.html", shared=True)
def runs_page(context: Page, query: Annotated[RunsQuery, Query()]) -> RunsView | Response:
    runs = context.application.runs
    if times := query.in_utc(context.viewer):
        link = context.viewer.link.without("since").without("until").setting("window", "all")
        for name, at in times.items():
            link = link.setting(name, at)
        return context.redirect(link)
    reasons: dict[int, StatusReason] = {}

    def find(after: Any, limit: int) -> SearchedRows[Run]:
        found = SearchedRows(*runs.search(query.within(context, before_id=after, limit=limit)))
        reasons.update(runs.waiting_reasons(found.rows))
        return found

    try:
        page = context.page(
            query,
            find=find,
            position=lambda run: run.id,
            item=lambda run: listed_out(context, run, reasons.get(run.id)),
        )
    except (NotFound, ReadTimedOut) as problem:
        told = context.problem(problem)
        return RunsView(runs=[], next_cursor=None, filters=query.filters(), problem=told)
    return RunsView(
        runs=page.items,
        next_cursor=page.next_cursor,
        filters=page.filters,
        count=_count(context, query),
        stopped_early=page.stopped_early,
    )


def _count(context: PageContext, query: RunsQuery) -> Count | None:
    """A count that takes too long keeps no list from being shown."""
    try:
        counted = context.application.runs.counted(query.within(context), at_most=COUNT_MAX)
    except ReadTimedOut:
        return None
    return Count(value=counted.value, exact=counted.exact)


class SelectedView(Model):
    """What will be done to which runs."""

    verb: BulkVerb
    runs: list[RunOut]
    back: str


Ids = Annotated[list[Id], Field(min_length=1, max_length=SELECTED_MAX)]


class SelectedQuery(BaseModel):
    """`back` has the filters of the list that the runs were selected in."""

    verb: BulkVerb
    id: Ids
    back: str = Field("", max_length=2000)


def selected(context: Page, form: Annotated[SelectedQuery, Query()]) -> SelectedView:
    found = [context.application.runs.get(run_id).run for run_id in dict.fromkeys(form.id)]
    return SelectedView(
        verb=form.verb, runs=[run_out(context, run) for run in found], back=_back(form.back)
    )


class SelectedForm(SelectedQuery):
    model_config = ConfigDict(extra="forbid")


@screen.confirmation(
    "/runs/selected",
    right=Right.RUNS_OPERATE,
    template="screens/runs_selected.html",
    question=selected,
)
def act_on_selected(context: Page, form: Annotated[SelectedForm, Form()]) -> Response:
    """Each by itself, and audited so. One that moved meanwhile is told, and stops none of the others."""
    runs = context.application.runs
    act = runs.cancel if form.verb is BulkVerb.CANCEL else runs.retry
    done, refused = 0, []
    for run_id in dict.fromkeys(form.id):
        try:
            act(run_id)
            done += 1
        except (Conflict, NotFound):
            refused.append(run_id)
    if refused:
        listed = ", ".join(map(str, refused[:REFUSED_NAMED]))
        if len(refused) > REFUSED_NAMED:
            listed += f", … ({len(refused)})"
        text = message(
            "Runs updated: %(done)s. Skipped because their state had changed: %(refused)s"
        )
        return context.redirect(_back(form.back), text, done=done, refused=listed)
    return context.redirect(_back(form.back), message("Runs updated: %(done)s."), done=done)


def _back(filters: str) -> str:
    return f"/runs?{filters}" if filters else "/runs"


class MatchingForm(RunConditions):
    """The filters of the list, as hidden fields, and what is to be done."""

    model_config = ConfigDict(extra="forbid")

    verb: BulkVerb
    window: RunsWindow = RunsWindow.WEEK


@screen.form("/runs/matching", right=Right.RUNS_OPERATE)
def preview_matching(context: Page, form: Annotated[MatchingForm, Form()]) -> Response:
    """Freeze the filter of the list, and show what it matches. Nothing is done before it is confirmed."""
    wanted = form.run_filter(where="form")
    has_time = wanted.created_from or wanted.created_until or wanted.finished_from
    if form.window.length is not None and not has_time:
        wanted = replace(wanted, created_from=context.viewer.now - form.window.length)
    view = context.application.bulk.preview(form.verb, wanted)
    return context.redirect(f"/bulk/{view.action.id}")
