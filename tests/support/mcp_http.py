"""Messages of the Model Context Protocol to a web server, and the SDK's client with a token."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from support.mcp_session import Session
from support.web_client import Client, HttpAnswer

HEADERS = {
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2025-11-25",
}


def send(
    client: Client,
    method: str,
    params: Mapping[str, Any] | None = None,
    *,
    tools: str = "all",
    headers: Mapping[str, str] | None = None,
) -> HttpAnswer:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": dict(params or {})}
    given = {**HEADERS, **(headers or {})}
    return client.request("POST", f"/mcp?tools={tools}", message, headers=given)


def result_of(answer: HttpAnswer) -> dict[str, Any]:
    """The result in an answer that came as a stream of events."""
    assert answer.status == 200, answer.body
    (data,) = [line[5:] for line in answer.body.splitlines() if line.startswith(b"data:")]
    result: dict[str, Any] = json.loads(data)["result"]
    return result


def call_text(client: Client, tool: str, **arguments: Any) -> str:
    """Answer of a tool as text, prefixed with `!` if it is an error."""
    params = {"name": tool, "arguments": arguments}
    result = result_of(send(client, "tools/call", params))
    text: str = result["content"][0]["text"]
    return f"!{text}" if result.get("isError") else text


@asynccontextmanager
async def _transport(url: str, token: str) -> AsyncIterator[Any]:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        create_mcp_http_client(headers=headers) as http,
        streamable_http_client(url, http_client=http) as streams,
    ):
        yield streams


def token_session(url: str, token: str, *, tools: str = "all", mode: str = "auto") -> Session:
    return Session(_transport(f"{url}/mcp?tools={tools}", token), mode)
