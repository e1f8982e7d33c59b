"""`/feeds`: the feeds of the jobs, each article, what is decided about it, and what is spent."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from pydantic import Field

from tsuzuki.collectors.feeds.service import FeedsService
from tsuzuki.collectors.feeds.service.feed_definitions import FeedView
from tsuzuki.collectors.feeds.service.items import ItemView
from tsuzuki.model.access import Right
from tsuzuki.web.answers import Model, Moment
from tsuzuki.web.context import Context
from tsuzuki.web.paging import COUNT_MAX, Page, PageRequest, after_position, count_of
from tsuzuki.web.route import ApiRoute, problem_responses
from tsuzuki.web.security.rights import requires

router = APIRouter(route_class=ApiRoute, tags=["feeds"])

ItemId = Annotated[int, Path(ge=1, le=2**63 - 1, examples=[12])]
Status = Literal["unprocessed", "deferred", "pending", "processed"]
Reason = Literal[
    "none",
    "not_valuable",
    "page_not_ready",
    "download_failed",
    "file_too_large",
    "api_failed",
    "retry_limit_exceeded",
]
Waiting = Literal["ready", "taken", "backoff", "approval"]
JobFilter = Annotated[str, Field(min_length=1, max_length=100)]


class FeedOut(Model):
    """A feed of a job, how it fares, and how many items it has in each state (`approval`: held for a person)."""

    job: str
    name: str
    title: str | None
    url: str | None
    moved_to: str | None
    health: str
    health_since: Moment | None
    last_good_at: Moment | None
    last_new_at: Moment | None
    failing_since: Moment | None
    failures: int
    error: str | None
    not_before: Moment | None
    next_at: Moment | None
    unprocessed: int
    deferred: int
    pending: int
    processed: int
    posted: int
    approval: int


class FeedQuery(PageRequest):
    job: JobFilter | None = None


class ItemQuery(PageRequest):
    feed: str | None = Field(
        None, min_length=1, max_length=250, description="`name`, or `job/name`."
    )
    job: JobFilter | None = Field(None, description="Only those of this job's feeds.")
    status: list[Status] = Field([], max_length=10)
    reason: list[Reason] = Field([], max_length=10)
    waiting: Waiting | None = Field(None, description="Only what waits like this.")
    search: str | None = Field(None, max_length=200, description="In title or link.")

    def narrowing(self) -> dict[str, Any]:
        """In the words of the service."""
        return {
            "feed": self.feed,
            "job": self.job,
            "statuses": self.status,
            "reasons": self.reason,
            "waiting": self.waiting,
            "words": self.search,
        }


class ItemOut(Model):
    """An article. `outcome` says in a word or two what became of it; null while it waits."""

    id: int
    job: str
    feed: str
    title: str
    url: str
    published_at: Moment
    status: Status
    reason: Reason | None
    outcome: str | None
    retry_count: int
    waiting: Waiting | None
    not_before: Moment | None
    cause: str | None
    created_at: Moment
    last_checked_at: Moment


class ItemStep(Model):
    """One step. `cost` is in US dollars; null if the price is not known."""

    at: Moment
    step: str
    outcome: str
    seconds: float | None
    tokens: int | None
    cost: float | None
    detail: str | None


class ItemExplanation(ItemOut):
    """`history` says where the item comes from, `next` what happens now; both are sentences."""

    history: list[str]
    steps: list[ItemStep]
    tokens: int
    cost: float | None
    next: list[str]


class Approval(Model):
    """What a person decides about a post."""

    unsettled: Literal["was_sent", "send_again"] | None = Field(
        None, description="For a post of which it is not known whether it arrived."
    )


class SpendingOut(Model):
    """What one scope has spent today. A limit that is null does not exist."""

    scope: str
    day: str
    requests: int
    requests_limit: int | None
    requests_this_minute: int | None = Field(description="Counted only where a minute is limited.")
    requests_per_minute_limit: int | None
    tokens: int
    tokens_limit: int | None
    cost: float
    cost_limit: float | None
    resets_at: Moment
    parked_until: Moment | None = Field(description="Of a model that asked for a pause.")


class BudgetOut(Model):
    items: list[SpendingOut]


def _service(context: Context) -> FeedsService:
    service: FeedsService = context.application.service("feeds")
    return service


def _feed_out(context: Context, view: FeedView) -> FeedOut:
    return FeedOut.model_validate(context.mask(view.as_dict()))


def _item_out(context: Context, view: ItemView) -> ItemOut:
    return ItemOut.model_validate(context.mask(view.as_dict()))


@router.get(
    "/feeds",
    dependencies=[requires(Right.COLLECTORS_READ)],
    responses=problem_responses(404),
)
def list_feeds(context: Context, query: Annotated[FeedQuery, Query()]) -> Page[FeedOut]:
    """List the feeds of the jobs, and those that no job has any more, by job and name."""
    found = _service(context).definitions.find(query.job, counted=True)
    return context.page(
        query,
        find=lambda after, limit: after_position(found, after, limit, _label),
        position=_label,
        item=lambda view: _feed_out(context, view),
        count=lambda: count_of(len(found)),
    )


def _label(view: FeedView) -> str:
    return view.label


@router.get(
    "/feeds/items",
    dependencies=[requires(Right.COLLECTORS_READ)],
    responses=problem_responses(404),
)
def list_feed_items(context: Context, query: Annotated[ItemQuery, Query()]) -> Page[ItemOut]:
    """List items, the newest first. `status` and `reason` can be repeated."""
    items, narrowing = _service(context).items, query.narrowing()
    return context.page(
        query,
        find=lambda after, limit: items.find(before_id=after, limit=limit, **narrowing),
        position=lambda view: view.item.id,
        item=lambda view: _item_out(context, view),
        count=lambda: count_of(items.count(at_most=COUNT_MAX + 1, **narrowing)),
    )


@router.get(
    "/feeds/items/{item_id}",
    dependencies=[requires(Right.COLLECTORS_READ)],
    responses=problem_responses(404),
)
def get_feed_item(context: Context, item_id: ItemId) -> ItemOut:
    """One item."""
    return _item_out(context, _service(context).items.get(str(item_id)))


@router.get(
    "/feeds/items/{item_id}/explain",
    dependencies=[requires(Right.COLLECTORS_READ)],
    responses=problem_responses(404),
)
def explain_feed_item(context: Context, item_id: ItemId) -> ItemExplanation:
    """Every step of an item, what it cost, and what happens next and when."""
    told = _service(context).explanations.explain(str(item_id))
    return ItemExplanation.model_validate(context.mask(told.as_dict()))


@router.post(
    "/feeds/items/{item_id}/approve",
    dependencies=[requires(Right.COLLECTORS_OPERATE)],
    responses=problem_responses(404),
)
def approve_feed_item(context: Context, item_id: ItemId, body: Approval | None = None) -> ItemOut:
    """Let a held post go out with the next run; or say of an unsettled one whether it arrived."""
    items, name = _service(context).items, str(item_id)
    if body is None or body.unsettled is None:
        (view,) = items.approve([name])
    else:
        (view,) = items.settle([name], was_sent=body.unsettled == "was_sent")
    return _item_out(context, view)


@router.post(
    "/feeds/items/{item_id}/requeue",
    dependencies=[requires(Right.COLLECTORS_OPERATE)],
    responses=problem_responses(404),
)
def requeue_feed_item(context: Context, item_id: ItemId) -> ItemOut:
    """Have an item worked on again. What was posted is refused."""
    (view,) = _service(context).items.requeue([str(item_id)])
    return _item_out(context, view)


@router.get("/feeds/budget", dependencies=[requires(Right.COLLECTORS_READ)])
def feeds_budget(context: Context) -> BudgetOut:
    """What was spent on models today, what may still be, and when there is more."""
    used = _service(context).spending.use()
    return BudgetOut(items=[SpendingOut.model_validate(one.as_dict()) for one in used])
