"""A set of tools: what a server offers together, for example the tools of one collector."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tsuzuki.mcp.tool import Tool


@dataclass(frozen=True, kw_only=True)
class ToolSet:
    """Tools that belong together, in the order in which they are listed. Functions are named by import string, so
    that the tools are listed before anything of theirs is loaded."""

    name: str
    """The value of `tsuzuki mcp --tools` and of `/mcp?tools=` that offers this set."""

    tools: tuple[Tool, ...]
    instructions: str
    """Lines for the agent's system prompt: when to use these tools."""

    warm_up: tuple[str, ...] = ()
    """Functions of a `ServerState`, called after the tools were listed; not over `/mcp` of a web server."""

    makers: Mapping[str, str] = field(default_factory=dict)
    """By name of a part of the `ServerState`: a function of an `Application` that makes the part for requests to
    `/mcp` of a web server, in place of the tools' own."""

    tasks: str | None = None
    """Makes the `TaskSource` of the tasks that `task_tools` start, from a `ServerState`. A server has one source: in
    the set `all`, only runs are tasks."""

    task_tools: frozenset[str] = frozenset()
