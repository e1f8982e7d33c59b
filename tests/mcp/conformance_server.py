"""Our server with the tools, prompts and resources that the conformance suite calls, on a port of its own.

Server object, arguments, answers, tasks and transport are those of the product.
"""

from typing import Any

from conformance_inputs import INPUT_TOOLS
from conformance_tasks import JoinedTasks, MemoryTasks, task_tools
from conformance_texts import add_texts
from conformance_tools import PLAIN_TOOLS, SCHEMAS, Context, change_triggers
from mcp.server.caching import CacheHint
from mcp.server.context import HandlerResult
from mcp.server.lowlevel.server import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.types import (
    CallToolRequestParams,
    PaginatedRequestParams,
    SubscriptionsListenRequestParams,
)
from starlette.applications import Starlette

from tsuzuki.mcp.presets import presets
from tsuzuki.mcp.runs.run_tasks import RunTasks
from tsuzuki.mcp.serve import app_of
from tsuzuki.mcp.server import ToolServer
from tsuzuki.mcp.tasks import serve_tasks
from tsuzuki.mcp.tool import ServerState

CACHED = ("prompts/list", "resources/list", "resources/templates/list", "server/discover")


def conformance_app(state: ServerState) -> Starlette:
    """The product's server for runs, and the suite's own tools beside its tools."""
    server = ToolServer(presets()["runs"], state).server
    bus, memory = InMemorySubscriptionBus(), MemoryTasks()
    server.add_request_handler(
        "subscriptions/listen", SubscriptionsListenRequestParams, ListenHandler(bus)
    )
    add_texts(server)
    names = _add_tools(server, bus, memory)
    serve_tasks(server, lambda: JoinedTasks(RunTasks(state), memory), started_by=names)
    server.cache_hints.update({name: CacheHint(ttl_ms=1000, scope="public") for name in CACHED})
    security = RequestStateSecurity.ephemeral()
    server.middleware.append(RequestStateBoundary(security, default_audience="conformance"))
    return app_of(server)


def _add_tools(server: Server[Any], bus: InMemorySubscriptionBus, memory: MemoryTasks) -> set[str]:
    list_ours = server.get_request_handler("tools/list")
    call_ours = server.get_request_handler("tools/call")
    assert list_ours is not None
    assert call_ours is not None
    fixtures = {
        **PLAIN_TOOLS,
        **INPUT_TOOLS,
        **change_triggers(bus),
        **task_tools(memory, call_ours.handler),
    }

    async def list_all(context: Context, params: PaginatedRequestParams) -> HandlerResult:
        listed = (await list_ours.handler(context, params)).model_dump(
            by_alias=True, exclude_none=True
        )
        more = [
            {
                "name": name,
                "description": "for the conformance suite",
                "inputSchema": SCHEMAS.get(name, {"type": "object"}),
            }
            for name in fixtures
        ]
        return {**listed, "tools": [*listed["tools"], *more]}

    async def call(context: Context, params: CallToolRequestParams) -> HandlerResult:
        return await fixtures.get(params.name, call_ours.handler)(context, params)

    server.add_request_handler("tools/list", PaginatedRequestParams, list_all)
    server.add_request_handler("tools/call", CallToolRequestParams, call)
    return set(fixtures)
