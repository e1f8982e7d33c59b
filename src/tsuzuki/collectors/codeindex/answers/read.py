"""Source with line numbers: of a symbol, or lines of a file. A name that fits several symbols is never guessed at."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tsuzuki.collectors.codeindex.answers.definitions import by_place, definitions_of
from tsuzuki.collectors.codeindex.answers.freshness import FreshFile, FreshFiles
from tsuzuki.collectors.codeindex.answers.symbol import CONTAINER_KINDS, SymbolPath
from tsuzuki.collectors.codeindex.queries.lookups import Symbol
from tsuzuki.model.errors import NotFound, UsageError
from tsuzuki.model.suggestion import closest

OUTLINE_LINES_MIN = 200
"""A class of more lines is shown as the list of its members."""

CANDIDATES_SHOWN_MAX = 20
NAMES_MAX = 500


class AmbiguousSymbol(UsageError):
    """The name fits several symbols; `candidates` are the ways to name each of them."""

    code = "ambiguous_symbol"

    def __init__(self, text: str, candidates: list[str]) -> None:
        shown = candidates[:CANDIDATES_SHOWN_MAX]
        more = len(candidates) - len(shown)
        super().__init__(
            f"{text!r} matches {len(candidates)} symbols",
            hint="\n".join(["Choose one:", *shown, *([f"… and {more} more"] if more else [])]),
        )
        self.candidates = candidates

    def as_dict(self) -> dict[str, Any]:
        return {**super().as_dict(), "candidates": self.candidates}


@dataclass(frozen=True, kw_only=True)
class Excerpt:
    """Lines of a file, or of a long class the lines on which its members are declared."""

    path: str
    language: str
    start: int
    end: int
    lines: list[tuple[int, str]]
    symbol: Symbol | None = None
    is_outline: bool = False

    def as_dict(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "language": self.language,
            "start": self.start,
            "end": self.end,
            "symbol": self.symbol.as_dict() if self.symbol else None,
            "is_outline": self.is_outline,
            "lines": [{"line": number, "text": text} for number, text in self.lines],
        }


def read_lines(file: FreshFile, start: int, end: int) -> Excerpt:
    """Lines `start` to `end` of a file, both included; the end may lie behind the last line."""
    count = file.source.line_count
    if start < 1 or end < start:
        raise UsageError(
            f"invalid lines {start}-{end}", hint="For example: 10-20", code="bad_lines"
        )
    if start > count:
        raise NotFound(
            f"{file.path} has {count} lines, so it has no line {start}", code="no_such_line"
        )
    return _excerpt(file, start, min(end, count))


def read_symbol(
    files: FreshFiles,
    text: str,
    *,
    file: FreshFile | None = None,
    changed: Iterable[str] = (),
    whole: bool = False,
) -> Excerpt:
    """The source of the one symbol that `text` names, in `file` or else anywhere in the tree."""
    symbol = resolve_symbol(files, text, file=file, changed=changed)
    home = files.get(symbol.path)
    if home is None:
        raise NotFound(f"{symbol.path} no longer exists", code="no_such_file")
    start = _first_line(home, symbol)
    is_long = symbol.end_line - symbol.line >= OUTLINE_LINES_MIN
    members = [one for one in home.symbols if _is_inside(one, symbol)]
    if is_long and members and not whole and symbol.kind in CONTAINER_KINDS:
        numbers = sorted({symbol.line, *(member.line for member in members)})
        lines = [(number, home.source.line(number)) for number in numbers]
        return _excerpt(home, start, symbol.end_line, symbol=symbol, outline=lines)
    return _excerpt(home, start, symbol.end_line, symbol=symbol)


def resolve_symbol(
    files: FreshFiles, text: str, *, file: FreshFile | None = None, changed: Iterable[str] = ()
) -> Symbol:
    """The one symbol that `text` names. Raises `NotFound` and `AmbiguousSymbol`."""
    found = matching_symbols(files, text, file=file, changed=changed)
    if not found:
        raise _not_found(files, text, file)
    if len(found) > 1:
        raise AmbiguousSymbol(text, name_each(files, found))
    return found[0]


def matching_symbols(
    files: FreshFiles, text: str, *, file: FreshFile | None = None, changed: Iterable[str] = ()
) -> list[Symbol]:
    """Every symbol that `text` names."""
    path = SymbolPath.parse(text)
    for attempt in (path, path.with_other_separators()):
        if attempt is None:
            continue
        known = (
            [symbol for symbol in file.symbols if symbol.name == attempt.name]
            if file
            else definitions_of(files, [attempt.name], changed=changed)
        )
        if found := attempt.pick(sorted(known, key=by_place)):
            return found
    return []


def name_each(files: FreshFiles, symbols: Iterable[Symbol]) -> list[str]:
    """`file:Class/method`, with `[i]` where a file has several of that path, and the line."""
    named = []
    for symbol in symbols:
        file = files.get(symbol.path)
        alike = [one for one in (file.symbols if file else ()) if one.name_path == symbol.name_path]
        index = f"[{alike.index(symbol)}]" if len(alike) > 1 else ""
        named.append(f"{symbol.path}:{symbol.name_path}{index} ({symbol.kind}, line {symbol.line})")
    return named


def _first_line(file: FreshFile, symbol: Symbol) -> int:
    """With the decorators, annotations or attributes that stand directly above."""
    line = symbol.line
    while line > 1 and file.source.line(line - 1).lstrip().startswith(("@", "#[")):
        line -= 1
    return line


def _is_inside(inner: Symbol, outer: Symbol) -> bool:
    return (
        inner is not outer
        and outer.line <= inner.line <= inner.end_line <= outer.end_line
        and inner.container == outer.name_path
    )


def _excerpt(
    file: FreshFile,
    start: int,
    end: int,
    *,
    symbol: Symbol | None = None,
    outline: list[tuple[int, str]] | None = None,
) -> Excerpt:
    lines = outline or [(number, file.source.line(number)) for number in range(start, end + 1)]
    return Excerpt(
        path=file.path,
        language=file.language,
        start=start,
        end=end,
        lines=lines,
        symbol=symbol,
        is_outline=outline is not None,
    )


def _not_found(files: FreshFiles, text: str, file: FreshFile | None) -> NotFound:
    name = SymbolPath.parse(text).name
    if file is not None:
        known = [symbol.name for symbol in file.symbols]
        where = file.path
    else:
        where = "this tree"
        known = files.names_alike(name, limit=NAMES_MAX)
    guess = closest(name, known)
    return NotFound(
        f"there is no symbol {text!r} in {where}",
        hint=f'Did you mean "{guess}"?' if guess else "Find it with: tsuzuki index search",
        code="no_such_symbol",
    )
