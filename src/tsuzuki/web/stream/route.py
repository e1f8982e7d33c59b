"""`/stream`: what changes, as server-sent events, for as long as it is followed."""

from typing import Annotated

from fastapi import Header, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from tsuzuki.services.access.permissions import require
from tsuzuki.web.context import Context
from tsuzuki.web.route import ApiRouter
from tsuzuki.web.security.rights import AUTHENTICATED
from tsuzuki.web.stream.credentials import credentials_of
from tsuzuki.web.stream.frames import ID_LENGTH_MAX, read_id
from tsuzuki.web.stream.hub import Hub
from tsuzuki.web.stream.rendering import JsonRenderer
from tsuzuki.web.stream.response import EventStream
from tsuzuki.web.stream.topics import Topics, forms, parse_topics
from tsuzuki.wiring.application import Application

router = ApiRouter("stream")

TOPICS_LENGTH_MAX = 4_000
NO_POSITION = "?"


@router.get(
    "/stream",
    right=AUTHENTICATED,
    refuses=[404, 429],
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
async def stream(
    request: Request,
    context: Context,
    topics: Annotated[
        str,
        Query(
            max_length=TOPICS_LENGTH_MAX,
            description=f"One or more of {forms()}.",
            examples=["runs,workers"],
        ),
    ],
    after: Annotated[
        str | None,
        Query(max_length=ID_LENGTH_MAX, description="Like Last-Event-ID, which takes precedence."),
    ] = None,
    last_event_id: Annotated[
        str | None, Header(description="ID of the last event received.")
    ] = None,
) -> StreamingResponse:
    """What changes, as server-sent events. `runs` has moves of runs, `logs` new lines; the other topics tell what
    differs from the known state. `Last-Event-ID` resumes exactly, on any server of the same database; if what came
    since cannot be told any more, `reload` says so. Topics of runs need the right runs:read, `workers` workers:read,
    and a topic of a collector the right of its pages."""
    asked = parse_topics(topics)
    for right in sorted(asked.rights):
        require(context.principal, right)
    resumed = last_event_id if last_event_id is not None else after
    sources = {selection.source for selection in asked.selections}
    known = {name: position for name, position in read_id(resumed).items() if name in sources}
    if resumed and not known:
        known = dict.fromkeys(sources, NO_POSITION)
    if not resumed:
        await run_in_threadpool(_require, context.application, asked)
    hub: Hub = request.app.state.stream_hub
    subscription = await hub.subscribe(
        asked,
        JsonRenderer(context.application.mask),
        known=known,
        credentials=credentials_of(request, context.principal),
    )
    return EventStream(subscription)


def _require(application: Application, topics: Topics) -> None:
    """Raises `NotFound` for a job or a run that is not there."""
    for name in sorted(topics.jobs):
        application.jobs.get(name)
    for run_id in sorted(topics.runs):
        application.runs.get(run_id)
