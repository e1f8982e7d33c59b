"""Prompts, resources and completions of fixed names and words, as the conformance suite expects them."""

import json
import re
from typing import Any

from conformance_inputs import prompt_with_input
from conformance_tools import IMAGE, Context, complete_result, png, resource, text
from mcp.server.context import HandlerResult
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CompleteRequestParams,
    GetPromptRequestParams,
    PaginatedRequestParams,
    ReadResourceRequestParams,
)

STATIC_TEXT, STATIC_BINARY = "test://static-text", "test://static-binary"
TEMPLATE = "test://template/{id}/data"
PROMPTS = {
    "test_simple_prompt": [],
    "test_prompt_with_arguments": ["arg1", "arg2"],
    "test_prompt_with_embedded_resource": ["resourceUri"],
    "test_prompt_with_image": [],
    "test_input_required_result_prompt": [],
}


async def list_prompts(_context: Context, _params: PaginatedRequestParams) -> HandlerResult:
    prompts = [
        {
            "name": name,
            "description": "for the conformance suite",
            "arguments": [{"name": one, "required": True} for one in names],
        }
        for name, names in PROMPTS.items()
    ]
    return complete_result(prompts=prompts)


async def get_prompt(context: Context, params: GetPromptRequestParams) -> HandlerResult:
    given = params.arguments or {}
    match params.name:
        case "test_simple_prompt":
            parts = [text("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            pair = f"arg1='{given['arg1']}', arg2='{given['arg2']}'"
            parts = [text(f"Prompt with arguments: {pair}")]
        case "test_prompt_with_embedded_resource":
            embedded = resource(given["resourceUri"], "Embedded resource content for testing.")
            parts = [embedded, text("Please process the embedded resource above.")]
        case "test_prompt_with_image":
            parts = [IMAGE, text("Please analyze the image above.")]
        case "test_input_required_result_prompt":
            return await prompt_with_input(context, params)
        case _:
            raise MCPError(INVALID_PARAMS, f"there is no prompt {params.name!r}")
    messages = [{"role": "user", "content": part} for part in parts]
    return complete_result(messages=messages)


async def list_resources(_context: Context, _params: PaginatedRequestParams) -> HandlerResult:
    listed = [
        {"uri": STATIC_TEXT, "name": "static text", "mimeType": "text/plain"},
        {"uri": STATIC_BINARY, "name": "static image", "mimeType": "image/png"},
    ]
    return complete_result(resources=listed)


async def list_templates(_context: Context, _params: PaginatedRequestParams) -> HandlerResult:
    one = {"uriTemplate": TEMPLATE, "name": "data by id", "mimeType": "application/json"}
    return complete_result(resourceTemplates=[one])


async def read_resource(_context: Context, params: ReadResourceRequestParams) -> HandlerResult:
    uri = str(params.uri)
    found: dict[str, Any]
    if uri == STATIC_TEXT:
        words = "This is the content of the static text resource."
        found = {"mimeType": "text/plain", "text": words}
    elif uri == STATIC_BINARY:
        found = {"mimeType": "image/png", "blob": png()}
    elif match := re.fullmatch(r"test://template/([^/]+)/data", uri):
        number = match[1]
        data = {"id": number, "templateTest": True, "data": f"Data for ID: {number}"}
        found = {"mimeType": "application/json", "text": json.dumps(data)}
    else:
        raise MCPError(INVALID_PARAMS, "Resource not found", {"uri": uri})
    contents = [{"uri": uri, **found}]
    return complete_result(contents=contents, ttlMs=0, cacheScope="private")


async def complete(_context: Context, params: CompleteRequestParams) -> HandlerResult:
    known = ["paris", "park", "party"]
    values = [one for one in known if one.startswith(params.argument.value)]
    completion = {"values": values, "total": len(values), "hasMore": False}
    return complete_result(completion=completion)


def add_texts(server: Server[Any]) -> None:
    server.add_request_handler("prompts/list", PaginatedRequestParams, list_prompts)
    server.add_request_handler("prompts/get", GetPromptRequestParams, get_prompt)
    server.add_request_handler("resources/list", PaginatedRequestParams, list_resources)
    server.add_request_handler("resources/templates/list", PaginatedRequestParams, list_templates)
    server.add_request_handler("resources/read", ReadResourceRequestParams, read_resource)
    server.add_request_handler("completion/complete", CompleteRequestParams, complete)
