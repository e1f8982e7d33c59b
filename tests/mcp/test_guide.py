"""The snippets of the guide are what each agent's documentation asks for, and start a command that exists."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest

from tsuzuki.cli.root import ROOT
from tsuzuki.cli.serve.mcp import mcp
from tsuzuki.cli.serve.web_options import DEFAULT_ADDRESS
from tsuzuki.mcp.presets import presets

GUIDE = (Path(__file__).parents[2] / "docs" / "guide" / "mcp.md").read_text(encoding="utf-8")
READERS = {"json": json.loads, "toml": tomllib.loads}
SNIPPETS: dict[str, dict[str, Any]] = {
    name: READERS[language](text)
    for language, name, text in re.findall(
        r"^```(json|toml) ([\w-]+)\n(.*?)^```", GUIDE, re.M | re.S
    )
}
KEYS = {
    "claude-code": ("mcpServers", {"type", "command", "args"}, {"type": "stdio"}),
    "codex": ("mcp_servers", {"command", "args"}, {}),
    "opencode": ("mcp", {"type", "command", "enabled"}, {"type": "local", "enabled": True}),
    "vscode": ("servers", {"type", "command", "args"}, {"type": "stdio"}),
    "cursor": ("mcpServers", {"command", "args"}, {}),
}
"""Of each agent: where servers stand, the keys that are there, and values that its documentation fixes."""


HTTP_KEYS = {
    "claude-code": ({"type", "url", "headers"}, "Bearer ${TSUZUKI_TOKEN}"),
    "codex": ({"url", "bearer_token_env_var"}, None),
    "opencode": ({"type", "url", "headers", "enabled"}, "Bearer {env:TSUZUKI_TOKEN}"),
    "vscode": ({"type", "url", "headers"}, "Bearer ${input:tsuzuki-token}"),
    "cursor": ({"url", "headers"}, "Bearer ${env:TSUZUKI_TOKEN}"),
}
"""The same for a web server with a token: the keys, and how each agent names a variable in a header."""


def test_there_is_a_snippet_for_each_agent() -> None:
    assert SNIPPETS.keys() == KEYS.keys() | {f"{agent}-http" for agent in HTTP_KEYS}


@pytest.mark.parametrize("agent", HTTP_KEYS)
def test_a_snippet_for_http_names_the_address_and_no_token(agent: str) -> None:
    names, header = HTTP_KEYS[agent]
    server = SNIPPETS[f"{agent}-http"][KEYS[agent][0]]["tsuzuki"]
    assert server.keys() == names
    assert server["url"] == f"http://{DEFAULT_ADDRESS}/mcp?tools=all"
    if header is None:
        assert server["bearer_token_env_var"] == "TSUZUKI_TOKEN"
    else:
        assert server["headers"] == {"Authorization": header}


def test_the_table_of_rights_has_every_tool() -> None:
    rows = dict(re.findall(r"^\| `(\w+:\w+)` \| (.*) \|$", GUIDE, re.M))
    for tool in presets()["all"].tools:
        assert f"`{tool.name}`" in rows[tool.right]


@pytest.mark.parametrize("agent", KEYS)
def test_a_snippet_has_the_documented_keys_and_starts_the_server(agent: str) -> None:
    key, names, fixed = KEYS[agent]
    assert SNIPPETS[agent].keys() - {"$schema"} == {key}
    server = SNIPPETS[agent][key]["tsuzuki"]
    assert server.keys() == names
    assert {name: server[name] for name in fixed} == fixed
    command = server["command"]
    words = command if isinstance(command, list) else [command, *server["args"]]
    assert words[:2] == ["tsuzuki", "mcp"]
    mcp.make_context("mcp", words[2:], parent=click.Context(ROOT, **ROOT.context_settings))


def test_the_table_has_every_tool_with_its_budgets() -> None:
    rows = {
        name: (arguments, budgets)
        for name, arguments, budgets in re.findall(
            r"^\| `(\w+)` \| (.*?) \| .* \| ([\d,]+, [\d,]+) \|$", GUIDE, re.M
        )
    }
    listed = [tool for tool in presets()["all"].tools if tool.is_listed]
    assert [*rows] == [tool.name for tool in listed]
    for tool in listed:
        arguments, budgets = rows[tool.name]
        assert budgets == f"{tool.budget_default:,}, {tool.budget_max:,}"
        own = [one.name for one in tool.parameters if one.name not in ("path", "budget", "cursor")]
        assert re.findall(r"`(\w+)`", arguments) == own
