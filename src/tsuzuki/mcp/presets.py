"""The tool sets that a server can offer: one of each collector that has tools, `runs`, and `all` of them."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

from tsuzuki.mcp.runs.definitions import RUNS
from tsuzuki.mcp.tool_set import ToolSet
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.wiring.collector import Collector
from tsuzuki.wiring.collectors import CollectorRecords, collector_records, guarded

ALL = "all"

_log = logging.getLogger(__name__)


@cache
def presets() -> Mapping[str, ToolSet]:
    """The tool sets of the installed collectors and ours, by name. The first one is the default."""
    return presets_of(collector_records())


def presets_of(records: CollectorRecords) -> dict[str, ToolSet]:
    """The tool sets of these collectors and ours. A set that cannot be used is logged and left out, so that the others
    can be served."""
    found: list[ToolSet] = []
    for name, collector in records.usable.items():
        if collector.tools is None:
            continue
        load = partial(_checked, collector, collector.tools, (*found, RUNS))
        try:
            found.append(guarded(name, records.distributions.get(name), load))
        except ConfigurationError as problem:
            _log.warning("%s", problem.message)
    sets = (*found, RUNS)
    return {one.name: one for one in (*sets, _joined(sets))}


def _checked(collector: Collector, target: str, others: Sequence[ToolSet]) -> ToolSet:
    """A collector's tool set, whose tools report missing libraries of the collector's extra. Raises `ValueError` if a
    name is taken."""
    tool_set = collector.load(target)
    if not isinstance(tool_set, ToolSet):
        raise TypeError(f"{target} is not a ToolSet")
    taken = {ALL}.union(*map(_names, others))
    for name in sorted(_names(tool_set) & taken):
        raise ValueError(f"the name {name!r} is taken by other tools")
    return replace(
        tool_set, tools=tuple(replace(tool, resolve=collector.load) for tool in tool_set.tools)
    )


def _names(tool_set: ToolSet) -> set[str]:
    """The names that no other set may have: its own, and those of its tools and parts."""
    return {tool_set.name, *tool_set.makers, *(tool.name for tool in tool_set.tools)}


def _joined(sets: Sequence[ToolSet]) -> ToolSet:
    return ToolSet(
        name=ALL,
        tools=tuple(tool for one in sets for tool in one.tools),
        instructions="\n".join(one.instructions for one in sets),
        warm_up=tuple(target for one in sets for target in one.warm_up),
        makers={name: target for one in sets for name, target in one.makers.items()},
        tasks=RUNS.tasks,
        task_tools=RUNS.task_tools,
    )
