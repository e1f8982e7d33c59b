"""Feeds: how each fares, how far their items came, and what is spent on models; one feed with its settings."""

from collections import Counter
from typing import Annotated, Any, Literal

from fastapi import Query, Response
from pydantic import Field

from tsuzuki.collectors.feeds.api.feeds import (
    FeedDetails,
    FeedInPath,
    FeedOut,
    FeedQuery,
    SpendingOut,
    feed_out,
    feeds_budget,
    feeds_service,
    get_feed,
    remove_feed,
)
from tsuzuki.collectors.feeds.api.items import ItemOut, item_out
from tsuzuki.collectors.feeds.service.feed_definitions import FeedView
from tsuzuki.model.access import Right
from tsuzuki.model.errors import NotFound, TsuzukiError
from tsuzuki.web.answers import Model
from tsuzuki.web.api.jobs import JobName
from tsuzuki.web.pages.context import Page, PageContext
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.links import path_part
from tsuzuki.web.pages.route import Screen
from tsuzuki.web.problems import Problem

screen = Screen()

ITEMS_SHOWN = 10
Health = Literal["new", "good", "failing", "silent", "ended", "removed"]


class FunnelOut(Model):
    """How far the newest items came, at most `counted_max` of them."""

    fetched: int
    screened: int
    summarised: int
    posted: int
    reasons: dict[str, int]
    waiting: dict[str, int]
    counted_max: int


class FeedsQuery(FeedQuery):
    health: list[Health] = Field([], max_length=10)


class FeedsView(Model):
    """`healths` counts the feeds in each state, shown or not. `problem` says why the filter found nothing."""

    feeds: list[FeedOut]
    next_cursor: str | None
    filters: dict[str, Any]
    healths: dict[str, int]
    funnel: FunnelOut
    budget: list[SpendingOut]
    budget_problem: Problem | None = None
    problem: Problem | None = None


@screen.page("/feeds", right=Right.COLLECTORS_READ, template="screens/feeds.html", shared=True)
def feeds_page(context: Page, query: Annotated[FeedsQuery, Query()]) -> FeedsView:
    found, problem = _find(context, query.job)
    wanted = [view for view in found if not query.health or view.health.state in query.health]
    page = context.page_of_rows(
        query,
        wanted,
        position=_label,
        item=lambda view: feed_out(context, view),
    )
    budget, budget_problem = _budget(context)
    return FeedsView(
        feeds=page.items,
        next_cursor=page.next_cursor,
        filters=page.filters,
        healths=dict(Counter(view.health.state.value for view in found)),
        funnel=_funnel(context, job=None if problem else query.job),
        budget=budget,
        budget_problem=budget_problem,
        problem=problem,
    )


def _find(context: PageContext, job: str | None) -> tuple[list[FeedView], Problem | None]:
    try:
        return feeds_service(context).definitions.find(job, counted=True), None
    except NotFound as problem:
        return [], context.problem(problem)


def _label(view: FeedView) -> str:
    return view.label


def _funnel(context: PageContext, **of: str | None) -> FunnelOut:
    return FunnelOut.model_validate(vars(feeds_service(context).funnels.count(**of)))


def _budget(context: PageContext) -> tuple[list[SpendingOut], Problem | None]:
    """What is wrong in its section of the file hides no feed."""
    try:
        return feeds_budget(context).items, None
    except TsuzukiError as problem:
        return [], context.problem(problem)


class FeedPageView(Model):
    """`items` are its newest ones."""

    feed: FeedDetails
    funnel: FunnelOut
    items: list[ItemOut]


@screen.page(
    "/feeds/jobs/{name}/feeds/{feed}",
    right=Right.COLLECTORS_READ,
    template="screens/feed.html",
    shared=True,
)
def feed_page(context: Page, name: JobName, feed: FeedInPath) -> FeedPageView:
    label = f"{name}/{feed}"
    details = get_feed(context, name, feed)
    newest = feeds_service(context).items.find(feed=label, limit=ITEMS_SHOWN)
    return FeedPageView(
        feed=details,
        funnel=_funnel(context, feed=label),
        items=[item_out(context, view) for view in newest],
    )


class FeedRemoveView(Model):
    feed: FeedDetails


def question(context: Page, name: JobName, feed: FeedInPath) -> FeedRemoveView:
    return FeedRemoveView(feed=get_feed(context, name, feed))


@screen.confirmation(
    "/feeds/jobs/{name}/feeds/{feed}/remove",
    right=Right.JOBS_WRITE,
    template="screens/feed_remove.html",
    question=question,
)
def remove(context: Page, name: JobName, feed: FeedInPath) -> Response:
    remove_feed(context, name, feed)
    text = message("Feed %(feed)s removed.")
    return context.redirect(f"/feeds?job={path_part(name)}", text, feed=feed)
