"""What a YAML file says as a tree, where every node knows its first and its last character.

A block collection ends with its last child, not with the blank lines and comments behind it.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

Atom: TypeAlias = bool | int | float | str | None
KeyPath: TypeAlias = tuple[str | int, ...]
"""The way from the top of a file to a value: keys of mappings, positions in lists."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scalar:
    value: Atom
    start: int
    end: int

    size = 1
    height = 0

    def plain(self) -> Atom:
        return self.value


@dataclass(frozen=True, kw_only=True, slots=True)
class Alias:
    """A reference to a node that stands elsewhere; it reads as that node does."""

    target: "Node"
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.target.size

    @property
    def height(self) -> int:
        return self.target.height

    def plain(self) -> Any:
        return self.target.plain()


@dataclass(frozen=True, kw_only=True, slots=True)
class Sequence:
    items: tuple["Node", ...]
    is_flow: bool
    start: int
    end: int
    size: int
    height: int

    def plain(self) -> list[Any]:
        return [item.plain() for item in self.items]


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A key and its value. `colon_end` is the offset behind the colon, if that stands right behind
    the key."""

    key: Scalar
    value: "Node"
    colon_end: int | None

    @property
    def name(self) -> str:
        return str(self.key.value)


@dataclass(frozen=True, kw_only=True, slots=True)
class Mapping:
    """`entries` are written here; `merged` are mappings taken in by `<<`, the first one winning."""

    entries: tuple[Entry, ...]
    merged: tuple["Mapping", ...]
    is_flow: bool
    start: int
    end: int
    size: int
    height: int

    def own(self, name: str) -> Entry | None:
        """The entry written in this very mapping."""
        return next((entry for entry in self.entries if entry.name == name), None)

    def entry(self, name: str) -> Entry | None:
        """The entry by that name, written here or merged in."""
        own = self.own(name)
        if own is not None:
            return own
        inherited = (mapping.entry(name) for mapping in self.merged)
        return next((entry for entry in inherited if entry is not None), None)

    def plain(self) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for mapping in reversed(self.merged):
            result.update(mapping.plain())
        result.update((entry.name, entry.value.plain()) for entry in self.entries)
        return result


Node: TypeAlias = Scalar | Alias | Sequence | Mapping


def follow(node: Node) -> Scalar | Sequence | Mapping:
    """The node itself, or what it refers to."""
    while isinstance(node, Alias):
        node = node.target
    return node


def walk(root: Node, path: KeyPath) -> Iterator[tuple[Entry | None, Node]]:
    """Each step of `path` that exists, from the root on: the entry passed and its value."""
    node = root
    yield None, node
    for step in path:
        found = _child(follow(node), step)
        if found is None:
            return
        node = found[1]
        yield found


def _child(node: Node, step: str | int) -> tuple[Entry | None, Node] | None:
    if isinstance(node, Mapping):
        entry = node.entry(str(step))
        return None if entry is None else (entry, entry.value)
    if isinstance(node, Sequence) and isinstance(step, int) and 0 <= step < len(node.items):
        return None, node.items[step]
    return None


# What JSON calls a number. `007`, `1_000` or `0x1F` stay text, so that nothing written in a file is
# ever read as something that looks different. More digits than this are no number anybody means.
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,99})(\.[0-9]{1,99})?([eE][-+]?[0-9]{1,3})?")
_WORDS: dict[str, Atom] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


def resolve(text: str) -> Atom:
    """The value that unquoted `text` stands for."""
    if text in _WORDS:
        return _WORDS[text]
    match = _NUMBER.fullmatch(text)
    if match is None:
        return text
    if not any(match.groups()):
        return int(text)
    number = float(text)
    return number if math.isfinite(number) else text
