"""One call from name and arguments to an answer. What goes wrong is an ordinary answer that the caller can read."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from tsuzuki.mcp.answer import ToolAnswer, masked, refusal
from tsuzuki.mcp.arguments import checked_arguments, next_call
from tsuzuki.mcp.tool import ServerState, Tool, ToolCall, ToolProgress
from tsuzuki.model.errors import TsuzukiError
from tsuzuki.model.suggestion import did_you_mean

REFUSAL_BUDGET = 500
"""Tokens of an error about the call itself."""

_log = logging.getLogger(__name__)


def answer_call(
    tools: Sequence[Tool],
    name: str,
    arguments: Mapping[str, Any] | None,
    *,
    state: ServerState,
    progress: ToolProgress,
) -> ToolAnswer:
    """Call a tool, listed or not. Nothing is raised."""
    return masked(_answer(tools, name, arguments, state=state, progress=progress), state.mask)


def listed_tools(tools: Sequence[Tool], state: ServerState) -> list[Tool]:
    """Those that are shown to the principal: each of them it may call."""
    return [one for one in tools if one.is_listed and state.may(one.right)]


def _answer(
    tools: Sequence[Tool],
    name: str,
    arguments: Mapping[str, Any] | None,
    *,
    state: ServerState,
    progress: ToolProgress,
) -> ToolAnswer:
    tool = next((one for one in tools if one.name == name), None)
    if tool is None:
        listed = [one.name for one in listed_tools(tools, state)]
        told = f'There is no tool "{name}". {did_you_mean(name, listed)}'
        return refusal(told.strip(), f"Tools: {', '.join(listed)}", budget=REFUSAL_BUDGET)
    call = None
    try:
        state.require(tool.right)
        checked = checked_arguments(tool, arguments or {})
        call = ToolCall(tool=tool, arguments=checked, state=state, progress=progress)
        return tool.load()(call)
    except TsuzukiError as problem:
        place = f"{problem.place}: " if problem.place else ""
        told, hint = f"{problem.specific_code}: {place}{problem.message}", problem.hint
    except Exception as problem:  # noqa: BLE001 -- a fault of ours must not end the connection
        _log.exception("the tool %s failed", name)
        told = f"internal_error: {name} failed: {type(problem).__name__}: {problem}"
        hint = f"Internal error in Tsuzuki. Another call may work: {next_call(tool)}"
    if state.mask is not None:  # before it is cut: what is left of a secret would not be recognised
        told, hint = state.mask.text(told), None if hint is None else state.mask.text(hint)
    return refusal(told, hint, budget=call.budget if call else REFUSAL_BUDGET)
