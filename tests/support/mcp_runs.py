"""A server for runs in the test's own process, on a workspace of its own, and the SDK's client to it."""

import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
from mcp.client import Client
from mcp.client.extension import ClientExtension, advertise
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult, Request, Result
from pydantic import ConfigDict

from tsuzuki.mcp.answer import ToolAnswer
from tsuzuki.mcp.calls import answer_call
from tsuzuki.mcp.presets import presets
from tsuzuki.mcp.server import ToolServer
from tsuzuki.mcp.tasks import IDENTIFIER
from tsuzuki.mcp.tool import ServerState, ToolProgress
from tsuzuki.wiring.application import Application, opened

T = TypeVar("T")

SLEEP = "import json, os, time; time.sleep(json.loads(os.environ['TSUZUKI_ARGUMENTS'])['seconds'])"
PRINT = "for n in range(3): print('line', n)"
JOBS: dict[str, dict[str, Any]] = {
    "print": {"command": [sys.executable, "-c", PRINT], "description": "writes three lines"},
    "slow_compute": {"command": [sys.executable, "-c", SLEEP]},
    "failing_job": {"command": [sys.executable, "-c", "import sys; sys.exit('it broke')"]},
}


class AnyResult(Result):
    """Any result, kept as received."""

    model_config = ConfigDict(extra="allow")


class RunServer:
    """MCP server for runs; each `call` or `ask` uses a new connection, so only the workspace is shared."""

    def __init__(self, sources: Mapping[str, Any], *, preset: str = "runs") -> None:
        self.state = ServerState(environ=sources["environ"], cwd=sources["cwd"], sources=sources)
        self.server: Server[Any] = ToolServer(presets()[preset], self.state).server

    def answer(self, tool: str, **arguments: Any) -> ToolAnswer:
        """Call a tool without a client, which is much cheaper for tests of answers."""
        tools = presets()["runs"].tools
        return answer_call(tools, tool, arguments, state=self.state, progress=ToolProgress())

    def call(self, tool: str, *, mode: str = "auto", **arguments: Any) -> CallToolResult:
        return self.with_client(lambda client: client.call_tool(tool, arguments), mode=mode)

    def ask(
        self, method: str, *, mode: str = "auto", declared: bool = True, **params: Any
    ) -> dict[str, Any]:
        """Any request, by its own name. `declared`: the client says that it understands tasks."""

        async def sent(client: Client) -> AnyResult:
            request = Request[Any, str](method=method, params=params)
            return await client.session.send_request(request, AnyResult)

        extensions = [advertise(IDENTIFIER)] if declared else []
        return dict(
            self.with_client(sent, mode=mode, extensions=extensions).model_dump(by_alias=True)
        )

    def with_client(
        self,
        use: Callable[[Client], Awaitable[T]],
        *,
        mode: str = "auto",
        extensions: list[ClientExtension] | None = None,
    ) -> T:
        async def connected() -> T | MCPError:
            async with Client(self.server, mode=mode, extensions=extensions or []) as client:
                try:
                    return await use(client)
                except MCPError as problem:  # raised below, outside the client's task group
                    return problem

        answer = anyio.run(connected)
        if isinstance(answer, MCPError):
            raise answer
        return answer


def sources_of(folder: Path, database_url: str | None = None) -> dict[str, Any]:
    return {
        "config_file": None,
        "database_url": database_url,
        "environ": {"PATH": os.environ["PATH"]},
        "cwd": folder,
    }


@contextmanager
def run_workspace(sources: Mapping[str, Any], *, engine: bool = True) -> Iterator[Application]:
    """With the jobs of `JOBS`, and an engine of this process that executes them."""
    with opened(**sources) as application:
        for name, definition in JOBS.items():
            application.jobs.define(name, definition)
        if engine:
            application.local_engine.start()
        try:
            yield application
        finally:
            application.local_engine.stop(at_once=True)


@contextmanager
def run_server(sources: Mapping[str, Any], *, preset: str = "runs") -> Iterator[RunServer]:
    server = RunServer(sources, preset=preset)
    try:
        yield server
    finally:
        server.state.close()


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    return str(content.text)  # type: ignore[union-attr]  # every answer is one text
