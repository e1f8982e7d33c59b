"""Definitions by a part of their name, the best matches first.

The index proposes candidates. The best of them is accepted when its file was found unchanged; otherwise what the
index said of that file is dropped, and the file's definitions of now compete in its place. Whether and how well a name
matches is decided here, for stored and freshly parsed names alike.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import count
from typing import Any, Self

from tsuzuki.collectors.codeindex.answers.freshness import FreshFiles
from tsuzuki.collectors.codeindex.answers.symbol import SymbolPath
from tsuzuki.collectors.codeindex.queries import lookups
from tsuzuki.collectors.codeindex.queries.lookups import Symbol
from tsuzuki.collectors.codeindex.queries.names import parts_of
from tsuzuki.model.suggestion import closest

NAMES_MAX = 2_000
"""Names that are looked at for each kind of match; a query with more matches should say more."""

_SECONDARY_KINDS = frozenset({"variable", "field", "key", "heading", "id", "rule", "property"})


class Match(IntEnum):
    """The better match is the smaller one."""

    EXACT = 0
    CASE = 1
    """Equal but for upper and lower case."""
    PREFIX = 2
    SUBSTRING = 3
    PARTS = 4
    """Each part of the query begins a part of the name, in the same order: `jobMan` in `BuildJobManager`."""


def match_name(query: str, name: str) -> Match | None:
    """How `query` matches `name`; None if it does not."""
    if query == name:
        return Match.EXACT
    wanted, folded = query.casefold(), name.casefold()
    if wanted == folded:
        return Match.CASE
    if folded.startswith(wanted):
        return Match.PREFIX
    if wanted in folded:
        return Match.SUBSTRING
    return Match.PARTS if _parts_match(query_parts(query), parts_of(name)) else None


def query_parts(query: str) -> list[str]:
    """The parts of a query. Capitals alone are the initials of a name: `BJM` asks for `BuildJobManager`."""
    if query.isalpha() and query.isupper():
        return [letter.casefold() for letter in query]
    return parts_of(query)


def _parts_match(wanted: list[str], parts: list[str]) -> bool:
    if not wanted:
        return False
    remaining = iter(parts)
    return all(any(part.startswith(one) for part in remaining) for one in wanted)


@dataclass(frozen=True, kw_only=True)
class Query:
    """What is asked for. `Class/part` asks for names with `part` in what is named `Class`."""

    text: str
    containers: tuple[str, ...] = ()
    kinds: frozenset[str] = frozenset()
    languages: frozenset[str] = frozenset()
    path_filter: Callable[[str], bool] = lambda _path: True

    @classmethod
    def of(cls, text: str, **filters: Any) -> Self:
        path = SymbolPath.parse(text)
        *containers, name = path.segments
        return cls(text=name, containers=tuple(part.casefold() for part in containers), **filters)

    def match(self, symbol: Symbol) -> Match | None:
        if self.kinds and symbol.kind not in self.kinds:
            return None
        if self.languages and symbol.language not in self.languages:
            return None
        if self.containers and not self._contains(symbol):
            return None
        return match_name(self.text, symbol.name) if self.path_filter(symbol.path) else None

    def _contains(self, symbol: Symbol) -> bool:
        outside = tuple(symbol.container.casefold().split("/"))
        return outside[-len(self.containers) :] == self.containers


@dataclass(frozen=True, kw_only=True)
class FoundSymbol:
    """A definition and how well its name matches."""

    symbol: Symbol
    match: Match

    def as_dict(self) -> dict[str, Any]:
        return {**self.symbol.as_dict(), "match": self.match.name.lower()}


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """The best matches, and how many there are in all as far as is known."""

    found: list[FoundSymbol]
    total: int
    did_you_mean: str | None = None


def search_names(
    files: FreshFiles, query: Query, *, limit: int, changed: Iterable[str] = ()
) -> SearchResult:
    """The best `limit` definitions that match."""
    candidates = _Candidates(files, query)
    candidates.add_stored()
    for path in changed:
        candidates.replace(path)
    found = [*candidates.best(limit)]
    suggestion = None if found else _suggestion(files, query.text)
    return SearchResult(found=found, total=candidates.total, did_you_mean=suggestion)


class _Candidates:
    """A heap of matches; what the index proposed for a file that changed is replaced once."""

    def __init__(self, files: FreshFiles, query: Query) -> None:
        self._files = files
        self._query = query
        self._heap: list[tuple[tuple[Any, ...], int, Match, Symbol, bool]] = []
        self._number = count()
        self._replaced: set[str] = set()
        self._per_path: dict[str, int] = {}

    @property
    def total(self) -> int:
        return sum(self._per_path.values())

    def add_stored(self) -> None:
        if self._files.connection is None:
            return
        names = _proposed_names(self._files, self._query.text)
        for symbol in lookups.symbols_named(self._files.connection, names):
            self._add(symbol, is_stored=True)

    def replace(self, path: str) -> None:
        """Take a file's definitions of now in place of the stored ones."""
        if path in self._replaced:
            return
        self._replaced.add(path)
        self._per_path.pop(path, None)
        file = self._files.get(path)
        for symbol in file.symbols if file else ():
            self._add(symbol, is_stored=False)

    def best(self, limit: int) -> Iterator[FoundSymbol]:
        shown = 0
        while self._heap and shown < limit:
            _, _, match, symbol, is_stored = heapq.heappop(self._heap)
            if is_stored and not self._is_current(symbol.path):
                continue
            shown += 1
            yield FoundSymbol(symbol=symbol, match=match)

    def _is_current(self, path: str) -> bool:
        """Whether what the index says of the file holds. If not, it is replaced."""
        if path in self._replaced:
            return False
        file = self._files.get(path)
        if file and not file.was_parsed:
            return True
        self.replace(path)
        return False

    def _add(self, symbol: Symbol, *, is_stored: bool) -> None:
        match = self._query.match(symbol)
        if match is None:
            return
        self._per_path[symbol.path] = self._per_path.get(symbol.path, 0) + 1
        entry = (_rank(match, symbol), next(self._number), match, symbol, is_stored)
        heapq.heappush(self._heap, entry)


def _rank(match: Match, symbol: Symbol) -> tuple[Any, ...]:
    """Differs between any two definitions, so that the order is the same each time."""
    return (
        match,
        symbol.kind in _SECONDARY_KINDS,
        is_test(symbol.path),
        len(symbol.name),
        symbol.path,
        symbol.line,
        symbol.column,
        symbol.name,
        symbol.kind,
    )


def is_test(path: str) -> bool:
    """Whether a path looks like a test."""
    *folders, name = path.casefold().split("/")
    stem = name.partition(".")[0]
    in_folder = not {"test", "tests", "spec", "__tests__"}.isdisjoint(folders)
    return in_folder or stem.startswith("test_") or stem.endswith(("_test", "_spec"))


def _proposed_names(files: FreshFiles, text: str) -> set[str]:
    connection = files.connection
    if connection is None:
        return set()
    names = {
        *lookups.names_equal(connection, text, limit=NAMES_MAX),
        *lookups.names_with_prefix(connection, text, limit=NAMES_MAX),
        *lookups.names_with_substring(connection, text, limit=NAMES_MAX),
    }
    # The start of a single part is a substring too.
    if len(parts := query_parts(text)) > 1:
        longest = max(parts, key=len)
        names.update(lookups.names_with_part(connection, longest, limit=NAMES_MAX))
    return {name for name in names if match_name(text, name) is not None}


def _suggestion(files: FreshFiles, text: str) -> str | None:
    return closest(text, files.names_alike(text, limit=NAMES_MAX))
