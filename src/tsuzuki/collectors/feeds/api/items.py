"""`/feeds/items`: each article, what became of it, and what a person decides about it."""

from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import Field, JsonValue

from tsuzuki.collectors.feeds.api.feeds import FeedName, JobFilter, feeds_service
from tsuzuki.collectors.feeds.service.items import ItemView
from tsuzuki.model.access import Right
from tsuzuki.web.answers import Model, Moment, SentenceText
from tsuzuki.web.api.jobs import JobName
from tsuzuki.web.context import Context
from tsuzuki.web.paging import COUNT_MAX, LIMIT_MAX, Page, PageRequest, count_of
from tsuzuki.web.route import ApiRouter

router = ApiRouter("feeds")

SHOWN_MAX = 100
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
StepName = Literal["download", "screening", "summary"]


class ItemQuery(PageRequest):
    feed: str | None = Field(
        None, min_length=1, max_length=250, description="`name` or `job/name`."
    )
    job: JobFilter | None = Field(None, description="Include only items of this job's feeds.")
    status: list[Status] = Field([], max_length=10)
    reason: list[Reason] = Field([], max_length=10)
    waiting: Waiting | None = Field(None, description="Include only items waiting for this.")
    held: bool | None = Field(
        None, description="True: only items held for approval; false: only other waiting items."
    )
    step: StepName | None = Field(
        None, description="Include only items whose last completed step is this one."
    )
    search: str | None = Field(None, max_length=200, description="Text in title or link.")

    def narrowing(self) -> dict[str, Any]:
        """In the words of the service."""
        return {
            "feed": self.feed,
            "job": self.job,
            "statuses": self.status,
            "reasons": self.reason,
            "waiting": self.waiting,
            "is_held": self.held,
            "step": self.step,
            "words": self.search,
        }


class ItemOut(Model):
    """An article. `outcome` says in a word or two what became of it; null while it waits. If it is not known whether
    its post arrived, a run looks for it from `next_look_at` on. `job` and `feed` are null if another program has
    stored it and no feed has listed it."""

    id: int
    job: str | None
    feed: str | None
    title: str
    url: str
    published_at: Moment
    status: Status
    reason: Reason | None
    outcome: str | None
    retry_count: int
    waiting: Waiting | None
    not_before: Moment | None
    next_look_at: Moment | None
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

    history: list[SentenceText]
    steps: list[ItemStep]
    tokens: int
    cost: float | None
    next: list[SentenceText]


class Approval(Model):
    """What a person decides about a post."""

    unsettled: Literal["was_sent", "send_again"] | None = Field(
        None, description="Resolution of a post of which it is unknown whether it arrived."
    )


class ItemPreview(ItemOut):
    """The post of an item as it would be now; null while there is no summary, or if `problem` says why it cannot be
    posted. `prompts` is what the model is told at each step, `message` the article as it is handed over."""

    prompts: dict[str, str]
    message: str | None
    verdict: str | None
    why: str | None
    post: dict[str, JsonValue] | None
    length: int | None
    limit: int | None
    problem: str | None


class Requeue(Model):
    """Which items: all that were deferred or given up for a reason."""

    reason: Reason
    feed: FeedName | None = Field(
        None, description="Include only items of this feed: `name` or `job/name`."
    )
    dry_run: bool = Field(False, description="Return the items without requeuing them.")


class Requeued(Model):
    """How many items are, or would be, worked on again, and the first hundred of them."""

    count: int
    items: list[ItemOut]


class PlannedItem(ItemOut):
    position: int
    next_step: str


class PlanOut(Model):
    """Items in the order in which a run would draw them, each with its next step."""

    items: list[PlannedItem]


def item_out(context: Context, view: ItemView) -> ItemOut:
    return ItemOut.model_validate(context.mask(view.as_dict()))


@router.get("/feeds/items", right=Right.COLLECTORS_READ, refuses=[404])
def list_feed_items(context: Context, query: Annotated[ItemQuery, Query()]) -> Page[ItemOut]:
    """List items, the newest first. `status` and `reason` can be repeated."""
    items, narrowing = feeds_service(context).items, query.narrowing()
    return context.page(
        query,
        find=lambda after, limit: items.find(before_id=after, limit=limit, **narrowing),
        position=lambda view: view.item.id,
        item=lambda view: item_out(context, view),
        count=lambda: count_of(items.count(at_most=COUNT_MAX + 1, **narrowing)),
    )


@router.get("/feeds/items/{item_id}", right=Right.COLLECTORS_READ, refuses=[404])
def get_feed_item(context: Context, item_id: ItemId) -> ItemOut:
    """One item."""
    return item_out(context, feeds_service(context).items.get(str(item_id)))


@router.get("/feeds/items/{item_id}/explain", right=Right.COLLECTORS_READ, refuses=[404])
def explain_feed_item(context: Context, item_id: ItemId) -> ItemExplanation:
    """Every step of an item, what it cost, and what happens next and when."""
    told = feeds_service(context).explanations.explain(str(item_id))
    return ItemExplanation.model_validate(context.mask(told.as_dict()))


@router.post("/feeds/items/{item_id}/approve", right=Right.COLLECTORS_OPERATE, refuses=[404])
def approve_feed_item(context: Context, item_id: ItemId, body: Approval | None = None) -> ItemOut:
    """Let a held post go out with the next run; or say of an unsettled one whether it arrived."""
    items, name = feeds_service(context).items, str(item_id)
    if body is None or body.unsettled is None:
        (view,) = items.approve([name])
    else:
        (view,) = items.settle([name], was_sent=body.unsettled == "was_sent")
    return item_out(context, view)


@router.post("/feeds/items/{item_id}/requeue", right=Right.COLLECTORS_OPERATE, refuses=[404])
def requeue_feed_item(context: Context, item_id: ItemId) -> ItemOut:
    """Have an item worked on again. What was posted is refused."""
    (view,) = feeds_service(context).items.requeue([str(item_id)])
    return item_out(context, view)


@router.get("/feeds/items/{item_id}/preview", right=Right.COLLECTORS_READ, refuses=[404])
def preview_feed_item(context: Context, item_id: ItemId) -> ItemPreview:
    """The post of an item as it would be now, from what is stored: nothing is sent and nothing is paid."""
    told = feeds_service(context).previews.preview(str(item_id))
    return ItemPreview.model_validate(context.mask(told.as_dict()))


@router.post("/feeds/items/requeue", right=Right.COLLECTORS_OPERATE, refuses=[404])
def requeue_feed_items(context: Context, body: Requeue) -> Requeued:
    """Have every item with a reason worked on again, at most 10,000 at once. What was posted stays as it is."""
    views = feeds_service(context).items.requeue_by_reason(
        body.reason, feed=body.feed, dry_run=body.dry_run
    )
    shown = [item_out(context, view) for view in views[:SHOWN_MAX]]
    return Requeued(count=len(views), items=shown)


@router.get("/feeds/jobs/{name}/plan", right=Right.COLLECTORS_READ, refuses=[404])
def plan_feeds_job(
    context: Context, name: JobName, limit: Annotated[int, Query(ge=1, le=LIMIT_MAX)] = SHOWN_MAX
) -> PlanOut:
    """The items that a feeds job would work on now. Nothing is paid and nothing is posted."""
    planned = feeds_service(context).explanations.plan(name, limit=limit)
    return PlanOut(items=[PlannedItem.model_validate(context.mask(one)) for one in planned])
