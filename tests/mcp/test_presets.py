"""Which tools a server can offer: those of the collectors that have some, those for runs, and all of them."""

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from tsuzuki.mcp.calls import answer_call
from tsuzuki.mcp.presets import presets, presets_of
from tsuzuki.mcp.tool import ServerState, Tool, ToolProgress
from tsuzuki.mcp.tool_set import ToolSet
from tsuzuki.model.access import Right
from tsuzuki.wiring.collector import Collector
from tsuzuki.wiring.collectors import CollectorRecords, collector_records

COUNT = Tool(
    name="count",
    description="Count.",
    function="absent_library.counting:count",
    right=Right.RUNS_READ,
    parameters=(),
    budget_default=200,
    budget_max=200,
)
COUNTING = ToolSet(
    name="counting",
    tools=(COUNT,),
    instructions="count counts.",
    makers={"counter": "absent_library.counting:Counter"},
)
NAMED_LIKE_OURS = replace(COUNTING, name="runs")
NAMED_ALL = replace(COUNTING, name="all")
WITH_A_TOOL_OF_OURS = replace(COUNTING, tools=(replace(COUNT, name="run_get"),))
WITH_A_PART_OF_OURS = replace(COUNTING, makers={"workspace": "absent_library:make"})
NO_TOOL_SET = "counting"


def records(tools: str) -> CollectorRecords:
    """The installed collectors, and one of another distribution with these tools."""
    installed = collector_records()
    plug_in = Collector(
        name="counting",
        summary="Count.",
        kind="absent:KIND",
        handler="absent:count",
        needs=("absent_library",),
        tools=f"{__name__}:{tools}",
    )
    return replace(
        installed,
        usable={**installed.usable, "counting": plug_in},
        distributions={**installed.distributions, "counting": "counting-plug-in"},
    )


def test_the_sets_of_collectors_come_first_and_all_joins_every_set() -> None:
    assert [*presets()] == ["code", "runs", "all"]
    found = presets_of(records("COUNTING"))
    assert [*found] == ["code", "counting", "runs", "all"]
    sets = (found["code"], found["counting"], found["runs"])
    assert found["all"].tools == tuple(tool for one in sets for tool in one.tools)
    assert found["all"].makers.keys() == {"code", "counter", "workspace"}


@pytest.mark.parametrize(
    "tools",
    [
        *("NAMED_LIKE_OURS", "NAMED_ALL", "WITH_A_TOOL_OF_OURS", "WITH_A_PART_OF_OURS"),
        *("NO_TOOL_SET", "MISSING"),
    ],
)
def test_a_set_that_cannot_be_used_is_left_out_and_logged(
    tools: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert presets_of(records(tools)) == presets()
    (record,) = caplog.records
    assert "counting-plug-in" in record.getMessage()


def test_a_tool_whose_library_is_not_installed_names_the_extra() -> None:
    tools = presets_of(records("COUNTING"))["counting"].tools
    state = ServerState(environ={}, cwd=Path("/"))
    answer = answer_call(tools, "count", {}, state=state, progress=ToolProgress())
    assert answer.is_error
    assert answer.text.startswith("extra_missing: ")
    assert "tsuzuki[counting]" in answer.text
