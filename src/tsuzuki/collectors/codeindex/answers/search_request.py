"""What a search asks for, and what it finds: definitions by name, then lines by text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tsuzuki.collectors.codeindex.answers.path_filter import PathFilter
from tsuzuki.collectors.codeindex.answers.search import Query, SearchResult
from tsuzuki.collectors.codeindex.answers.text_search import FoundLine, TextQuery
from tsuzuki.collectors.codeindex.extract import LANGUAGES, SymbolKind
from tsuzuki.model.errors import UsageError
from tsuzuki.model.suggestion import did_you_mean


@dataclass(frozen=True, kw_only=True)
class IndexSearch:
    """What to look for: definitions by name, lines by text, or both. A kind or a language asks for names only."""

    text: str
    names: bool = True
    lines: bool = True
    regex: bool = False
    ignore_case: bool = False
    kinds: Sequence[str] = ()
    languages: Sequence[str] = ()
    paths: Sequence[str] = ()
    limit: int = 20
    lines_limit: int | None = None
    """Of lines of text, if it is another than that of names."""

    def name_query(self, path_filter: PathFilter) -> Query | None:
        if not self.names or self.regex or not self.text.strip("/ "):
            return None
        return Query.of(
            self.text,
            kinds=known_words("kind", self.kinds, list(SymbolKind)),
            languages=known_words("language", self.languages, [*LANGUAGES]),
            path_filter=path_filter,
        )

    def text_query(self, path_filter: PathFilter) -> TextQuery | None:
        if not self.lines or self.kinds or self.languages or not self.text:
            return None
        return TextQuery(
            text=self.text,
            is_regex=self.regex,
            ignore_case=self.ignore_case,
            path_filter=path_filter,
        ).checked()


@dataclass(frozen=True, kw_only=True)
class FoundSymbols:
    """Definitions by name, then lines by text."""

    names: SearchResult | None
    lines: list[FoundLine]
    has_more_lines: bool

    @property
    def more_names(self) -> int:
        return self.names.total - len(self.names.found) if self.names else 0

    @property
    def did_you_mean(self) -> str | None:
        return self.names.did_you_mean if self.names else None

    def rows(self) -> Iterator[dict[str, Any]]:
        """One shape for both: a line of text is of the kind `text` and has no name. The line of a definition
        that is shown is not shown again."""
        shown = set()
        for found in self.names.found if self.names else ():
            symbol = found.as_dict()
            shown.add((symbol["path"], symbol["line"]))
            yield {
                "place": f"{symbol['path']}:{symbol['line']}",
                **symbol,
                "text": symbol["signature"],
            }
        for line in self.lines:
            if (line.path, line.line) in shown:
                continue
            row = {**dict.fromkeys(_SYMBOL_KEYS), **line.as_dict(), "kind": "text"}
            yield {"place": f"{line.path}:{line.line}", **row}


_SYMBOL_KEYS = (
    *("path", "language", "name", "kind", "container", "line", "end_line", "column", "signature"),
    *("doc", "name_path", "match"),
)


def known_words(what: str, words: Sequence[str], known: Sequence[str]) -> frozenset[str]:
    """The words if all of them are known."""
    for word in words:
        if word not in known:
            raise UsageError(
                f"unknown {what} {word!r}",
                hint=did_you_mean(word, known).strip() or f"Known: {', '.join(sorted(known))}",
                code=f"unknown_{what}",
            )
    return frozenset(words)
