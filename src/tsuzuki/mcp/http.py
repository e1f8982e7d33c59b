"""The tools of a workspace over streamable HTTP, for requests that a web server has authenticated.

No session is kept: each request is served alone, for its own principal, so any server of the workspace answers the
next one, and what a request may see is decided anew with each.
"""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Receive, Scope, Send

from tsuzuki.mcp.presets import presets
from tsuzuki.mcp.server import ToolServer
from tsuzuki.mcp.tool import ServerState
from tsuzuki.mcp.tool_set import ToolSet
from tsuzuki.model.access import Principal
from tsuzuki.model.import_string import load
from tsuzuki.wiring.application import Application

CALLS_MAX = 32
"""How many calls are under way at once; some of them wait for runs. Other requests have threads of their own."""

CALLS_OF_PRINCIPAL_MAX = 8
"""How many of them one principal has; its further ones wait, and leave the rest to others."""


class HttpTools:
    """The tools of one workspace. `body_bytes_max` limits a request."""

    def __init__(self, application: Application, *, body_bytes_max: int) -> None:
        self._application = application
        self._body_bytes_max = body_bytes_max
        self._threads = anyio.CapacityLimiter(CALLS_MAX)
        self._places: dict[str, anyio.CapacityLimiter] = {}
        """Of the principals that have calls under way, by their identity."""
        self._is_closing = threading.Event()

    async def answer(
        self, preset: str, principal: Principal, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer one request, as the principal that it was authenticated as."""
        tool_set = replace(
            presets()[preset], warm_up=()
        )  # each request has its own state, and is soon over
        state = self._state(principal, tool_set)
        tools = ToolServer(tool_set, state, threads=self._threads)
        manager = StreamableHTTPSessionManager(
            app=tools.server, stateless=True, max_request_body_size=self._body_bytes_max
        )
        async with self._place_of(principal), manager.run():
            await manager.handle_request(scope, receive, send)

    @asynccontextmanager
    async def _place_of(self, principal: Principal) -> AsyncIterator[None]:
        """Wait until the principal has less calls under way than it may have."""
        identity = principal.identity
        places = self._places.setdefault(identity, anyio.CapacityLimiter(CALLS_OF_PRINCIPAL_MAX))
        try:
            async with places:
                yield
        finally:
            used = places.statistics()
            if not used.borrowed_tokens and not used.tasks_waiting:
                self._places.pop(identity, None)

    def close(self) -> None:
        """End the calls that wait."""
        self._is_closing.set()

    def _state(self, principal: Principal, tool_set: ToolSet) -> ServerState:
        application = self._application.acting_as(principal.actor)
        return ServerState(
            environ={},
            cwd=Path("/"),
            is_confined=True,
            principal=principal,
            mask=application.mask,
            is_closing=self._is_closing,
            makers={
                part: partial(_made, target, application)
                for part, target in tool_set.makers.items()
            },
        )


def _made(target: str, application: Application) -> Any:
    """What a function or class by import string makes of the application."""
    return load(target)(application)
