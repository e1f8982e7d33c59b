"""The server object: lists the tools of a set, and calls each in a thread of its own.

The SDK's low-level server is used: the other one drops arguments that a tool does not have.
"""

import logging
import threading
from functools import partial
from importlib.metadata import version
from typing import Any

import anyio
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.session import ServerSession
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp_types import Tool as ListedTool

from tsuzuki.mcp.answer import ToolAnswer
from tsuzuki.mcp.calls import answer_call, listed_tools
from tsuzuki.mcp.tasks import serve_tasks
from tsuzuki.mcp.tool import ServerState, Tool, ToolProgress
from tsuzuki.mcp.tool_set import ToolSet
from tsuzuki.model.import_string import load

PROGRESS_SECONDS = 2.0
"""Clients end a call of which they hear nothing; the shortest limit we know is much longer."""

WARM_UP_SECONDS = 0.3
"""After the tools were listed: the answer is on its way before anything else takes the processor."""

LIST_CACHE_MS = 3_600_000

_log = logging.getLogger(__name__)


class ToolServer:
    """The tools of one set, for any number of connections. `server` is what a transport runs."""

    def __init__(
        self, tool_set: ToolSet, state: ServerState, *, threads: anyio.CapacityLimiter | None = None
    ) -> None:
        self._tool_set = tool_set
        self._state = state
        self._threads = threads
        self._is_warm = not tool_set.warm_up
        is_for_all = state.principal is None
        cached = CacheHint(ttl_ms=LIST_CACHE_MS, scope="public" if is_for_all else "private")
        self.server: Server[Any] = Server(
            "tsuzuki",
            version=version("tsuzuki"),
            instructions=tool_set.instructions,
            cache_hints={"tools/list": cached},
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
        )
        if tool_set.tasks is not None:
            make = partial(_made, tool_set.tasks, state)
            serve_tasks(self.server, make, started_by=tool_set.task_tools)

    async def _list_tools(
        self, _context: ServerRequestContext[Any], _params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        if not self._is_warm:
            self._is_warm = True
            timer = threading.Timer(WARM_UP_SECONDS, self._warm_up)
            timer.daemon = True
            timer.start()
        return ListToolsResult(
            tools=[listed(one) for one in listed_tools(self._tool_set.tools, self._state)]
        )

    async def _call_tool(
        self, context: ServerRequestContext[Any], params: CallToolRequestParams
    ) -> CallToolResult:
        progress = ToolProgress()
        work = partial(
            answer_call,
            self._tool_set.tools,
            params.name,
            params.arguments,
            state=self._state,
            progress=progress,
        )
        async with anyio.create_task_group() as group:
            group.start_soon(tell_progress, context.session, progress)
            answer = await anyio.to_thread.run_sync(
                work, abandon_on_cancel=True, limiter=self._threads
            )
            group.cancel_scope.cancel()
        return result_of(answer)

    def _warm_up(self) -> None:
        for target in self._tool_set.warm_up:
            try:
                _made(target, self._state)
            except Exception:  # noqa: BLE001 -- the first call says what is wrong
                _log.debug("warming up failed", exc_info=True)


def _made(target: str, state: ServerState) -> Any:
    """What a function or class by import string makes of the server's state."""
    return load(target)(state)


async def tell_progress(session: ServerSession, progress: ToolProgress) -> None:
    """Tell the client how far a call is until cancelled; every number is higher than the one before."""
    told, number = 0.0, 0
    while True:
        await anyio.sleep(PROGRESS_SECONDS)
        number += 1
        done, total, message = progress.read()
        told = done if done > told else told + 0.001
        known_total = total if total is not None and total >= told else None
        words = message or f"{number * PROGRESS_SECONDS:.0f} s"
        await session.report_progress(told, known_total, words)


def listed(tool: Tool) -> ListedTool:
    """The definition as it is sent."""
    return ListedTool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.input_schema,
        annotations=ToolAnnotations(read_only_hint=True) if tool.is_read_only else None,
        _meta={"anthropic/alwaysLoad": True} if tool.is_always_loaded else None,
    )


def result_of(answer: ToolAnswer) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text=answer.content)],
        structured_content=dict(answer.structured) or None,
        is_error=answer.is_error,
    )
