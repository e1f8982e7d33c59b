"""Collections of commits: the list of them, one with the result of each target, retry and cancel."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Query, Response
from pydantic import Field

from tsuzuki.collectors.commits.api.commits import CollectionId, TargetResult, commits_service
from tsuzuki.collectors.commits.pages.commits import CollectionRow, collection_row, moment_of
from tsuzuki.collectors.commits.service.collections import JOB, Result, ResultStatus
from tsuzuki.model.access import Right
from tsuzuki.web.answers import Model, Moment
from tsuzuki.web.pages.context import Page, PageContext
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.route import Screen
from tsuzuki.web.paging import Count, PageRequest, count_of

screen = Screen()


class CollectionsView(Model):
    collections: list[CollectionRow]
    next_cursor: str | None
    count: Count | None


@screen.page(
    "/commits/collections",
    right=Right.COLLECTORS_READ,
    template="screens/commits_collections.html",
    shared=True,
)
def collections_page(context: Page, query: Annotated[PageRequest, Query()]) -> CollectionsView:
    collections = commits_service(context).collections
    page = context.page(
        query.model_copy(update={"count": True}),
        find=lambda after, limit: collections.summaries(after=after, limit=limit),
        position=lambda summary: summary.collection_id,
        item=collection_row,
        count=lambda: count_of(collections.count()),
    )
    return CollectionsView(collections=page.items, next_cursor=page.next_cursor, count=page.count)


class ResultRow(TargetResult):
    processed_at: Moment | None


class InWorkOut(Model):
    """A target whose pages come in, and how many commits it has brought so far."""

    path: str
    branch_name: str
    commits: int


class CollectionPage(Model):
    """`has_engine`: a leader and a worker are there to work on it."""

    collection: CollectionRow
    retry_of: str | None
    job_run_id: int | None
    new_commits: int
    in_work: list[InWorkOut]
    results: list[ResultRow]
    next_cursor: str | None
    filters: dict[str, Any]
    has_engine: bool


class ResultsQuery(PageRequest):
    status: ResultStatus | None = Field(None)


@screen.page(
    "/commits/collections/{collection_id}",
    right=Right.COLLECTORS_READ,
    template="screens/commits_collection.html",
    shared=True,
)
def collection_page(
    context: Page, collection_id: CollectionId, query: Annotated[ResultsQuery, Query()]
) -> CollectionPage:
    collections = commits_service(context).collections
    view = collections.show(collection_id)
    progress = collections.progress(view.summary.collection_id)
    shown = [one for one in view.results if query.status in (None, one.status)]
    page = context.page_of_rows(
        query,
        shown,
        position=_position,
        item=lambda result: _result_row(context, result),
    )
    is_running = view.summary.completed_at_utc is None
    return CollectionPage(
        collection=collection_row(view.summary),
        retry_of=view.retry_of,
        job_run_id=view.job_run_id,
        new_commits=progress.new_commits,
        in_work=[InWorkOut.model_validate(context.mask(asdict(one))) for one in progress.in_work],
        results=page.items,
        next_cursor=page.next_cursor,
        filters=page.filters,
        has_engine=not is_running or context.application.liveness.has_live_leader_and_worker(JOB),
    )


def _position(result: Result) -> str:
    """What needs a look comes first."""
    order = {ResultStatus.FAILED: 0, ResultStatus.PENDING: 1, ResultStatus.SUCCESS: 2}
    return f"{order[result.status]} {result.path}\n{result.project_id:020}\n{result.branch_name}"


def _result_row(context: PageContext, result: Result) -> ResultRow:
    values = context.mask(asdict(result))
    return ResultRow.model_validate({**values, "processed_at": moment_of(result.processed_at_utc)})


class ConfirmCollectionView(Model):
    collection: CollectionRow


def question(context: Page, collection_id: CollectionId) -> ConfirmCollectionView:
    found = commits_service(context).collections.show(collection_id)
    return ConfirmCollectionView(collection=collection_row(found.summary))


@screen.confirmation(
    "/commits/collections/{collection_id}/retry",
    right=Right.COLLECTORS_OPERATE,
    template="screens/commits_retry.html",
    question=question,
)
def retry(context: Page, collection_id: CollectionId) -> Response:
    started = commits_service(context).collections.retry(collection_id)
    text = message("Collection started. Targets: %(count)s.")
    return context.redirect(
        f"/commits/collections/{started.collection_id}", text, count=started.total_targets
    )


@screen.confirmation(
    "/commits/collections/{collection_id}/cancel",
    right=Right.COLLECTORS_OPERATE,
    template="screens/commits_cancel.html",
    question=question,
)
def cancel(context: Page, collection_id: CollectionId) -> Response:
    summary = commits_service(context).collections.cancel(collection_id)
    text = message("Collection canceled. Results so far are kept.")
    return context.redirect(f"/commits/collections/{summary.collection_id}", text)
