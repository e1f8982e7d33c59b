"""What an agent carries in every turn: the definitions of the tools. They are small and say when to use which."""

import re

import pytest

from tsuzuki.mcp.presets import presets
from tsuzuki.mcp.server import listed
from tsuzuki.mcp.tokens import tokens
from tsuzuki.mcp.tool import Tool

TOOLS = presets()["code"].tools
LISTED = [one for one in TOOLS if one.is_listed]


@pytest.mark.parametrize("preset", presets())
def test_all_definitions_together_are_small(preset: str) -> None:
    tools = [one for one in presets()[preset].tools if one.is_listed]
    sent = [listed(one).model_dump_json(by_alias=True, exclude_none=True) for one in tools]
    assert sum(map(tokens, sent)) <= 2_000


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_description_says_first_when_to_use_the_tool(tool: Tool) -> None:
    assert len(tool.description.split()) <= 80
    assert tool.description.endswith(".")
    if tool.name in ("code_search", "code_read", "code_references", "code_outline", "code_map"):
        assert tool.description.startswith("Use ")


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_no_alias_means_two_arguments(tool: Tool) -> None:
    aliases = [alias for one in tool.parameters for alias in one.aliases]
    assert len(aliases) == len({*aliases})
    assert not {one.name for one in tool.parameters} & {*aliases}


def test_an_update_can_be_called_but_is_not_listed() -> None:
    assert [one.name for one in TOOLS if not one.is_listed] == ["code_index_update"]


def test_the_instructions_are_five_lines_that_name_tools() -> None:
    assert len(presets()["code"].instructions.splitlines()) == 5
    for name in re.findall(r"\bcode_\w+", presets()["code"].instructions):
        assert name in {one.name for one in LISTED}
