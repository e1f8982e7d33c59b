"""Tools and a prompt that ask the client for input before they answer, as the conformance suite expects them."""

import json
from typing import Any

from conformance_tools import Context, Fixture, complete_result, content, text
from mcp.server.context import HandlerResult
from mcp.types import CallToolRequestParams, GetPromptRequestParams


def ask(message: str, field: str, kind: str = "string") -> dict[str, Any]:
    """A form with one field."""
    schema = {"type": "object", "properties": {field: {"type": kind}}, "required": [field]}
    return {
        "method": "elicitation/create",
        "params": {"message": message, "requestedSchema": schema},
    }


def sample(words: str) -> dict[str, Any]:
    messages = [{"role": "user", "content": text(words)}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": 50}}


ROOTS: dict[str, Any] = {"method": "roots/list", "params": {}}
NAME = ask("What is your name?", "name")
CONFIRM = ask("Please confirm", "ok", "boolean")


def input_required(state: str | None = None, **requests: dict[str, Any]) -> dict[str, Any]:
    result = {"resultType": "input_required", "inputRequests": requests}
    return result if state is None else {**result, "requestState": state}


def responses_of(params: CallToolRequestParams | GetPromptRequestParams) -> dict[str, Any]:
    return dict(params.input_responses or {})


def field_of(params: CallToolRequestParams | GetPromptRequestParams, key: str, field: str) -> Any:
    """What was filled in; None if it was not."""
    response = responses_of(params).get(key)
    return (getattr(response, "content", None) or {}).get(field)


def once(key: str, request: dict[str, Any]) -> Fixture:
    """Asks for one thing, and is content with any answer to it."""

    async def answer(_context: Context, params: CallToolRequestParams) -> HandlerResult:
        if key not in responses_of(params):
            return input_required(**{key: request})
        return content(text("thank you"))

    return answer


async def greeting(_context: Context, params: CallToolRequestParams) -> HandlerResult:
    name = field_of(params, "user_name", "name")
    return content(text(f"Hello, {name}!")) if name else input_required(user_name=NAME)


async def with_state(_context: Context, params: CallToolRequestParams) -> HandlerResult:
    if params.request_state != "asked":
        return input_required("asked", confirm=CONFIRM)
    return content(text("state-ok"))


async def several(_context: Context, params: CallToolRequestParams) -> HandlerResult:
    if {"user_name", "greeting", "client_roots"} <= responses_of(params).keys():
        return content(text("thank you for all three"))
    requests = {
        "user_name": NAME,
        "greeting": sample("Generate a greeting"),
        "client_roots": ROOTS,
    }
    return input_required("asked", **requests)


async def rounds(_context: Context, params: CallToolRequestParams) -> HandlerResult:
    """Two questions, one after the other; the first answer is kept in the state."""
    state = json.loads(params.request_state or "{}")
    if "name" in state and (color := field_of(params, "step2", "color")):
        return content(text(f"{state['name']} likes {color}."))
    name = field_of(params, "step1", "name")
    if state and name:
        color_form = ask("Step 2: What is your favorite color?", "color")
        return input_required(json.dumps({"name": name}), step2=color_form)
    return input_required(json.dumps({"round": 1}), step1=ask("Step 1: What is your name?", "name"))


async def by_capability(context: Context, _params: CallToolRequestParams) -> HandlerResult:
    """Asks only for what the client can do."""
    capabilities = context.session.client_capabilities
    requests = {}
    if capabilities is not None and capabilities.sampling is not None:
        requests["sample"] = sample("Say hello")
    if capabilities is not None and capabilities.elicitation is not None:
        requests["ask"] = NAME
    return input_required("asked", **requests)


async def prompt_with_input(_context: Context, params: GetPromptRequestParams) -> HandlerResult:
    words = field_of(params, "user_context", "context")
    if words is None:
        return input_required(user_context=ask("What context should the prompt use?", "context"))
    message = {"role": "user", "content": text(f"Use this context: {words}")}
    return complete_result(messages=[message])


INPUT_TOOLS: dict[str, Fixture] = {
    "test_input_required_result_elicitation": greeting,
    "test_streaming_elicitation": greeting,
    "test_input_required_result_sampling": once(
        "capital_question", sample("What is the capital of France?")
    ),
    "test_input_required_result_list_roots": once("client_roots", ROOTS),
    "test_input_required_result_request_state": with_state,
    "test_input_required_result_tampered_state": with_state,
    "test_input_required_result_multiple_inputs": several,
    "test_input_required_result_multi_round": rounds,
    "test_input_required_result_capabilities": by_capability,
}
