"""`/runs`: start, list, read, wait for, cancel and retry runs."""

from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any

from fastapi import Header, Path, Query, Request, Response
from pydantic import Field, JsonValue
from starlette.concurrency import run_in_threadpool

from tsuzuki.model.access import AnyRight, Right
from tsuzuki.model.errors import NotPermitted
from tsuzuki.model.job import PRIORITY_MAX, PRIORITY_MIN
from tsuzuki.model.run import Run
from tsuzuki.services.access.permissions import require
from tsuzuki.services.explain import StatusReason
from tsuzuki.services.runs import DELAY_MAX_SECONDS
from tsuzuki.services.runs import Request as RunRequest
from tsuzuki.web.answers import IS_NUMBER, Model, Number
from tsuzuki.web.api.explanations import (
    RunExplanation,
    RunStackOut,
    explanation_out,
    stack_of_run,
)
from tsuzuki.web.api.jobs import JobName
from tsuzuki.web.api.run_models import (
    ListedRun,
    RunDetail,
    RunOut,
    TransitionOut,
    detail_out,
    listed_out,
    run_out,
)
from tsuzuki.web.api.run_query import RunQuery
from tsuzuki.web.context import Context, request_context
from tsuzuki.web.paging import COUNT_MAX, Count, Page, SearchedRows
from tsuzuki.web.route import ApiRouter
from tsuzuki.web.security.authentication import authenticate
from tsuzuki.web.security.bodies import INTEGER_MAX, LOOP_BYTES_MAX
from tsuzuki.web.waiting import WAIT_SECONDS_MAX, preferred_wait_seconds

router = ApiRouter("runs")

RunId = Annotated[int, Path(ge=1, le=INTEGER_MAX, examples=[42])]


class StartRun(Model):
    """How a run is started. Everything has a default."""

    arguments: dict[str, JsonValue] = Field(default_factory=dict, examples=[{"month": 11}])
    priority: Annotated[int, Field(ge=PRIORITY_MIN, le=PRIORITY_MAX), IS_NUMBER] | None = None
    delay_seconds: Number = Field(default=0.0, ge=0, le=DELAY_MAX_SECONDS)
    concurrency_key: str | None = Field(default=None, max_length=500)


class Waited(Model):
    """A run after waiting. `ended` is false if the time was over first."""

    ended: bool
    run: RunOut


@router.get("/runs", right=Right.RUNS_READ, refuses=[404])
def list_runs(context: Context, query: Annotated[RunQuery, Query()]) -> Page[ListedRun]:
    """List runs, the newest first. Runs that wait have the reason."""
    runs = context.application.runs
    reasons: dict[int, StatusReason] = {}

    def find(after: Any, limit: int) -> SearchedRows[Run]:
        found = search(after, limit)
        reasons.update(runs.waiting_reasons(found.rows))
        return found

    def search(after: Any, limit: int) -> SearchedRows[Run]:
        wanted = query.run_filter(before_id=after, limit=limit)
        if after is not None or not query.count:
            return SearchedRows(*runs.search(wanted))
        found, counted = runs.search_and_count(wanted, at_most=COUNT_MAX)
        return SearchedRows(*found, count=Count(**counted._asdict()))

    def count() -> Count:
        return Count(**runs.counted(query.run_filter(), at_most=COUNT_MAX)._asdict())

    return context.page(
        query,
        find=find,
        position=lambda run: run.id,
        item=lambda run: listed_out(context, run, reasons.get(run.id)),
        count=count,
    )


@router.post("/jobs/{name}/runs", right=Right.JOBS_OPERATE, refuses=[404, 409], status_code=201)
async def start_run(
    request: Request,
    response: Response,
    name: JobName,
    body: StartRun | None = None,
    prefer: Annotated[
        str | None,
        Header(
            description="`wait=30` waits up to 30 seconds for the run to end.", examples=["wait=30"]
        ),
    ] = None,
) -> RunOut:
    """Start a run of a job now. `Prefer: wait=30` answers when it has ended, or after that time."""
    context = request_context(request)  # cheaper than as a dependency
    asked = body or StartRun()
    key = None if context.request_id is None else f"api:{context.request_id}"
    run = await request.app.state.run_intake.start(
        RunRequest(job=name, idempotency_key=key, **asked.model_dump()),
        actor=context.principal.actor,
    )
    response.headers["Location"] = _location(run.id)
    seconds = preferred_wait_seconds(prefer)
    if seconds:
        await request.app.state.run_waits.wait(run.id, seconds)
        response.headers["Preference-Applied"] = f"wait={seconds}"
        # Whose token was revoked meanwhile learns no more. A refusal would free the key of a run that is stored.
        with suppress(NotPermitted):
            await _check_again(request, Right.JOBS_OPERATE)
            run = (await run_in_threadpool(context.application.runs.get, run.id)).run
    # To mask much takes long, and a run that has ended may have a large result.
    is_large = bool(seconds) or len(await request.body()) > LOOP_BYTES_MAX
    made = partial(run_out, context, run)
    return await run_in_threadpool(made) if is_large else made()


async def _check_again(request: Request, right: AnyRight) -> None:
    """After a wait: raise `NotPermitted` if the credentials are not valid any more, or have not the right."""
    require(await authenticate(request, request.app.state.authenticator), right)


def _location(run_id: int) -> str:
    return f"/api/v1/runs/{run_id}"


@router.get("/runs/{run_id}", right=Right.RUNS_READ, refuses=[404])
def get_run(context: Context, run_id: RunId) -> RunDetail:
    """One run, with its history and the run that retries it."""
    return detail_out(context, context.application.runs.get(run_id))


@router.get("/runs/{run_id}/history", right=Right.RUNS_READ, refuses=[404])
def run_history(context: Context, run_id: RunId) -> list[TransitionOut]:
    """Every move of a run, in order."""
    view = context.application.runs.get(run_id)
    return [TransitionOut(**asdict(transition)) for transition in view.history]


@router.get("/runs/{run_id}/wait", right=Right.RUNS_READ, refuses=[404])
async def wait_for_run(
    request: Request,
    context: Context,
    run_id: RunId,
    seconds: Annotated[float, Query(ge=0, le=WAIT_SECONDS_MAX)] = 30,
) -> Waited:
    """Wait until a run has ended, or until the time is over."""
    runs = context.application.runs
    view = await run_in_threadpool(runs.get, run_id)
    if not view.run.state.is_final:
        await request.app.state.run_waits.wait(run_id, seconds)
        await _check_again(request, Right.RUNS_READ)
        view = await run_in_threadpool(runs.get, run_id)
    run = await run_in_threadpool(run_out, context, view.run)
    return Waited(ended=view.run.state.is_final, run=run)


@router.get("/runs/{run_id}/explain", right=Right.RUNS_READ, refuses=[404])
def explain_run(context: Context, run_id: RunId) -> RunExplanation:
    """Why a run is where it is, and what must happen for it to go on."""
    return explanation_out(context, context.application.runs.explain(run_id))


@router.get("/runs/{run_id}/stack", right=Right.RUNS_READ, refuses=[404])
def run_stack(context: Context, run_id: RunId) -> RunStackOut:
    """Where the Python function of a run is right now. Its worker is asked, and answers within three seconds unless the
    function lets no other thread run."""
    return stack_of_run(context, run_id)


@router.post("/runs/{run_id}/cancel", right=Right.RUNS_OPERATE, refuses=[404, 409])
def cancel_run(context: Context, run_id: RunId) -> RunDetail:
    """Stop a run, or never let it start. If its handler has a transaction open that holds the run, the answer has
    `cancel_requested_at`, and the run is canceled when that transaction ends."""
    runs = context.application.runs
    runs.cancel(run_id)
    return detail_out(context, runs.get(run_id))


@router.post("/runs/{run_id}/retry", right=Right.RUNS_OPERATE, refuses=[404, 409], status_code=201)
def retry_run(context: Context, run_id: RunId, response: Response) -> RunOut:
    """Retry a run that ended, as a new one with the same arguments."""
    runs = context.application.runs
    new_id = runs.retry(run_id).run_id
    response.headers["Location"] = _location(new_id)
    return run_out(context, runs.get(new_id).run)
