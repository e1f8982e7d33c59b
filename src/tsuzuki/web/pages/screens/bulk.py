"""Bulk actions: the preview with its count and samples, the confirmation, progress, stop, and a result per run."""

from typing import Annotated

from fastapi import Path, Query, Response

from tsuzuki.model.access import Right
from tsuzuki.model.bulk import BulkState
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.services.bulk import SAMPLES
from tsuzuki.web.answers import Model
from tsuzuki.web.api.bulk import BulkOut, BulkResultOut, bulk_out
from tsuzuki.web.api.run_models import RunOut, run_out
from tsuzuki.web.pages.context import Page, PageContext
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.route import Screen
from tsuzuki.web.paging import FIRST_PAGE, PageRequest
from tsuzuki.web.security.bodies import INTEGER_MAX

screen = Screen()

BulkId = Annotated[int, Path(ge=1, le=INTEGER_MAX)]


class BulkListView(Model):
    actions: list[BulkOut]
    next_cursor: str | None


class BulkPageView(Model):
    """`samples` are runs that it matches, while it is a preview; `results` what became of each run, a page of
    it."""

    action: BulkOut
    samples: list[RunOut]
    results: list[BulkResultOut]
    next_cursor: str | None


@screen.page("/bulk", right=Right.RUNS_READ, template="screens/bulk_list.html")
def bulk_list(context: Page, query: Annotated[PageRequest, Query()]) -> BulkListView:
    bulk = context.application.bulk
    page = context.page(
        query,
        find=lambda after, limit: bulk.find(before_id=after, limit=limit),
        position=lambda view: view.action.id,
        item=bulk_out,
    )
    return BulkListView(actions=page.items, next_cursor=page.next_cursor)


@screen.page("/bulk/{bulk_id:int}", right=Right.RUNS_READ, template="screens/bulk.html")
def bulk_page(
    context: Page, bulk_id: BulkId, query: Annotated[PageRequest, Query()] = FIRST_PAGE
) -> BulkPageView:
    bulk = context.application.bulk
    found = bulk.get(bulk_id)
    page = context.page(
        query,
        find=lambda after, limit: bulk.results(bulk_id, after_run_id=after or 0, limit=limit),
        position=lambda result: result.run_id,
        item=lambda result: BulkResultOut(**result._asdict()),
    )
    return BulkPageView(
        action=bulk_out(found),
        samples=_samples(context, found.action.filter, found.action.ceiling_id)
        if found.state is BulkState.PREVIEWED
        else [],
        results=page.items,
        next_cursor=page.next_cursor,
    )


def _samples(context: PageContext, frozen: dict[str, object], ceiling_id: int) -> list[RunOut]:
    """Of what the frozen filter matches now, up to the newest run that it may reach; as many as one search finds."""
    wanted = RunFilter.from_dict({**frozen, "before_id": ceiling_id + 1, "limit": SAMPLES})
    return [run_out(context, run) for run in context.application.runs.search(wanted).runs]


@screen.form("/bulk/{bulk_id:int}/confirm", right=Right.RUNS_OPERATE, page=bulk_page)
def confirm(context: Page, bulk_id: BulkId) -> Response:
    context.application.bulk.confirm(bulk_id)
    text = message("Bulk action %(id)s started.")
    return context.redirect(f"/bulk/{bulk_id}", text, id=bulk_id)


@screen.form("/bulk/{bulk_id:int}/stop", right=Right.RUNS_OPERATE, page=bulk_page)
def stop(context: Page, bulk_id: BulkId) -> Response:
    context.application.bulk.stop(bulk_id)
    text = message("Bulk action %(id)s stopped. Runs already processed are not reverted.")
    return context.redirect(f"/bulk/{bulk_id}", text, id=bulk_id)
