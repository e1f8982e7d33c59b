"""Pages to list stored statuses and delete those of a job; the overview card; the effects of a run."""

from typing import Annotated

from fastapi import Query, Response

from tsuzuki.web.answers import Model
from tsuzuki.web.api.jobs import JobName
from tsuzuki.web.pages.context import Page
from tsuzuki.web.pages.formats import number_text
from tsuzuki.web.pages.language import message, translations
from tsuzuki.web.pages.overview_card import Card
from tsuzuki.web.pages.route import Screen
from tsuzuki.web.pages.run_effects import CursorMove, EffectLink, RunEffects
from tsuzuki.web.paging import Count
from tsuzuki_statuses.api import StatusOut, StatusQuery, page_of_statuses
from tsuzuki_statuses.rights import STATUSES_FORGET, STATUSES_READ
from tsuzuki_statuses.service import NAME

screen = Screen()


class StatusesView(Model):
    statuses: list[StatusOut]
    count: Count
    job: str | None
    next_cursor: str | None


class ForgetView(Model):
    job: str


@screen.page("/statuses", right=STATUSES_READ, template="screens/statuses.html", shared=True)
def statuses_page(context: Page, query: Annotated[StatusQuery, Query()]) -> StatusesView:
    page = page_of_statuses(context, query.model_copy(update={"count": True}))
    return StatusesView(
        statuses=page.items, count=page.count, job=query.job, next_cursor=page.next_cursor
    )


def question(context: Page, name: JobName) -> ForgetView:
    context.application.service(NAME).cursors(name)  # raises NotFound
    return ForgetView(job=name)


@screen.confirmation(
    "/statuses/jobs/{name}/forget",
    right=STATUSES_FORGET,
    template="screens/statuses_forget.html",
    question=question,
)
def forget(context: Page, name: JobName) -> Response:
    count = context.application.service(NAME).forget(name)
    return context.redirect("/statuses", message("Deleted %(count)s statuses."), count=count)


def cards(context):
    """Create one card, on each rendering of the overview."""
    words = translations(context.viewer.language)
    count = number_text(context.application.service(NAME).count(), context.viewer.language)
    return [Card(name=words.gettext("Statuses"), number=count, path="/statuses")]


def run_effects(context, run):
    """Describe what a run did. Called for the runs of every job."""
    if run.job_name not in context.application.service(NAME).jobs():
        return RunEffects()
    words = translations(context.viewer.language)
    count = context.application.service(NAME).count(run_id=run.id)
    label = words.ngettext("%(count)s status", "%(count)s statuses", count) % {"count": count}
    match run.result:
        case {"kept": int(kept), "before": int(before)}:
            cursor = CursorMove(before=before, after=before + kept, total=None, is_exhausted=True)
        case _:
            cursor = None
    link = EffectLink(
        title=words.gettext("Statuses"), label=label, path=f"/statuses?run_id={run.id}"
    )
    return RunEffects(cursor=cursor, links=[link] if count else [])
