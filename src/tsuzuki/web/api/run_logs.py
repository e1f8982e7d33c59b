"""The log of a run: as JSON page by page, as text, and as a stream of events while it is written."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from itertools import chain
from typing import Annotated

from fastapi import Header, Query, Request
from fastapi.sse import format_sse_event
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from tsuzuki.model.access import Right
from tsuzuki.model.errors import TsuzukiError
from tsuzuki.model.visible_text import neutralise
from tsuzuki.services.logs import LINES_MAX, LogLine
from tsuzuki.web.answers import Model, Moment
from tsuzuki.web.api.runs import RunId
from tsuzuki.web.context import Context
from tsuzuki.web.route import api_router, problem_responses
from tsuzuki.web.security.authentication import authenticate
from tsuzuki.web.security.rights import requires

router = api_router("runs")

POLL_SECONDS = 0.25
COMMENT_SECONDS = 15.0
ACCESS_CHECK_SECONDS = 5.0
PAGE_LINES = 500


class LogLineOut(Model):
    """One line. `seq` counts from 1; `stream` is stdout, stderr or log."""

    seq: int
    at: Moment
    stream: str
    body: str


class LogPage(Model):
    """Lines in order. `next_after` continues after the last of them; null if there is no more now."""

    lines: list[LogLineOut]
    next_after: int | None


def line_out(context: Context, line: LogLine) -> LogLineOut:
    return LogLineOut(
        seq=line.seq, at=line.at, stream=line.stream, body=context.application.mask.text(line.body)
    )


@router.get(
    "/runs/{run_id}/logs",
    dependencies=[requires(Right.RUNS_READ)],
    responses=problem_responses(404),
)
def run_logs(
    context: Context,
    run_id: RunId,
    after: Annotated[int, Query(ge=0, le=2**31 - 1, description="After this `seq`.")] = 0,
    limit: Annotated[int, Query(ge=1, le=LINES_MAX)] = 1000,
) -> LogPage:
    """The lines that are there now."""
    lines = context.application.logs.read(run_id, after_seq=after, limit=limit)
    return LogPage(
        lines=[line_out(context, line) for line in lines],
        next_after=lines[-1].seq if len(lines) == limit else None,
    )


@router.get(
    "/runs/{run_id}/logs/text",
    dependencies=[requires(Right.RUNS_READ)],
    response_class=StreamingResponse,
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
        **problem_responses(404),
    },
)
def run_logs_text(context: Context, run_id: RunId) -> StreamingResponse:
    """The whole log as text. Control characters are shown as escapes, so it does no harm to a terminal."""
    lines = context.application.logs.read_all(run_id)
    first = next(lines, None)  # what cannot be read is told before the answer starts
    mask = context.application.mask

    def whole() -> Iterator[str]:
        for line in chain([] if first is None else [first], lines):
            tabbed = (neutralise(part) for part in mask.text(line.body).split("\t"))
            yield "\t".join(tabbed) + "\n"

    return StreamingResponse(
        whole(),
        media_type="text/plain; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="run-{run_id}.log"'},
    )


@router.get(
    "/runs/{run_id}/logs/stream",
    dependencies=[requires(Right.RUNS_READ)],
    response_class=StreamingResponse,
    responses={
        200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}},
        **problem_responses(404),
    },
)
async def run_logs_stream(
    request: Request,
    context: Context,
    run_id: RunId,
    after: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
    last_event_id: Annotated[str | None, Header(pattern=r"^\d{1,9}$")] = None,
) -> StreamingResponse:
    """The lines as events, as they are written; `end` follows the last. `Last-Event-ID` resumes exactly."""
    start = int(last_event_id) if last_event_id is not None else after
    await run_in_threadpool(context.application.runs.get, run_id)
    return StreamingResponse(
        _events(request, context, run_id, start),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
    )


async def _events(
    request: Request, context: Context, run_id: int, seq: int
) -> AsyncIterator[bytes]:
    """Until the run has ended, the server stops, or the credentials are not valid any more."""
    application, state = context.application, request.app.state
    clock = asyncio.get_running_loop().time
    said_at = checked_at = clock()
    had_ended = False
    while not state.stopping.is_set():
        try:
            lines = await run_in_threadpool(
                application.logs.read, run_id, after_seq=seq, limit=PAGE_LINES
            )
            ended = (await run_in_threadpool(application.runs.get, run_id)).run.state.is_final
            if clock() - checked_at > ACCESS_CHECK_SECONDS:
                await authenticate(request, state.authenticator)
                checked_at = clock()
        except TsuzukiError as problem:
            yield format_sse_event(event="error", data_str=problem.specific_code)
            return
        for line in lines:
            seq, said_at = line.seq, clock()
            yield format_sse_event(id=str(seq), data_str=line_out(context, line).model_dump_json())
        if had_ended and not lines:
            yield format_sse_event(event="end", data_str="{}")
            return
        # The last lines come with the end itself: after seeing it, one look more is due.
        had_ended = ended
        if clock() - said_at > COMMENT_SECONDS:
            said_at = clock()
            yield format_sse_event(comment="open")
        if not lines and not ended:
            with suppress(TimeoutError):
                await asyncio.wait_for(state.stopping.wait(), POLL_SECONDS)
