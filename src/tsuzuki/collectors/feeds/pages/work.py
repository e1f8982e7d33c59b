"""Work on feeds that a person starts: fetch, process, and all items with a reason worked on again.

Each is confirmed on a page that says what it will touch. Requeueing many is refused if they became many more
since that page was made.
"""

from typing import Annotated

from fastapi import Form, Query, Response
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from tsuzuki.collectors.feeds.api.feeds import (
    FeedName,
    ProcessRequest,
    feeds_service,
)
from tsuzuki.collectors.feeds.api.items import (
    ItemOut,
    PlannedItem,
    Reason,
    item_out,
    plan_feeds_job,
)
from tsuzuki.model.access import Right
from tsuzuki.model.errors import Conflict
from tsuzuki.services.runs import Request
from tsuzuki.web.answers import Model
from tsuzuki.web.api.jobs import JobName
from tsuzuki.web.pages.context import Page
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.route import Screen

screen = Screen()

SAMPLES = 10
GROWTH_MAX = 1.1


class FetchView(Model):
    """How many feeds are asked."""

    job: str
    feeds: int


def fetch_question(context: Page, name: JobName) -> FetchView:
    found = feeds_service(context).definitions.find(name)
    return FetchView(job=name, feeds=sum(view.options is not None for view in found))


@screen.confirmation(
    "/feeds/jobs/{name}/fetch",
    right=Right.COLLECTORS_OPERATE,
    template="screens/feeds_fetch.html",
    question=fetch_question,
)
def fetch(context: Page, name: JobName) -> Response:
    run_id = _start(context, name, {"process": False})
    return context.redirect(f"/runs/{run_id}", message("Fetching the feeds of %(job)s."), job=name)


class ProcessView(Model):
    """`ready` items can be worked on now; `items` are the first of them, in the order of drawing."""

    job: str
    ready: int
    items: list[PlannedItem]


def process_question(context: Page, name: JobName) -> ProcessView:
    ready = feeds_service(context).funnels.count(job=name).waiting.get("ready", 0)
    return ProcessView(job=name, ready=ready, items=plan_feeds_job(context, name, SAMPLES).items)


@screen.confirmation(
    "/feeds/jobs/{name}/process",
    right=Right.COLLECTORS_OPERATE,
    template="screens/feeds_process.html",
    question=process_question,
)
def process(context: Page, name: JobName, form: Annotated[ProcessRequest, Form()]) -> Response:
    run_id = _start(context, name, form.arguments())
    text = message("Processing the items of %(job)s.")
    return context.redirect(f"/runs/{run_id}", text, job=name)


def _start(context: Page, name: str, arguments: dict[str, JsonValue]) -> int:
    feeds_service(context).definitions.require_job(name)
    return context.application.runs.submit(
        Request(job=name, arguments=arguments), audited=True
    ).run_id


class RequeueView(Model):
    """How many items have the reason and can be worked on again, and the first of them."""

    reason: Reason
    feed: str | None
    count: int
    items: list[ItemOut]


class RequeueQuery(BaseModel):
    reason: Reason
    feed: FeedName | None = None


class RequeueForm(RequeueQuery):
    """`count` is what the page of the question said."""

    model_config = ConfigDict(extra="forbid")

    count: int = Field(ge=0)


def requeue_question(context: Page, form: Annotated[RequeueQuery, Query()]) -> RequeueView:
    items = feeds_service(context).items
    found = items.requeue_by_reason(form.reason, feed=form.feed, dry_run=True)
    shown = [item_out(context, view) for view in found[:SAMPLES]]
    return RequeueView(reason=form.reason, feed=form.feed, count=len(found), items=shown)


@screen.confirmation(
    "/feeds/requeue",
    right=Right.COLLECTORS_OPERATE,
    template="screens/feeds_requeue.html",
    question=requeue_question,
)
def requeue(context: Page, form: Annotated[RequeueForm, Form()]) -> Response:
    items = feeds_service(context).items
    found = len(items.requeue_by_reason(form.reason, feed=form.feed, dry_run=True))
    if found > form.count * GROWTH_MAX:
        raise Conflict(
            f"there are {found} such items now, not {form.count}",
            hint="Look at them, then say it again.",
            code="count_grew",
        )
    done = len(items.requeue_by_reason(form.reason, feed=form.feed))
    return context.redirect("/feeds", message("Items requeued: %(count)s."), count=done)
