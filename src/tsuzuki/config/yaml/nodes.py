"""The nodes of a YAML document: a tree in which every node has its start and end offset.

A block collection ends with its last child, before the blank lines and comments that follow. Depth and number of nodes
are bounded.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

DEPTH_MAX = 50
NODES_MAX = 100_000

ScalarValue: TypeAlias = bool | int | float | str | None
KeyPath: TypeAlias = tuple[str | int, ...]
"""The path from the root to a value: keys of mappings, indexes of lists."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scalar:
    value: ScalarValue
    start: int
    end: int

    size = 1
    height = 0

    def to_data(self) -> ScalarValue:
        return self.value


@dataclass(frozen=True, kw_only=True, slots=True)
class Alias:
    """A reference (`*name`) to an anchored node; it has the data of that node."""

    target: "Node"
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.target.size

    @property
    def height(self) -> int:
        return self.target.height

    def to_data(self) -> Any:
        return self.target.to_data()


@dataclass(frozen=True, kw_only=True, slots=True)
class Sequence:
    items: tuple["Node", ...]
    is_flow: bool
    start: int
    end: int
    size: int
    height: int

    def to_data(self) -> list[Any]:
        return [item.to_data() for item in self.items]


@dataclass(frozen=True, kw_only=True, slots=True)
class MappingEntry:
    """A key and its value. `colon_end` is the offset after the colon, or None if the colon does not
    follow the key directly."""

    key: Scalar
    value: "Node"
    colon_end: int | None

    @property
    def name(self) -> str:
        return str(self.key.value)


@dataclass(frozen=True, kw_only=True, slots=True)
class Mapping:
    """`entries` are its own; `merged` are the mappings under `<<`, of which the first one wins."""

    entries: tuple[MappingEntry, ...]
    merged: tuple["Mapping", ...]
    is_flow: bool
    start: int
    end: int
    size: int
    height: int

    def own_entry(self, name: str) -> MappingEntry | None:
        """The entry `name` of this mapping itself, without merged ones."""
        return next((entry for entry in self.entries if entry.name == name), None)

    def entry(self, name: str) -> MappingEntry | None:
        """The entry `name`, its own or merged."""
        own = self.own_entry(name)
        if own is not None:
            return own
        inherited = (mapping.entry(name) for mapping in self.merged)
        return next((entry for entry in inherited if entry is not None), None)

    def to_data(self) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for mapping in reversed(self.merged):
            result.update(mapping.to_data())
        result.update((entry.name, entry.value.to_data()) for entry in self.entries)
        return result


Node: TypeAlias = Scalar | Alias | Sequence | Mapping


def dereference(node: Node) -> Scalar | Sequence | Mapping:
    """The node itself, or the target of an alias."""
    while isinstance(node, Alias):
        node = node.target
    return node


def walk_path(root: Node, path: KeyPath) -> Iterator[tuple[MappingEntry | None, Node]]:
    """Yield the entry and the node at each step of `path`, from the root to the last that exists."""
    node = root
    yield None, node
    for step in path:
        found = _child(dereference(node), step)
        if found is None:
            return
        node = found[1]
        yield found


def _child(node: Node, step: str | int) -> tuple[MappingEntry | None, Node] | None:
    if isinstance(node, Mapping):
        entry = node.entry(str(step))
        return None if entry is None else (entry, entry.value)
    if isinstance(node, Sequence) and isinstance(step, int) and 0 <= step < len(node.items):
        return None, node.items[step]
    return None


# Numbers as JSON defines them. `007`, `1_000` and `0x1F` stay text, so that no value is read as
# something that looks different. The limit of digits bounds the cost of converting one.
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,99})(\.[0-9]{1,99})?([eE][-+]?[0-9]{1,3})?")
_CONSTANTS: dict[str, ScalarValue] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


def resolve_scalar(text: str) -> ScalarValue:
    """The value of a plain (unquoted) scalar: null, a boolean, a number, or else its text."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    match = _NUMBER.fullmatch(text)
    if match is None:
        return text
    if not any(match.groups()):
        return int(text)
    number = float(text)
    return number if math.isfinite(number) else text
