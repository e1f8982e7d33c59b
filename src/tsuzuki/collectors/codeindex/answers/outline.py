"""The symbols of a file as a tree, or the files of a folder with their outermost symbols."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tsuzuki.collectors.codeindex.answers.freshness import FreshFile
from tsuzuki.collectors.codeindex.queries.lookups import Symbol


@dataclass(frozen=True, kw_only=True)
class OutlineEntry:
    """A symbol and how deep it lies; 0 is the outermost."""

    depth: int
    symbol: Symbol

    def as_dict(self) -> dict[str, Any]:
        place = f"{self.symbol.path}:{self.symbol.line}"
        return {"place": place, "depth": self.depth, **self.symbol.as_dict()}


def depth_of(symbol: Symbol) -> int:
    return symbol.container.count("/") + 1 if symbol.container else 0


def outline(
    files: Iterable[FreshFile],
    *,
    depth: int,
    wanted: Callable[[Symbol], bool] = lambda _symbol: True,
) -> list[OutlineEntry]:
    """The symbols down to `depth` levels, file by file in the order of their lines."""
    return [
        OutlineEntry(depth=depth_of(symbol), symbol=symbol)
        for file in files
        for symbol in file.symbols
        if depth_of(symbol) < depth and wanted(symbol)
    ]
