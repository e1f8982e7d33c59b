"""`/bulk`: preview, confirm, follow and stop bulk actions, which cancel or retry all runs that match a filter."""

from typing import Annotated, Any

from fastapi import Path, Response
from pydantic import ConfigDict, Field

from tsuzuki.model.access import Right
from tsuzuki.model.bulk import BulkResult, BulkState, BulkVerb
from tsuzuki.services.bulk import BulkActionView
from tsuzuki.web.answers import Model, Moment
from tsuzuki.web.api.run_models import RunOut, run_out
from tsuzuki.web.api.run_query import RunConditions, conditions_out
from tsuzuki.web.context import Context
from tsuzuki.web.paging import COUNT_MAX, Page, PageQuery, count_of
from tsuzuki.web.route import ApiRouter
from tsuzuki.web.security.bodies import INTEGER_MAX

router = ApiRouter("bulk")

BulkId = Annotated[int, Path(ge=1, le=INTEGER_MAX, examples=[7])]


class BulkConditions(RunConditions):
    """Which runs: the filters of the list of runs."""

    model_config = ConfigDict(extra="forbid")


class NewBulk(Model):
    verb: BulkVerb
    filter: BulkConditions = Field(examples=[{"job": ["hello"], "state": ["FAILED"]}])


class BulkOut(Model):
    """A bulk action. `matched` runs at its preview, of which `done` are done. The leader carries a cancel out, the run
    `run_id` a retry."""

    id: int
    verb: BulkVerb
    state: BulkState
    filter: dict[str, Any] = Field(description="The filter as it was parsed and stored.")
    matched: int
    done: int
    run_id: int | None
    created_at: Moment
    created_by: str
    confirmed_at: Moment | None
    confirmed_by: str | None
    stopped_at: Moment | None
    finished_at: Moment | None


class BulkPreview(BulkOut):
    samples: list[RunOut] = Field(description="The first matching runs, at most ten.")


class BulkResultOut(Model):
    """What became of one run. `new_run_id` is the run that retries it."""

    run_id: int
    result: BulkResult
    new_run_id: int | None


def bulk_out(view: BulkActionView) -> BulkOut:
    return BulkOut(**_values(view))


def _values(view: BulkActionView) -> dict[str, Any]:
    values = view.as_dict()
    return {**values, "filter": conditions_out(values["filter"])}


@router.get("/bulk", right=Right.RUNS_READ)
def list_bulk(context: Context, query: PageQuery) -> Page[BulkOut]:
    """List bulk actions, the newest first; previews that were not confirmed are kept for a day."""
    bulk = context.application.bulk

    return context.page(
        query,
        find=lambda after, limit: bulk.find(before_id=after, limit=limit),
        position=lambda view: view.action.id,
        item=bulk_out,
        count=lambda: count_of(bulk.count(at_most=COUNT_MAX + 1)),
    )


@router.post("/bulk", right=Right.RUNS_OPERATE, refuses=[404], status_code=201)
def preview_bulk(context: Context, body: NewBulk, response: Response) -> BulkPreview:
    """Freeze a filter and count what it matches. Nothing is done until it is confirmed, within the hour."""
    wanted = body.filter.run_filter(where="body.filter")
    view = context.application.bulk.preview(body.verb, wanted)
    response.headers["Location"] = f"/api/v1/bulk/{view.action.id}"
    return BulkPreview(**_values(view), samples=[run_out(context, run) for run in view.samples])


@router.get("/bulk/{bulk_id}", right=Right.RUNS_READ, refuses=[404])
def get_bulk(context: Context, bulk_id: BulkId) -> BulkOut:
    """One bulk action, and how far it is."""
    return bulk_out(context.application.bulk.get(bulk_id))


@router.post(
    "/bulk/{bulk_id}/confirm", right=Right.RUNS_OPERATE, refuses=[404, 409], status_code=202
)
def confirm_bulk(context: Context, bulk_id: BulkId, response: Response) -> BulkOut:
    """Have it carried out: a cancel by the leader, a retry by a run. Location names what to follow. Refused if far more
    runs match than at its preview."""
    view = context.application.bulk.confirm(bulk_id)
    run_id = view.action.run_id
    followed = f"bulk/{bulk_id}" if run_id is None else f"runs/{run_id}"
    response.headers["Location"] = f"/api/v1/{followed}"
    return bulk_out(view)


@router.post("/bulk/{bulk_id}/stop", right=Right.RUNS_OPERATE, refuses=[404, 409])
def stop_bulk(context: Context, bulk_id: BulkId) -> BulkOut:
    """Let it go no further. What was done stays done."""
    return bulk_out(context.application.bulk.stop(bulk_id))


@router.get("/bulk/{bulk_id}/results", right=Right.RUNS_READ, refuses=[404])
def bulk_results(context: Context, bulk_id: BulkId, query: PageQuery) -> Page[BulkResultOut]:
    """What became of each run, by run id."""
    bulk = context.application.bulk

    return context.page(
        query,
        find=lambda after, limit: bulk.results(bulk_id, after_run_id=after or 0, limit=limit),
        position=lambda result: result.run_id,
        item=lambda result: BulkResultOut(**result._asdict()),
        count=lambda: count_of(bulk.get(bulk_id).action.done),
    )
