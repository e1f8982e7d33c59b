"""Items of feeds: lists, one item with its verdict, cost and post, and what a person decides about it."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from fastapi import Form, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from tsuzuki.collectors.feeds.api.feeds import feeds_service
from tsuzuki.collectors.feeds.api.items import (
    Approval,
    ItemExplanation,
    ItemId,
    ItemOut,
    ItemPreview,
    ItemQuery,
    approve_feed_item,
    explain_feed_item,
    get_feed_item,
    list_feed_items,
    preview_feed_item,
    requeue_feed_item,
)
from tsuzuki.model.access import Right
from tsuzuki.model.errors import NotFound, TsuzukiError, UsageError
from tsuzuki.web.answers import Model
from tsuzuki.web.pages.context import Page, PageContext
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.route import Screen
from tsuzuki.web.paging import Count
from tsuzuki.web.problems import Problem
from tsuzuki.web.security.bodies import INTEGER_MAX

screen = Screen()

APPROVED_MAX = 100
SelectedId = Annotated[int, Field(ge=1, le=INTEGER_MAX)]
POST_STEPS = ("post", "edit", "reply")
UNDECIDED = ("unsettled", "refused")


class ItemsView(Model):
    """`count` is of the whole list. `problem` says why the filter found nothing."""

    items: list[ItemOut]
    next_cursor: str | None
    filters: dict[str, Any]
    count: Count | None
    problem: Problem | None = None


@screen.page(
    "/feeds/items", right=Right.COLLECTORS_READ, template="screens/feed_items.html", shared=True
)
def items_page(context: Page, query: Annotated[ItemQuery, Query()]) -> ItemsView:
    try:
        page = list_feed_items(context, query.model_copy(update={"count": True}))
    except (NotFound, UsageError) as problem:
        told = context.problem(problem)
        return ItemsView(
            items=[], next_cursor=None, filters=query.filters(), count=None, problem=told
        )
    return ItemsView(
        items=page.items, next_cursor=page.next_cursor, filters=page.filters, count=page.count
    )


class ItemPageView(Model):
    """`preview` is null if no job has its feed any more; then `preview_problem` says so."""

    item: ItemExplanation
    preview: ItemPreview | None
    preview_problem: Problem | None
    can_decide: bool
    can_requeue: bool


@screen.page(
    "/feeds/items/{item_id:int}",
    right=Right.COLLECTORS_READ,
    template="screens/feed_item.html",
    shared=True,
)
def item_page(context: Page, item_id: ItemId) -> ItemPageView:
    item = explain_feed_item(context, item_id)
    preview, problem = _preview(context, item_id)
    may_operate = context.principal.may(Right.COLLECTORS_OPERATE)
    return ItemPageView(
        item=item,
        preview=preview,
        preview_problem=problem,
        can_decide=may_operate and _awaits_decision(item),
        can_requeue=may_operate and _is_requeuable(item),
    )


def _preview(context: PageContext, item_id: int) -> tuple[ItemPreview | None, Problem | None]:
    try:
        return preview_feed_item(context, item_id), None
    except TsuzukiError as problem:
        return None, context.problem(problem)


def _awaits_decision(item: ItemExplanation) -> bool:
    """A held post; or one of which it is not known whether it arrived, or that was refused."""
    sent = [step for step in item.steps if step.step in POST_STEPS]
    return item.waiting == "approval" or bool(sent and sent[-1].outcome in UNDECIDED)


def _is_requeuable(item: ItemOut) -> bool:
    """What the service accepts: it is deferred, or processed and not posted, and its post is not looked for."""
    is_open = item.waiting == "backoff" or (item.status == "processed" and item.reason != "none")
    return is_open and item.next_look_at is None


class DecisionView(Model):
    """What can be decided about the post of an item. `problem` says why nothing can."""

    item: ItemOut
    preview: ItemPreview | None = None
    can_approve: bool = False
    can_settle: bool = False
    can_send_again: bool = False
    problem: Problem | None = None


class DecisionForm(BaseModel):
    model_config = ConfigDict(extra="forbid")

    decision: Literal["approve", "was_sent", "send_again"]


_DECIDED = {
    "approve": message("Item %(id)s will be posted by the next run."),
    "was_sent": message("Item %(id)s marked as posted."),
    "send_again": message("The next run will send the post of item %(id)s again."),
}


def decisions(context: Page, item_id: ItemId) -> DecisionView:
    """Asked of the service without doing it, so that only what it accepts is offered."""
    items, name = feeds_service(context).items, [str(item_id)]
    item = get_feed_item(context, item_id)
    problem = _refusal(context, lambda: items.approve(name, dry_run=True))
    can_settle = _refusal(context, lambda: items.settle(name, was_sent=True, dry_run=True)) is None
    again = _refusal(context, lambda: items.settle(name, was_sent=False, dry_run=True))
    is_possible = can_settle or again is None
    return DecisionView(
        item=item,
        preview=_preview(context, item_id)[0],
        can_approve=problem is None,
        can_settle=can_settle,
        can_send_again=again is None,
        problem=None if is_possible else problem,
    )


@screen.confirmation(
    "/feeds/items/{item_id:int}/approve",
    right=Right.COLLECTORS_OPERATE,
    template="screens/feed_item_approve.html",
    question=decisions,
)
def decide(context: Page, item_id: ItemId, form: Annotated[DecisionForm, Form()]) -> Response:
    unsettled = None if form.decision == "approve" else form.decision
    approve_feed_item(context, item_id, Approval(unsettled=unsettled))
    return context.redirect(f"/feeds/items/{item_id}", _DECIDED[form.decision], id=item_id)


def _refusal(context: PageContext, ask: Any) -> Problem | None:
    try:
        ask()
    except TsuzukiError as problem:
        return context.problem(problem)
    return None


class ApproveQuery(BaseModel):
    """`back` has the filters of the list that the items were selected in."""

    id: Annotated[list[SelectedId], Field(min_length=1, max_length=APPROVED_MAX)]
    back: str = Field("", max_length=2000)


class ApproveForm(ApproveQuery):
    model_config = ConfigDict(extra="forbid")


class PostToApprove(Model):
    item: ItemOut
    preview: ItemPreview | None


class ApproveView(Model):
    posts: list[PostToApprove]
    back: str


def posts_to_approve(context: Page, form: Annotated[ApproveQuery, Query()]) -> ApproveView:
    return ApproveView(
        posts=[
            PostToApprove(item=get_feed_item(context, one), preview=_preview(context, one)[0])
            for one in dict.fromkeys(form.id)
        ],
        back=form.back,
    )


@screen.confirmation(
    "/feeds/items/approve",
    right=Right.COLLECTORS_OPERATE,
    template="screens/feed_items_approve.html",
    question=posts_to_approve,
)
def approve_selected(context: Page, form: Annotated[ApproveForm, Form()]) -> Response:
    """All of them, or none: an item that is no longer held is named."""
    ids = dict.fromkeys(form.id)
    feeds_service(context).items.approve(map(str, ids))
    text = message("Posts approved: %(count)s. The next run will send them.")
    return context.redirect(f"/feeds/items?{form.back}", text, count=len(ids))


class ItemRequeueView(Model):
    """`problem` says why it cannot be done."""

    item: ItemOut
    problem: Problem | None = None


def requeue_question(context: Page, item_id: ItemId) -> ItemRequeueView:
    ask = feeds_service(context).items.requeue
    problem = _refusal(context, lambda: ask([str(item_id)], dry_run=True))
    return ItemRequeueView(item=get_feed_item(context, item_id), problem=problem)


@screen.confirmation(
    "/feeds/items/{item_id:int}/requeue",
    right=Right.COLLECTORS_OPERATE,
    template="screens/feed_item_requeue.html",
    question=requeue_question,
)
def requeue(context: Page, item_id: ItemId) -> Response:
    requeue_feed_item(context, item_id)
    text = message("Item %(id)s requeued.")
    return context.redirect(f"/feeds/items/{item_id}", text, id=item_id)


FEED_ITEM = message("Feed item")


def numbered(context: PageContext, number: int) -> Iterator[tuple[str, str]]:
    """The page of the item with this number, for the search field."""
    feeds_service(context).items.get(str(number))
    yield FEED_ITEM, f"/feeds/items/{number}"
