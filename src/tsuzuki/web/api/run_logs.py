"""The log of a run: as JSON page by page, as text, and as a stream of events while it is written."""

import json
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from functools import partial
from itertools import chain
from typing import Annotated

from fastapi import Header, Query, Request
from fastapi.sse import format_sse_event
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from tsuzuki.model.access import Right
from tsuzuki.model.visible_text import neutralise
from tsuzuki.services.logs import LINES_MAX, LogLine
from tsuzuki.web.answers import Model, Moment
from tsuzuki.web.api.runs import RunId
from tsuzuki.web.context import Context
from tsuzuki.web.route import ApiRouter
from tsuzuki.web.stream.credentials import credentials_of
from tsuzuki.web.stream.frames import read_frame
from tsuzuki.web.stream.hub import Hub
from tsuzuki.web.stream.rendering import JsonRenderer, write_json
from tsuzuki.web.stream.response import EventStream
from tsuzuki.web.stream.subscription import END, RELOAD, Subscription
from tsuzuki.web.stream.topics import StreamEventKind, parse_topics

router = ApiRouter("runs")


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


@router.get("/runs/{run_id}/logs", right=Right.RUNS_READ, refuses=[404])
def run_logs(
    context: Context,
    run_id: RunId,
    after: Annotated[
        int, Query(ge=0, le=2**31 - 1, description="Return lines after this `seq`.")
    ] = 0,
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
    right=Right.RUNS_READ,
    refuses=[404],
    response_class=StreamingResponse,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
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
    right=Right.RUNS_READ,
    refuses=[404, 429],
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
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
    topics = parse_topics(f"{StreamEventKind.LOGS.value}:{run_id}:{start}")
    hub: Hub = request.app.state.stream_hub
    subscription = await hub.subscribe(
        topics,
        JsonRenderer(context.application.mask),
        credentials=credentials_of(request, context.principal),
    )
    is_live = partial(context.application.runs.live, [run_id])
    return LogStream(subscription, after=start, is_live=is_live)


class LogStream(EventStream):
    """A stream of the hub, which reads a log once for all that follow it, with one event for each line. It ends with
    the log."""

    def __init__(
        self, subscription: Subscription, *, after: int, is_live: Callable[[], Collection[int]]
    ) -> None:
        super().__init__(subscription)
        self._after = after
        self._is_live = is_live

    async def frames(self) -> AsyncIterator[bytes]:
        async for written in super().frames():
            name, data = read_frame(written)
            if name is None:
                yield format_sse_event(comment="open")
            elif name == END:
                yield format_sse_event(event="error", data_str=json.loads(data)["code"])
                return
            elif name == StreamEventKind.LOGS:
                told = json.loads(data)
                for line in told["lines"]:
                    if line["seq"] > self._after:
                        yield format_sse_event(id=str(line["seq"]), data_str=write_json(line))
                if told["ended"]:
                    break
            elif name == RELOAD and not await run_in_threadpool(self._is_live):
                break  # asked for lines that the log never had
        else:
            return
        yield format_sse_event(event="end", data_str="{}")
