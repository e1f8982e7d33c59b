"""Which definition lies in which: container paths, and what a kind becomes by its place."""

import sys
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import NamedTuple

from tsuzuki.collectors.codeindex.extract.names import clean_path
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
LEAVES = VALUES | {
    SymbolKind.ID,
    SymbolKind.MACRO,
    SymbolKind.MEMBER,
    SymbolKind.RULE,
    SymbolKind.TYPE,
}
"""Kinds that contain no definition, even where one lies in their text."""


LOCALS = VALUES | {SymbolKind.OBJECT}
"""Kinds that nothing outside a function can name if they lie in it."""

ONCE = VALUES | {SymbolKind.KEY}
"""Kinds of which only the first of a name counts in its container: the others are assignments or list items."""

# A member of an enum is slow to ask for by its class.
_CONSTANT = SymbolKind.CONSTANT
_FIELD = SymbolKind.FIELD
_FUNCTION = SymbolKind.FUNCTION
_KEY = SymbolKind.KEY
_METHOD = SymbolKind.METHOD
_NAMESPACE = SymbolKind.NAMESPACE
_PROPERTY = SymbolKind.PROPERTY
_TYPE = SymbolKind.TYPE
_VARIABLE = SymbolKind.VARIABLE

KEY_DEPTH_MAX = 5
"""Deeper keys are data."""


class FoundDefinition(NamedTuple):
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
    found: FoundDefinition
    kind: SymbolKind
    container: str


class DefinitionScope(NamedTuple):
    start: int
    end: int
    path: str
    kind: SymbolKind


def nested(found: Iterable[FoundDefinition]) -> tuple[list[Nested], list[DefinitionScope]]:
    """The definitions with their containers, in the order of the text, and the scopes they make."""
    definitions: list[Nested] = []
    scopes: list[DefinitionScope] = []
    stack: list[DefinitionScope] = []
    values: set[tuple[str, str]] = set()
    for item in _outer_first(found):
        start, end, _, name, written_kind, written_container, body, listed = item
        while stack and (
            stack[-1].end <= start or (stack[-1].end == end and stack[-1].start == start)
        ):
            stack.pop()
        parent = stack[-1] if stack else None
        if parent is not None and written_kind in VALUES and parent.kind in CALLABLES:
            continue  # most of all: local variables, which contain nothing
        container = _joined(_enclosing(item, parent), written_container)
        kind = _kind(item, parent)
        if listed and not _is_left_out(item, parent, container, values):
            definitions.append(Nested(item, kind, container))
        if kind in LEAVES and not (kind is _TYPE and body >= 0):
            continue
        inner = clean_path(name) if kind is _NAMESPACE else name
        scope = DefinitionScope(start, end, _joined(container, inner), kind)
        stack.append(scope)
        scopes.append(scope)
    return definitions, scopes


def containers(scopes: Iterable[DefinitionScope]) -> Iterator[tuple[int, str]]:
    """The text in pieces, each with the path of its innermost scope: where a piece ends, and the path."""
    stack: list[DefinitionScope] = []
    for scope in scopes:
        while stack and stack[-1].end <= scope.start:
            yield stack[-1].end, stack.pop().path
        yield scope.start, stack[-1].path if stack else ""
        stack.append(scope)
    while stack:
        yield stack[-1].end, stack.pop().path
    yield sys.maxsize, ""


def _outer_first(found: Iterable[FoundDefinition]) -> list[FoundDefinition]:
    """By start, the longest first, then by the name. Each sort keeps the order of what is equal; three of them are
    faster than one with a key that is made for each item."""
    ordered = sorted(found, key=itemgetter(2))
    ordered.sort(key=itemgetter(1), reverse=True)
    ordered.sort(key=itemgetter(0))
    return ordered


def _enclosing(item: FoundDefinition, parent: DefinitionScope | None) -> str:
    """A property among the parameters of a constructor belongs to the class."""
    if parent is None:
        return ""
    if item.kind is _PROPERTY and parent.kind is _METHOD:
        return parent.path.rpartition("/")[0]
    return parent.path


def _joined(outer: str, inner: str) -> str:
    return f"{outer}/{inner}" if outer and inner else outer or inner


def _is_left_out(
    item: FoundDefinition,
    parent: DefinitionScope | None,
    container: str,
    values: set[tuple[str, str]],
) -> bool:
    """True for a local variable, a key deep in data, and a name that its container has already."""
    if item.kind is _KEY and container.count("/") + 1 >= KEY_DEPTH_MAX:
        return True
    if item.kind in LOCALS and parent is not None and parent.kind in CALLABLES:
        return True
    if item.kind not in ONCE:
        return False
    known = (container, item.name) in values
    values.add((container, item.name))
    return known


def _kind(item: FoundDefinition, parent: DefinitionScope | None) -> SymbolKind:
    kind = item.kind
    if kind is not _FUNCTION and kind is not _VARIABLE:
        return kind
    in_type = parent is not None and parent.kind in TYPES
    if kind is _FUNCTION:
        return _METHOD if in_type or item.container else kind
    if len(item.name) > 1 and item.name.isupper():
        return _CONSTANT
    return _FIELD if in_type else kind
