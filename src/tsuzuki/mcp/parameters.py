"""Parameters that tools have in common, and how one is written down."""

from typing import Any

from tsuzuki.mcp.tool import BUDGET_MIN, ToolParameter


def parameter(
    name: str, kind: str | list[str], *aliases: str, required: bool = False, **schema: Any
) -> ToolParameter:
    """`aliases` are what callers often write instead; `schema` is the rest of its JSON schema."""
    items = {"items": {"type": "string"}} if "array" in kind else {}
    return ToolParameter(
        name=name,
        schema={"type": kind, **items, **schema},
        required=required,
        aliases=aliases,
    )


def budget_parameter(most: int) -> ToolParameter:
    return parameter(
        "budget",
        "integer",
        *("max_tokens", "tokens", "token_budget", "budget_tokens"),
        minimum=BUDGET_MIN,
        description=f"tokens, up to {most}",
    )


CURSOR = parameter("cursor", "string", "next_cursor", "continue")
