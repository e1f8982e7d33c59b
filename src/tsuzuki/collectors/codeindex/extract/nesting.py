"""Which definition lies in which: container paths, and what a kind becomes by its place."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tsuzuki.collectors.codeindex.extract.symbols import SymbolKind

TYPES = frozenset(
    {
        SymbolKind.CLASS,
        SymbolKind.INTERFACE,
        SymbolKind.TRAIT,
        SymbolKind.STRUCT,
        SymbolKind.UNION,
        SymbolKind.ENUM,
        SymbolKind.OBJECT,
    }
)
CALLABLES = frozenset({SymbolKind.FUNCTION, SymbolKind.METHOD})
VALUES = frozenset({SymbolKind.VARIABLE, SymbolKind.CONSTANT, SymbolKind.FIELD})
LEAVES = VALUES | {SymbolKind.MEMBER, SymbolKind.MACRO, SymbolKind.TYPE}
"""Kinds that contain no definition, even where one lies in their text."""


class Found(NamedTuple):
    """A definition as the query gave it; `listed` is false for a scope that is not a definition of its own."""

    start: int
    end: int
    name_start: int
    name: str
    kind: SymbolKind
    container: str
    body: int
    """Where its body starts, or -1."""
    listed: bool


class Nested(NamedTuple):
    found: Found
    kind: SymbolKind
    container: str


class Scope(NamedTuple):
    start: int
    end: int
    path: str
    kind: SymbolKind


def nested(found: Iterable[Found]) -> tuple[list[Nested], list[Scope]]:
    """The definitions with their containers, in the order of the text, and the scopes they make."""
    definitions: list[Nested] = []
    scopes: list[Scope] = []
    stack: list[Scope] = []
    values: set[tuple[str, str]] = set()
    for item in sorted(found, key=_outer_first):
        while stack and (stack[-1].end <= item.start or stack[-1][:2] == item[:2]):
            stack.pop()
        parent = stack[-1] if stack else None
        container = _joined(parent.path if parent else "", item.container)
        kind = _kind(item, parent)
        if kind in LEAVES:
            key = (container, item.name)
            repeated = kind in VALUES and key in values
            local = kind in VALUES and parent is not None and parent.kind in CALLABLES
            if not repeated and not local:
                values.add(key)
                definitions.append(Nested(item, kind, container))
            continue
        if item.listed:
            definitions.append(Nested(item, kind, container))
        scope = Scope(item.start, item.end, _joined(container, item.name), kind)
        stack.append(scope)
        scopes.append(scope)
    return definitions, scopes


def containers(offsets: Sequence[int], scopes: Sequence[Scope]) -> Iterator[str]:
    """The innermost scope's path for each of the ascending offsets."""
    stack: list[Scope] = []
    upcoming = 0
    for offset in offsets:
        while upcoming < len(scopes) and scopes[upcoming].start <= offset:
            scope = scopes[upcoming]
            while stack and stack[-1].end <= scope.start:
                stack.pop()
            stack.append(scope)
            upcoming += 1
        while stack and stack[-1].end <= offset:
            stack.pop()
        yield stack[-1].path if stack else ""


def _outer_first(item: Found) -> tuple[int, int, int]:
    return item.start, -item.end, item.name_start


def _joined(outer: str, inner: str) -> str:
    return f"{outer}/{inner}" if outer and inner else outer or inner


def _kind(item: Found, parent: Scope | None) -> SymbolKind:
    in_type = parent is not None and parent.kind in TYPES
    if item.kind is SymbolKind.FUNCTION and (in_type or item.container):
        return SymbolKind.METHOD
    if item.kind is SymbolKind.VARIABLE:
        if len(item.name) > 1 and item.name.isupper():
            return SymbolKind.CONSTANT
        return SymbolKind.FIELD if in_type else SymbolKind.VARIABLE
    return item.kind
