"""Which tools a server offers, in the order in which they are listed."""

from dataclasses import dataclass

from tsuzuki.mcp.code.definitions import CODE_INSTRUCTIONS, CODE_TOOLS
from tsuzuki.mcp.tool import Tool


@dataclass(frozen=True, kw_only=True)
class Preset:
    """Tools that belong together. `warm_up` are functions by import string, called after the tools were listed."""

    tools: tuple[Tool, ...]
    instructions: str
    warm_up: tuple[str, ...] = ()


PRESETS = {
    "code": Preset(
        tools=CODE_TOOLS,
        instructions=CODE_INSTRUCTIONS,
        warm_up=("tsuzuki.mcp.code.indexes:catch_up",),
    ),
}
