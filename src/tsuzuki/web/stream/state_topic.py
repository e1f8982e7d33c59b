"""Topics whose events say what differs from a known state, among them those of collectors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tsuzuki.model.access import AnyRight
from tsuzuki.wiring.application import Application
from tsuzuki.wiring.collectors import usable_parts

State = Mapping[str, Mapping[str, Any]]
"""What there is, by its id."""


@dataclass(frozen=True, kw_only=True)
class StateTopic:
    """A topic that tells a state. If `read` answers only the newest part, `is_overrun` says of two states whether more
    may have changed than they show, and nothing is said about what is missing."""

    name: str
    right: AnyRight
    read: Callable[[Application], State]
    is_overrun: Callable[[State, State], bool] | None = None


@cache
def collector_topics() -> dict[str, StateTopic]:
    """The topics of all usable collectors, by name."""
    found = usable_parts(lambda one: one.load(one.topics) if one.topics else None)
    return {topic.name: topic for topics in found.values() for topic in topics}
