"""Places where a name is used, and the path that names a definition.

A path is `Class/method[1]`: names from outside to inside, and which of several with the same name. It may leave out
what is outside: `method` finds `Class/method`. With a slash before it, it starts at the top of a file. `Class.method`,
`Class::method` and `Class#method` are understood as well.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from tsuzuki.collectors.codeindex.queries.lookups import Symbol
from tsuzuki.model.errors import UsageError

CONTAINER_KINDS = frozenset(
    {"class", "interface", "trait", "struct", "union", "enum", "object", "module", "namespace"}
)
"""Kinds whose content is better shown as an outline if it is long."""

_INDEX = re.compile(r"\[(\d{1,9})\]$")
_OTHER_SEPARATORS = re.compile(r"::|[.#]")
_FAMILIES = {
    "typescript": "javascript",
    "tsx": "javascript",
    "jsx": "javascript",
    "cpp": "c",
    "css": "html",
}


def family_of(language: str) -> str:
    """Languages whose names refer to each other share a family; a reference never leaves its own."""
    return _FAMILIES.get(language, language)


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """A place where a name is used."""

    path: str
    language: str
    name: str
    kind: str
    line: int
    column: int
    container: str


@dataclass(frozen=True)
class SymbolPath:
    """What a person wrote to name a symbol."""

    segments: tuple[str, ...]
    from_top: bool = False
    index: int | None = None
    """Which of the symbols with this path in one file, counted from 0 by line."""

    @classmethod
    def parse(cls, text: str) -> Self:
        found = _INDEX.search(text)
        bare = (text[: found.start()] if found else text).strip()
        segments = tuple(segment for segment in bare.split("/") if segment)
        if not segments:
            raise UsageError(
                f"{text!r} is not a symbol name",
                hint="For example: Class/method",
                code="bad_symbol",
            )
        return cls(segments, bare.startswith("/"), int(found[1]) if found else None)

    def with_other_separators(self) -> Self | None:
        """The same path if dots, double colons and hashes separate names; None if there are none."""
        segments = tuple(
            part for segment in self.segments for part in _OTHER_SEPARATORS.split(segment) if part
        )
        if not segments or segments == self.segments:
            return None
        return type(self)(segments, self.from_top, self.index)

    @property
    def name(self) -> str:
        return self.segments[-1]

    def matches(self, symbol: Symbol) -> bool:
        path = (*(part for part in symbol.container.split("/") if part), symbol.name)
        if self.from_top:
            return path == self.segments
        return path[-len(self.segments) :] == self.segments

    def pick(self, symbols: Sequence[Symbol]) -> list[Symbol]:
        """Those that match; with an index the one of each file and path that it counts to."""
        matching = [symbol for symbol in symbols if self.matches(symbol)]
        if self.index is None:
            return matching
        alike: dict[tuple[str, str], list[Symbol]] = {}
        for symbol in matching:
            alike.setdefault((symbol.path, symbol.name_path), []).append(symbol)
        return [group[self.index] for group in alike.values() if self.index < len(group)]
