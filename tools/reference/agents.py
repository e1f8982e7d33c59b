"""The page of the tools for coding agents: arguments, other names for them, rights and budgets."""

from collections.abc import Iterator

from tools.reference.markdown import code, page, table
from tsuzuki.mcp.presets import presets
from tsuzuki.mcp.tool import Tool, ToolParameter


def agents_page() -> str:
    return page(
        "Tools for agents",
        "The tools of `tsuzuki mcp` and of `/mcp` ([setting them up](../guide/mcp.md)). Arguments that a tool does not"
        " have are refused by name.",
        *(part for name in ("code", "runs") for part in _preset(name)),
    )


def _preset(name: str) -> Iterator[str]:
    yield f"## Preset `{name}`"
    for tool in presets()[name].tools:
        yield from _tool(tool)


def _tool(tool: Tool) -> Iterator[str]:
    yield f"### {tool.name}"
    yield tool.description
    listed = "" if tool.is_listed else " It is not listed, but can be called."
    yield (
        f"Needs the right `{tool.right}`. An answer has at most {tool.budget_default:,} tokens, or what `budget` says,"
        f" up to {tool.budget_max:,}.{listed}"
    )
    yield table(
        ("argument", "value", "also understood", "meaning"),
        [_parameter(one) for one in tool.parameters],
    )


def _parameter(one: ToolParameter) -> tuple[str, str, str, str]:
    schema = one.schema
    kind = schema["type"]
    words = " or ".join(kind) if isinstance(kind, list) else str(kind)
    if "enum" in schema:
        words = ", ".join(code(value) for value in schema["enum"])
    bounds = " … ".join(str(schema[key]) for key in ("minimum", "maximum") if key in schema)
    return (
        code(one.name) + (" (needed)" if one.required else ""),
        f"{words} {bounds}".strip(),
        " ".join(code(alias) for alias in one.aliases),
        str(schema.get("description", "")),
    )
