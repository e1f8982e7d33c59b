"""Arguments that a tool does not have, misspelt or missing ones: the error names the right ones and the next call."""

from collections.abc import Callable
from typing import Any

import pytest

from tsuzuki.collectors.codeindex.tools.definitions import READ, REFERENCES, SEARCH, TOOLS
from tsuzuki.mcp.answer import ToolAnswer
from tsuzuki.mcp.arguments import checked_arguments
from tsuzuki.mcp.tool import Tool
from tsuzuki.model.errors import UsageError

Ask = Callable[..., ToolAnswer]


def problem(tool: Tool, **given: Any) -> str:
    with pytest.raises(UsageError) as caught:
        checked_arguments(tool, given)
    return f"{caught.value.message}\n{caught.value.hint}"


@pytest.mark.parametrize("tool", TOOLS.tools, ids=lambda tool: tool.name)
def test_an_unknown_argument_is_refused_with_the_right_ones(tool: Tool) -> None:
    told = problem(tool, nonsense=1)
    assert f'{tool.name} has no argument "nonsense"' in told
    assert f"Arguments: {tool.parameters[0].name}" in told
    assert all(one.name in told for one in tool.parameters)
    assert f"Next: {tool.name} {{" in told


@pytest.mark.parametrize("tool", TOOLS.tools, ids=lambda tool: tool.name)
def test_a_misspelt_argument_is_answered_with_a_guess(tool: Tool) -> None:
    assert 'Did you mean "path"?' in problem(tool, pathh=".")


@pytest.mark.parametrize("tool", [SEARCH, REFERENCES], ids=lambda tool: tool.name)
@pytest.mark.parametrize("empty", [None, "", []])
def test_a_missing_argument_is_named(tool: Tool, empty: object) -> None:
    name = tool.parameters[0].name
    assert f'{tool.name} requires "{name}"' in problem(tool)
    assert f'{tool.name} requires "{name}"' in problem(tool, **{name: empty})


def test_reading_nothing_is_refused(ask: Ask) -> None:
    answer = ask("code_read")
    assert answer.is_error
    assert 'code_read requires "symbols", or "file"' in answer.content
    assert 'Next: code_read {"symbols":["Server/start"]}' in answer.content


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"query": 1.5, "limit": "many"}, '"limit" of code_search must be integer from 1 to 500'),
        ({"query": "a", "limit": 0}, "from 1 to 500, not 0"),
        ({"query": "a", "in": "files"}, "must be one of names, text, both"),
        ({"query": "a", "budget": 100}, "must be integer of at least 200, not 100"),
        ({"query": {"a": 1}}, '"query" of code_search must be a text or a list of strings'),
        ({"query": "a", "q": "b"}, '"query" and its alias "q" cannot be combined'),
    ],
)
def test_a_wrong_value_is_told_with_what_is_wanted(given: dict[str, Any], words: str) -> None:
    assert words in problem(SEARCH, **given)


@pytest.mark.parametrize(
    ("tool", "given", "understood"),
    [
        (SEARCH, {"pattern": "a"}, {"query": "a"}),
        (SEARCH, {"query": ["a", "b"], "maxResults": "5"}, {"query": ["a", "b"], "limit": 5}),
        (SEARCH, {"query": "a", "max-tokens": 300.0}, {"query": "a", "budget": 300}),
        (SEARCH, {"query": "a", "regex": "true", "glob": None}, {"query": "a", "regex": True}),
        (READ, {"symbol": "A/b"}, {"symbols": ["A/b"]}),
        (READ, {"symbols": '["A", "b"]'}, {"symbols": ["A", "b"]}),
        (READ, {"filePath": "a.py", "lines": 7}, {"file": "a.py", "lines": "7"}),
        (REFERENCES, {"symbol": ["total"]}, {"name": "total"}),
    ],
)
def test_common_aliases_and_types_are_understood(
    tool: Tool, given: dict[str, Any], understood: dict[str, Any]
) -> None:
    assert checked_arguments(tool, given) == understood
