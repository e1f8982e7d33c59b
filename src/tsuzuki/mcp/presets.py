"""Which tools a server offers, in the order in which they are listed."""

from dataclasses import dataclass

from tsuzuki.mcp.code.definitions import CODE_INSTRUCTIONS, CODE_TOOLS
from tsuzuki.mcp.runs.definitions import RUN_INSTRUCTIONS, RUN_START, RUN_TOOLS
from tsuzuki.mcp.tool import Tool


@dataclass(frozen=True, kw_only=True)
class Preset:
    """Tools that belong together. `warm_up` are functions by import string, called after the tools were listed."""

    tools: tuple[Tool, ...]
    instructions: str
    warm_up: tuple[str, ...] = ()
    tasks: str | None = None
    """By import string, what makes the source of the tasks that `task_tools` start."""

    task_tools: frozenset[str] = frozenset()


_CODE = Preset(
    tools=CODE_TOOLS,
    instructions=CODE_INSTRUCTIONS,
    warm_up=("tsuzuki.mcp.code.indexes:catch_up",),
)
_RUNS = Preset(
    tools=RUN_TOOLS,
    instructions=RUN_INSTRUCTIONS,
    tasks="tsuzuki.mcp.runs.run_tasks:RunTasks",
    task_tools=frozenset({RUN_START.name}),
)

PRESETS = {
    "code": _CODE,
    "runs": _RUNS,
    "all": Preset(
        tools=(*_CODE.tools, *_RUNS.tools),
        instructions=f"{_CODE.instructions}\n{_RUNS.instructions}",
        warm_up=_CODE.warm_up,
        tasks=_RUNS.tasks,
        task_tools=_RUNS.task_tools,
    ),
}
