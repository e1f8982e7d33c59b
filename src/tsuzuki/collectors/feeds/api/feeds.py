"""`/feeds`: the feeds of the jobs, how each fares, work on them now, and what is spent."""

from typing import Annotated
from urllib.parse import quote

from fastapi import Path, Query, Request, Response
from pydantic import Field, JsonValue
from starlette.concurrency import run_in_threadpool

from tsuzuki.collectors.feeds.service import FeedsService
from tsuzuki.collectors.feeds.service.feed_definitions import FeedView
from tsuzuki.model.access import Right
from tsuzuki.web.answers import Model, Moment
from tsuzuki.web.api.jobs import JobName, definition_of_the_request
from tsuzuki.web.api.run_models import RunOut
from tsuzuki.web.api.runs import StartRun, start_run
from tsuzuki.web.context import Context
from tsuzuki.web.paging import Page, PageRequest
from tsuzuki.web.route import ApiRouter

router = ApiRouter("feeds")

JobFilter = Annotated[str, Field(min_length=1, max_length=100)]
FeedName = Annotated[str, Field(min_length=1, max_length=250, examples=["press"])]
FeedInPath = Annotated[str, Path(min_length=1, max_length=100, examples=["press"])]


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


class FeedDetails(FeedOut):
    """`settings` are all keys of the feed with their values; null if its job has it no more."""

    settings: dict[str, JsonValue] | None


class NewFeed(Model):
    """A feed for a job."""

    name: Annotated[str, Field(min_length=1, max_length=100, examples=["press"])]
    url: str = Field(min_length=1, max_length=2000, examples=["https://www.example.org/press.rdf"])
    settings: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="Keys of the feed, as in the file.",
        examples=[{"language": "ja", "hold": True}],
    )


class AddedFeed(Model):
    """`missing` is what is needed before its items can be posted, `notes` what else to know; both are sentences."""

    job: str
    name: str
    missing: list[str]
    notes: list[str]


class ProcessRequest(Model):
    items: int | None = Field(
        None, ge=1, le=100_000, description="Maximum number of items to process."
    )

    def arguments(self) -> dict[str, JsonValue]:
        """Of the run that does it."""
        return {"fetch": False} if self.items is None else {"fetch": False, "items": self.items}


class FeedQuery(PageRequest):
    job: JobFilter | None = None


class SpendingOut(Model):
    """What one scope has spent today. A limit that is null does not exist."""

    scope: str
    day: str
    requests: int
    requests_limit: int | None
    requests_this_minute: int | None = Field(
        description="Present only if calls per minute are limited."
    )
    requests_per_minute_limit: int | None
    tokens: int
    tokens_limit: int | None
    cost: float
    cost_limit: float | None
    resets_at: Moment
    parked_until: Moment | None = Field(description="End of the pause the model asked for.")


class BudgetOut(Model):
    items: list[SpendingOut]


def feeds_service(context: Context) -> FeedsService:
    service: FeedsService = context.application.service("feeds")
    return service


def feed_out(context: Context, view: FeedView) -> FeedOut:
    return FeedOut.model_validate(context.mask(view.as_dict()))


@router.get("/feeds", right=Right.COLLECTORS_READ, refuses=[404])
def list_feeds(context: Context, query: Annotated[FeedQuery, Query()]) -> Page[FeedOut]:
    """List the feeds of the jobs, and those that no job has any more, by job and name."""
    found = feeds_service(context).definitions.find(query.job, counted=True)
    return context.page_of_rows(
        query,
        found,
        position=_label,
        item=lambda view: feed_out(context, view),
    )


def _label(view: FeedView) -> str:
    return view.label


@router.get("/feeds/jobs/{name}/feeds/{feed}", right=Right.COLLECTORS_READ, refuses=[404])
def get_feed(context: Context, name: JobName, feed: FeedInPath) -> FeedDetails:
    """One feed: what it is set to, how its fetches went, and how many items it has."""
    view = feeds_service(context).definitions.get(f"{name}/{feed}", counted=True)
    settings = view.options.model_dump(mode="json") if view.options else None
    return FeedDetails.model_validate(context.mask({**view.as_dict(), "settings": settings}))


@router.post(
    "/feeds/jobs/{name}/feeds", right=Right.JOBS_WRITE, refuses=[404, 409, 412], status_code=201
)
def add_feed(context: Context, name: JobName, body: NewFeed, response: Response) -> AddedFeed:
    """Add a feed to a job where the job is defined: in the file or in the database. Of what it lists at its first
    fetch nothing is posted, unless `backfill` says so."""
    definitions = feeds_service(context).definitions
    definitions.require_job(name)
    with definition_of_the_request("body.settings", is_file_whole=True):
        view = definitions.add(name, body.name, {**body.settings, "url": body.url}, schedule={})
    setup = definitions.setup(view, body.name)
    response.headers["Location"] = f"/api/v1/feeds/jobs/{name}/feeds/{quote(body.name, safe='')}"
    told = context.mask({"missing": setup.missing, "notes": setup.notes})
    return AddedFeed(job=name, name=body.name, **told)


@router.delete(
    "/feeds/jobs/{name}/feeds/{feed}",
    right=Right.JOBS_WRITE,
    refuses=[404, 409, 412],
    status_code=204,
)
def remove_feed(context: Context, name: JobName, feed: FeedInPath) -> None:
    """Follow a feed no longer. Its items are kept, so that none is posted twice if it comes back."""
    feeds_service(context).definitions.remove(f"{name}/{feed}")


@router.post(
    "/feeds/jobs/{name}/fetch", right=Right.COLLECTORS_OPERATE, refuses=[404], status_code=201
)
async def fetch_feeds(
    request: Request, response: Response, context: Context, name: JobName
) -> RunOut:
    """Start a run that fetches the feeds of a job. Nothing is paid and nothing is posted."""
    await run_in_threadpool(lambda: feeds_service(context).definitions.require_job(name))
    return await start_run(request, response, name, StartRun(arguments={"process": False}))


@router.post(
    "/feeds/jobs/{name}/process", right=Right.COLLECTORS_OPERATE, refuses=[404], status_code=201
)
async def process_feeds(
    request: Request,
    response: Response,
    context: Context,
    name: JobName,
    body: ProcessRequest | None = None,
) -> RunOut:
    """Start a run that works on the items of a job: screen, summarise, post. The feeds are not fetched."""
    await run_in_threadpool(lambda: feeds_service(context).definitions.require_job(name))
    asked = body or ProcessRequest(items=None)
    return await start_run(request, response, name, StartRun(arguments=asked.arguments()))


@router.get("/feeds/budget", right=Right.COLLECTORS_READ)
def feeds_budget(context: Context) -> BudgetOut:
    """What was spent on models today, what may still be, and when there is more."""
    used = feeds_service(context).spending.use()
    return BudgetOut(items=[SpendingOut.model_validate(one.as_dict()) for one in used])
