"""The Tasks extension of the protocol: a call that started durable work is answered with a task to ask for.

Only a client that declares the extension with its request is answered so. A task is created before it is named, and a
source answers for it from the database: another server process answers the same.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from typing import Any, Protocol, TypeVar

import anyio.to_thread
from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp.types import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolRequestParams,
    RequestParams,
)
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, Field

from tsuzuki.model.errors import TsuzukiError

IDENTIFIER = "io.modelcontextprotocol/tasks"
POLL_INTERVAL_MS = 1000

Context = ServerRequestContext[Any, Any]
T = TypeVar("T")


class TaskStatus(StrEnum):
    """`failed` is for errors of the protocol; a tool that failed has completed, with `isError`."""

    WORKING = "working"
    INPUT_REQUIRED = "input_required"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class TaskView:
    """A task as it was when it was read."""

    task_id: str
    status: TaskStatus
    created_at: datetime
    updated_at: datetime
    message: str | None = None
    ttl_ms: int | None = None
    """How long it is kept, from its creation; None: for ever."""

    outcome: Mapping[str, Any] | None = None
    """What the status brings with it: `result`, `error` or `inputRequests`."""

    def as_wire(self) -> dict[str, Any]:
        """Without the outcome, which only `tasks/get` tells."""
        return {
            "taskId": self.task_id,
            "status": self.status.value,
            **({"statusMessage": self.message} if self.message else {}),
            "createdAt": _moment(self.created_at),
            "lastUpdatedAt": _moment(self.updated_at),
            "ttlMs": self.ttl_ms,
            "pollIntervalMs": POLL_INTERVAL_MS,
        }


class TaskSource(Protocol):
    """Where tasks are kept. Its functions may block: they are called in threads."""

    def started_by(self, tool: str, result: Mapping[str, Any]) -> TaskView | None:
        """The task that a call of that tool started, by its result; None: the result is the answer."""

    def get(self, task_id: str) -> TaskView | None:
        """None if there is no such task."""

    def cancel(self, task_id: str) -> bool:
        """Cancel it unless it has ended. False if there is no such task."""

    def update(self, task_id: str, responses: Mapping[str, Any]) -> bool:
        """Give it what it asked for; other responses are ignored. False if there is no such task."""


class TaskParams(RequestParams):
    task_id: str


class TaskUpdateParams(TaskParams):
    input_responses: dict[str, Any] = Field(default_factory=dict)


def declares_tasks(context: Context) -> bool:
    """Whether the client of this request understands tasks."""
    capabilities = context.session.client_capabilities
    is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
    return is_modern and capabilities is not None and IDENTIFIER in (capabilities.extensions or {})


def tasks_not_declared() -> MCPError:
    """The client must declare the extension for this request."""
    return MCPError(
        MISSING_REQUIRED_CLIENT_CAPABILITY,
        f"this request needs the client capability extensions[{IDENTIFIER!r}]",
        {"requiredCapabilities": {"extensions": {IDENTIFIER: {}}}},
    )


def serve_tasks(
    server: Server[Any], load_source: Callable[[], TaskSource], *, started_by: Collection[str]
) -> None:
    """Announce the extension, serve its methods, and answer calls of the tools `started_by` with their task. The
    source is loaded when it is first needed."""
    handlers = _TaskHandlers(cache(load_source))
    server.extensions[IDENTIFIER] = {}
    server.add_request_handler("tasks/get", TaskParams, handlers.get)
    server.add_request_handler("tasks/cancel", TaskParams, handlers.cancel)
    server.add_request_handler("tasks/update", TaskUpdateParams, handlers.update)
    call_tool = server.get_request_handler("tools/call")
    if call_tool is None:
        return

    async def call(context: Context, params: CallToolRequestParams) -> HandlerResult:
        result = await call_tool.handler(context, params)
        if params.name not in started_by or not declares_tasks(context):
            return result
        return await handlers.task_or(result, params.name)

    server.add_request_handler("tools/call", CallToolRequestParams, call)


class _TaskHandlers:
    def __init__(self, source: Callable[[], TaskSource]) -> None:
        self._source = source

    async def task_or(self, result: HandlerResult, tool: str) -> HandlerResult:
        """The task that the call started; the result if it started none, or if the source cannot tell: the work goes
        on, and the result names it too."""
        wire: Mapping[str, Any] = (
            result.model_dump(by_alias=True, exclude_none=True)
            if isinstance(result, BaseModel)
            else result or {}
        )
        if wire.get("resultType", "complete") != "complete":
            return result
        try:
            task = await _in_thread(lambda: self._source().started_by(tool, wire))
        except MCPError:
            return result
        return result if task is None else {"resultType": "task", **task.as_wire()}

    async def get(self, context: Context, params: TaskParams) -> dict[str, Any]:
        _check(context, params)
        task = await _in_thread(lambda: self._source().get(params.task_id))
        if task is None:
            raise _unknown(params)
        return {**task.as_wire(), **(task.outcome or {})}

    async def cancel(self, context: Context, params: TaskParams) -> dict[str, Any]:
        _check(context, params)
        if not await _in_thread(lambda: self._source().cancel(params.task_id)):
            raise _unknown(params)
        return {}

    async def update(self, context: Context, params: TaskUpdateParams) -> dict[str, Any]:
        _check(context, params)
        given = params.input_responses
        if not await _in_thread(lambda: self._source().update(params.task_id, given)):
            raise _unknown(params)
        return {}


async def _in_thread(ask: Callable[[], T]) -> T:
    """A question to the source. What it cannot answer is an error of the protocol."""
    try:
        return await anyio.to_thread.run_sync(ask)
    except TsuzukiError as problem:
        words = f"{problem.specific_code}: {problem.message}"
        raise MCPError(INTERNAL_ERROR, words, problem.as_dict()) from None


def _check(context: Context, params: TaskParams) -> None:
    """Refuse what the extension refuses before it looks at a task."""
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        raise MCPError(METHOD_NOT_FOUND, "Method not found", context.method)
    # Over HTTP a header repeats the id, for those who route by it. It must say the same.
    request = context.request
    if request is not None:
        named = decode_header_value(request.headers.get(MCP_NAME_HEADER))
        if named != params.task_id:
            raise MCPError(
                HEADER_MISMATCH,
                f"the header {MCP_NAME_HEADER} must equal 'taskId'",
            )
    if not declares_tasks(context):
        raise tasks_not_declared()


def _unknown(params: TaskParams) -> MCPError:
    return MCPError(INVALID_PARAMS, f"there is no task {params.task_id!r}")


def _moment(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
