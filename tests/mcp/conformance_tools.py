"""Tools that the protocol's conformance suite calls by fixed names. They belong to no product: tests serve them."""

import base64
import io
import struct
import wave
import zlib
from collections.abc import Awaitable, Callable
from typing import Any

from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import PromptsListChanged, ToolsListChanged
from mcp.types import MISSING_REQUIRED_CLIENT_CAPABILITY, CallToolRequestParams

Context = ServerRequestContext[Any, Any]
Fixture = Callable[[Context, CallToolRequestParams], Awaitable[HandlerResult]]


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def content(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return complete_result(content=list(parts), **more)


def complete_result(**fields: Any) -> dict[str, Any]:
    return {"resultType": "complete", **fields}


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def png() -> str:
    """One red point."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    points = zlib.compress(b"\x00\xff\x00\x00")
    body = chunk(b"IHDR", header) + chunk(b"IDAT", points) + chunk(b"IEND", b"")
    return encoded(b"\x89PNG\r\n\x1a\n" + body)


def wav() -> str:
    """One sample of silence."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setparams((1, 2, 8000, 1, "NONE", "not compressed"))
        sound.writeframes(b"\x00\x00")
    return encoded(file.getvalue())


IMAGE = {"type": "image", "data": png(), "mimeType": "image/png"}


def resource(uri: str, words: str, mime_type: str = "text/plain") -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": words}}


def always(result: dict[str, Any]) -> Fixture:
    async def answer(_context: Context, _params: CallToolRequestParams) -> HandlerResult:
        return result

    return answer


async def with_progress(context: Context, _params: CallToolRequestParams) -> HandlerResult:
    for done in (0, 50, 100):
        await context.session.report_progress(done, 100, f"{done} of 100")
    return content(text("three notifications were sent"))


async def with_log(context: Context, _params: CallToolRequestParams) -> HandlerResult:
    """Told only to a request that asks for a log level."""
    return content(text("nothing is logged for a request that asks for no log"))


async def needs_sampling(context: Context, _params: CallToolRequestParams) -> HandlerResult:
    capabilities = context.session.client_capabilities
    if capabilities is None or capabilities.sampling is None:
        raise MCPError(
            MISSING_REQUIRED_CLIENT_CAPABILITY,
            "this tool needs the client capability sampling",
            {"requiredCapabilities": {"sampling": {}}},
        )
    return content(text("the client can sample"))


def change_triggers(bus: InMemorySubscriptionBus) -> dict[str, Fixture]:
    """Tools that announce a changed list to those who listen."""

    async def tools_changed(_context: Context, _params: CallToolRequestParams) -> HandlerResult:
        await bus.publish(ToolsListChanged())
        return content(text("the tools changed"))

    async def prompts_changed(_context: Context, _params: CallToolRequestParams) -> HandlerResult:
        await bus.publish(PromptsListChanged())
        return content(text("the prompts changed"))

    return {
        "test_trigger_tool_change": tools_changed,
        "test_trigger_prompt_change": prompts_changed,
    }


_TEXT = {"type": "string"}
SCHEMAS: dict[str, dict[str, Any]] = {
    "test_x_mcp_header": {
        "type": "object",
        "properties": {"region": {**_TEXT, "x-mcp-header": "Region"}},
    },
    "json_schema_2020_12_tool": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {"$anchor": "addressDef", "type": "object"}},
        "properties": {
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {**_TEXT, "enum": ["phone", "email"]},
            "phone": _TEXT,
            "email": _TEXT,
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
}
"""Of tools whose arguments matter to the suite."""

PLAIN_TOOLS: dict[str, Fixture] = {
    **{name: always(content(text("called"))) for name in SCHEMAS},
    "test_simple_text": always(content(text("This is a simple text response for testing."))),
    "test_image_content": always(content(IMAGE)),
    "test_audio_content": always(
        content({"type": "audio", "data": wav(), "mimeType": "audio/wav"})
    ),
    "test_embedded_resource": always(
        content(resource("test://embedded-resource", "This is an embedded resource content."))
    ),
    "test_multiple_content_types": always(
        content(
            text("Multiple content types test:"),
            IMAGE,
            resource(
                "test://mixed-content-resource", '{"test":"data","value":123}', "application/json"
            ),
        )
    ),
    "test_error_handling": always(
        content(text("This tool intentionally returns an error for testing"), isError=True)
    ),
    "test_tool_with_progress": with_progress,
    "test_logging_tool": with_log,
    "test_missing_capability": needs_sampling,
}
