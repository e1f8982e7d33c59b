"""Which definition lies in which: container paths, and what a kind becomes by its place."""

from collections.abc import Iterable, Iterator, Sequence
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

KEY_DEPTH_MAX = 5
"""Deeper keys are data."""


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
        container = _joined(_enclosing(item, parent), item.container)
        kind = _kind(item, parent)
        if item.listed and not _is_left_out(item, parent, container, values):
            definitions.append(Nested(item, kind, container))
        if kind in LEAVES and not (kind is SymbolKind.TYPE and item.body >= 0):
            continue
        name = clean_path(item.name) if kind is SymbolKind.NAMESPACE else item.name
        scope = Scope(item.start, item.end, _joined(container, name), kind)
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


def _enclosing(item: Found, parent: Scope | None) -> str:
    """A property among the parameters of a constructor belongs to the class."""
    if parent is None:
        return ""
    if item.kind is SymbolKind.PROPERTY and parent.kind is SymbolKind.METHOD:
        return parent.path.rpartition("/")[0]
    return parent.path


def _joined(outer: str, inner: str) -> str:
    return f"{outer}/{inner}" if outer and inner else outer or inner


def _is_left_out(
    item: Found, parent: Scope | None, container: str, values: set[tuple[str, str]]
) -> bool:
    """True for a local variable, a key deep in data, and a name that its container has already."""
    if item.kind is SymbolKind.KEY and container.count("/") + 1 >= KEY_DEPTH_MAX:
        return True
    if item.kind in LOCALS and parent is not None and parent.kind in CALLABLES:
        return True
    if item.kind not in ONCE:
        return False
    known = (container, item.name) in values
    values.add((container, item.name))
    return known


def _kind(item: Found, parent: Scope | None) -> SymbolKind:
    in_type = parent is not None and parent.kind in TYPES
    if item.kind is SymbolKind.FUNCTION and (in_type or item.container):
        return SymbolKind.METHOD
    if item.kind is SymbolKind.VARIABLE:
        if len(item.name) > 1 and item.name.isupper():
            return SymbolKind.CONSTANT
        return SymbolKind.FIELD if in_type else SymbolKind.VARIABLE
    return item.kind
