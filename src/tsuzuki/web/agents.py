"""`/mcp`: the tools for coding agents over streamable HTTP. Each tool declares its own right.

A call ends when its token is revoked or the server stops. A request that a page of another site sends is refused,
also with a token.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import anyio
from fastapi import Query, Request, Response
from pydantic import AfterValidator
from starlette.concurrency import run_in_threadpool
from starlette.types import Message, Receive, Scope, Send

from tsuzuki.mcp.presets import presets
from tsuzuki.model.errors import Interrupted, TsuzukiError, extra_missing
from tsuzuki.services.read_limit import READ_SECONDS, limited_reads
from tsuzuki.web.idempotency import NOT_KEPT
from tsuzuki.web.problems import MEDIA_TYPE, RequestError, problem_response
from tsuzuki.web.route import ApiRouter
from tsuzuki.web.security.authentication import authenticate
from tsuzuki.web.security.bodies import BODY_BYTES_MAX
from tsuzuki.web.security.origins import check_no_other_site
from tsuzuki.web.security.rights import AUTHENTICATED
from tsuzuki.wiring.application import Application

if TYPE_CHECKING:
    from tsuzuki.mcp.http import HttpTools

router = ApiRouter("agents", prefix="")

DEFAULT_TOOLS = next(iter(presets()))


def _known_tools(name: str) -> str:
    if name not in presets():
        raise ValueError(f"unknown tool set {name!r}: use one of {', '.join(presets())}")
    return name


ToolSetName = Annotated[
    str, AfterValidator(_known_tools), Query(json_schema_extra={"enum": [*presets()]})
]

ACCESS_CHECK_SECONDS = 1.0
Answer = Callable[[Scope, Receive, Send], Awaitable[None]]
_MESSAGE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "jsonrpc": {"const": "2.0"},
        "id": {"type": ["string", "integer"]},
        "method": {"type": "string", "examples": ["tools/list"]},
        "params": {"type": "object"},
    },
    "required": ["jsonrpc", "method"],
}
_EXAMPLE = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
_ANSWER = {"application/json": {"schema": {"type": "object"}}}
_PROBLEM = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}


class Agents:
    """The tools of this server, loaded with the first request: most servers are never asked."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._lock = threading.Lock()
        self._tools: HttpTools | None = None

    def tools(self) -> "HttpTools":
        """Raises `ConfigurationError` if the SDK is not installed."""
        with self._lock:
            if self._tools is None:
                self._tools = self._load()
            return self._tools

    def close(self) -> None:
        with self._lock:
            if self._tools is not None:
                self._tools.close()

    def _load(self) -> "HttpTools":
        try:
            from tsuzuki.mcp.http import HttpTools  # noqa: PLC0415 -- slow to load, and an extra of its own
        except ModuleNotFoundError as missing:
            if (missing.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
                raise
            raise extra_missing("the MCP SDK is not installed", extra="mcp") from None
        return HttpTools(self._application, body_bytes_max=BODY_BYTES_MAX)


@router.post(
    "/mcp",
    right=AUTHENTICATED,
    response_class=Response,
    responses={
        200: {
            "description": "The result; an event stream if the call reports progress.",
            "content": {**_ANSWER, "text/event-stream": {}},
        },
        202: {"description": "The notification was accepted."},
        400: {
            "description": "Not a valid message of the protocol.",
            "content": {**_ANSWER, **_PROBLEM},
        },
        404: {"description": "Unknown method.", "content": {**_ANSWER, **_PROBLEM}},
        406: {"description": "Accept must include application/json and text/event-stream."},
    },
    openapi_extra={
        **NOT_KEPT,
        "requestBody": {
            "content": {"application/json": {"schema": _MESSAGE, "example": _EXAMPLE}},
            "required": True,
        },
    },
)
async def call_tools(request: Request, tools: ToolSetName = DEFAULT_TOOLS) -> Response:
    """The tools for coding agents: a message of the Model Context Protocol. `tools` says which are offered; of
    these the principal is shown those that it has the right to call."""
    check_no_other_site(request.headers, request.scope["scheme"])
    body = await request.body()
    if not body:
        raise RequestError(
            "the body is empty",
            status=400,
            hint="Send a JSON-RPC message of the Model Context Protocol.",
            code="not_json",
        )
    served = await run_in_threadpool(request.app.state.agents.tools)
    principal = request.state.principal

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        with limited_reads(READ_SECONDS):  # that of the route ends before the answer is sent
            await served.answer(tools, principal, scope, _with_body(body, receive), send)

    return AnswerWithAccess(request, answer)


def _with_body(body: bytes, receive: Receive) -> Receive:
    """Gives the body that was read; after it what else comes, such as the end of the connection."""
    unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return unread.pop() if unread else await receive()

    return next_message


class AnswerWithAccess(Response):
    """An answer that ends when the credentials of its request are not valid any more, or the server stops."""

    def __init__(self, request: Request, answer: Answer) -> None:
        super().__init__()
        self._request = request
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sent: list[Message] = []

        async def send_noted(message: Message) -> None:
            sent[:] = [message]
            await send(message)

        refusals: list[TsuzukiError] = []
        async with anyio.create_task_group() as group:

            async def end_with_access() -> None:
                refusals.append(await _end_of_access(self._request))
                group.cancel_scope.cancel()

            group.start_soon(end_with_access)
            await self._answer(scope, receive, send_noted)
            group.cancel_scope.cancel()
        if refusals and not sent:
            await problem_response(refusals[0])(scope, receive, send)
        elif refusals and sent[0].get("more_body", True):
            await send({"type": "http.response.body", "body": b""})


async def _end_of_access(request: Request) -> TsuzukiError:
    """Returns why, when the credentials are not valid any more or the server stops."""
    state = request.app.state
    while True:
        with suppress(TimeoutError):
            await asyncio.wait_for(state.stopping.wait(), ACCESS_CHECK_SECONDS)
        if state.stopping.is_set():
            return Interrupted(
                "the server is shutting down",
                hint="Repeat the call: another server may be running.",
            )
        try:
            await authenticate(request, state.authenticator)
        except TsuzukiError as problem:
            return problem
