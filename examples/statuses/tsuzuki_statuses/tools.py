"""Tool set `statuses` for coding agents. Definitions are listed before anything else is loaded."""

from dataclasses import dataclass
from typing import Any

from tsuzuki.mcp.parameters import budget_parameter, parameter
from tsuzuki.mcp.tool import Tool
from tsuzuki.mcp.tool_set import ToolSet
from tsuzuki_statuses.rights import STATUSES_READ


@dataclass(frozen=True)
class Part:
    """Part `statuses` of a server's state, which holds the service. The server closes its parts."""

    service: Any

    def close(self):
        """Do nothing, because the workspace is a separate part."""


def served(application):
    """Create the part for requests to a web server's `/mcp`, which act for the caller."""
    return Part(application.service("statuses"))


def _opened(state):
    """Create the part for `tsuzuki mcp`, which opens the workspace it was started in."""
    from tsuzuki.mcp.runs.workspace import application_of

    return served(application_of(state))


def list_statuses(call):
    from tsuzuki.mcp.answer import ToolAnswer
    from tsuzuki.mcp.tokens import QUARTERS, clipped

    service = call.state.part("statuses", _opened).service
    found = service.find(job=call.get("job"), limit=call.get("limit", 20))
    lines = [f"{one['id']} {one['created_at']} {one['content']}" for one in found]
    text = clipped("\n".join(lines) or "No statuses are stored.", QUARTERS * call.budget // 2)
    header = f"{len(found)} statuses"
    return ToolAnswer(header=header, text=text, structured={"count": len(found), "text": text})


TOOLS = ToolSet(
    name="statuses",
    tools=(
        Tool(
            name="status_list",
            description="Statuses that jobs of this workspace have stored, the oldest first.",
            function="tsuzuki_statuses.tools:list_statuses",
            right=STATUSES_READ,
            parameters=(
                parameter("job", "string", "name", "job_name"),
                parameter("limit", "integer", "count", "max", minimum=1, maximum=100),
                budget_parameter(4_000),
            ),
            example={"limit": 5},
            budget_default=1_000,
            budget_max=4_000,
        ),
    ),
    instructions="status_list shows the statuses that jobs of this workspace have stored.",
    makers={"statuses": "tsuzuki_statuses.tools:served"},
)
