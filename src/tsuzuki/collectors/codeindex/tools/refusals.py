"""What is said of a question that cannot be answered, in the words of the tools: which call to make next."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tsuzuki.collectors.codeindex.tools.definitions import TOOLS
from tsuzuki.mcp.arguments import next_call
from tsuzuki.mcp.tool import ToolCall
from tsuzuki.model.errors import TsuzukiError

_TOOLS = {one.name: one for one in TOOLS.tools}
_COMMAND = re.compile(r"tsuzuki index|(?:^| )--[a-z]")
"""A line that is about the command line."""


@contextmanager
def refused(call: ToolCall) -> Iterator[None]:
    """Around a question: an error says what to call next instead of which command to type."""
    try:
        yield
    except TsuzukiError as problem:
        problem.hint = hint_of(problem, call)
        raise


def hint_of(problem: TsuzukiError, call: ToolCall) -> str:
    """What is known about the mistake, and the next call."""
    kept = without_commands(problem.hint or "")
    if any(line.startswith("Next: ") for line in kept):
        return "\n".join(kept)
    make = _NEXT.get(problem.specific_code)
    name, arguments = make(call) if make else (call.tool.name, call.tool.example)
    if isinstance(candidates := getattr(problem, "candidates", None), list) and candidates:
        first = candidates[0].partition(" (")[0]
        is_read = call.tool.name == "code_read"
        name, arguments = call.tool.name, {"symbols": [first]} if is_read else {"name": first}
    return "\n".join([*kept, f"Next: {next_call(_TOOLS[name], arguments)}"])


def without_commands(hint: str) -> list[str]:
    """The lines of a hint that are not about the command line."""
    return [line for line in hint.splitlines() if not _COMMAND.search(line)]


def _search(call: ToolCall) -> tuple[str, Mapping[str, Any]]:
    asked = call.get("name") or call.get("symbols") or call.get("query") or ""
    first = asked[0] if isinstance(asked, list) and asked else asked
    name = str(first).rpartition(":")[2].rpartition("/")[2].partition("[")[0]
    return "code_search", {"query": name or "main"}


def _plain_search(call: ToolCall) -> tuple[str, Mapping[str, Any]]:
    return "code_search", {"query": call.get("query"), "in": "text"}


def _outline(_call: ToolCall) -> tuple[str, Mapping[str, Any]]:
    return "code_outline", {"file": "."}


def _without_path(call: ToolCall) -> tuple[str, Mapping[str, Any]]:
    """The same question about the tree of this server."""
    rest = {name: value for name, value in call.arguments.items() if name not in ("path", "cursor")}
    return call.tool.name, rest or {"path": "/home/me/src/project"}


_NEXT: dict[str, Callable[[ToolCall], tuple[str, Mapping[str, Any]]]] = {
    "no_such_symbol": _search,
    "bad_symbol": _search,
    "bad_regex": _plain_search,
    "no_such_file": _outline,
    "root_missing": _without_path,
    "root_not_folder": _without_path,
    "root_refused": _without_path,
    "root_unreadable": _without_path,
}
