"""`code_search`: definitions by name, then lines by text, for one or several queries."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, groupby
from typing import Any, Self

from tsuzuki.collectors.codeindex.service.answers import CodeAnswers, FoundSymbols, IndexAnswer
from tsuzuki.collectors.codeindex.tools.indexes import index_part, indexes_of
from tsuzuki.collectors.codeindex.tools.texts import listed_texts, places_by_file
from tsuzuki.mcp.answer import ToolAnswer
from tsuzuki.mcp.paging import ItemForm, McpCursor, McpPage, page_answer
from tsuzuki.mcp.tokens import clipped
from tsuzuki.mcp.tool import ToolCall

LIMIT_DEFAULT = 20
COUNTED_LINES_MAX = 2_000
"""Lines of text that are counted; beyond it their number is not known."""


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A definition, or a line of text, which has no name."""

    query: str
    path: str
    line: int
    text: str
    """The signature of a definition."""

    kind: str = "text"
    name: str = ""
    end_line: int = 0
    doc: str = ""

    @property
    def is_text(self) -> bool:
        return not self.name

    @property
    def key(self) -> str:
        return "\0".join((self.query, self.path, self.kind, self.name or self.text))


def search(call: ToolCall) -> ToolAnswer:
    """Each page has up to `limit` definitions and `limit` lines of each query."""
    queries = listed_texts(call.get("query"))
    limit = call.get("limit", LIMIT_DEFAULT)
    depth = McpCursor.of(call).offset // limit + 1
    indexes = indexes_of(call.state)
    tree = indexes.tree(call)
    found = [
        indexes.ask(call, tree, partial(_ask, call, query, count=depth * limit))
        for query in queries
    ]
    hits = [_Hits.of(query, answer.value) for query, answer in zip(queries, found, strict=True)]
    chunks = [[hit for one in hits for hit in one.chunk(number, limit)] for number in range(depth)]
    shown = sum(map(len, chunks))
    page = McpPage(
        index=index_part(found[-1].index),
        items=[hit for chunk in chunks for hit in chunk],
        forms=_forms(call.budget, is_many=len(queries) > 1),
        total=shown + sum(one.behind(depth * limit) for one in hits),
        is_total_exact=not any(answer.value.has_more_lines for answer in found),
        ends=[*accumulate(map(len, chunks))],
        notes=[*_notes(queries, found)],
        empty="",
    )
    return page_answer(call, page)


def _ask(
    call: ToolCall, query: str, answers: CodeAnswers, *, count: int
) -> IndexAnswer[FoundSymbols]:
    where = call.get("in", "both")
    return answers.search(
        query,
        names=where != "text",
        lines=where != "names",
        regex=call.get("regex", False),
        kinds=listed_texts(call.get("kind")),
        paths=listed_texts(call.get("glob")),
        limit=count,
        lines_limit=max(COUNTED_LINES_MAX, count),
    )


@dataclass(frozen=True, kw_only=True)
class _Hits:
    """What was found for one query, as far as it is known."""

    names: Sequence[Hit]
    lines: Sequence[Hit]
    more_names: int

    @classmethod
    def of(cls, query: str, found: FoundSymbols) -> Self:
        symbols = [one.symbol for one in found.names.found] if found.names else []
        names = [
            Hit(
                query=query,
                path=one.path,
                line=one.line,
                end_line=one.end_line,
                kind=one.kind,
                name=one.name_path,
                text=one.signature,
                doc=one.doc,
            )
            for one in symbols
        ]
        lines = [
            Hit(query=query, path=one.path, line=one.line, text=one.text.strip())
            for one in found.lines
        ]
        return cls(names=names, lines=lines, more_names=found.more_names)

    def chunk(self, number: int, limit: int) -> Iterator[Hit]:
        """What stands on one page: definitions, then lines that are not those of definitions up to there. It does
        not depend on how much is known beyond the page."""
        first, behind = number * limit, (number + 1) * limit
        yield from self.names[first:behind]
        defined = {(hit.path, hit.line) for hit in self.names[:behind]}
        yield from (hit for hit in self.lines[first:behind] if (hit.path, hit.line) not in defined)

    def behind(self, count: int) -> int:
        """How many there are behind the first `count` of each."""
        return self.more_names + len(self.lines[count:])


def _notes(queries: Sequence[str], found: Sequence[IndexAnswer[FoundSymbols]]) -> Iterator[str]:
    for query, answer in zip(queries, found, strict=True):
        if not answer.value.lines and not (answer.value.names and answer.value.names.found):
            guess = answer.value.did_you_mean
            suggestion = f' Did you mean "{guess}"?' if guess else ""
            yield clipped(f"Nothing found for {query!r}.{suggestion}", 160)


def _forms(budget: int, *, is_many: bool) -> list[ItemForm[Hit]]:
    width = min(300, budget)

    def by_query(shown: Sequence[Hit], lines: Any) -> str:
        parts = []
        for query, group in groupby(shown, key=lambda hit: hit.query):
            heading = [f"== {clipped(query, width // 4)}"] if is_many else []
            parts += [*heading, *lines([*group])]
        return "\n".join(parts)

    return [
        ItemForm("full", lambda shown: by_query(shown, lambda hits: _full(hits, width))),
        ItemForm(
            "signatures", lambda shown: by_query(shown, lambda hits: _short(hits, width // 2))
        ),
        ItemForm("names by file", lambda shown: by_query(shown, lambda hits: _names(hits, width))),
    ]


def _full(hits: Sequence[Hit], width: int) -> Iterator[str]:
    for hit in hits:
        if hit.is_text:
            continue
        yield clipped(f"{hit.path}:{hit.line}-{hit.end_line} {hit.kind} {hit.name}", width)
        for more in (hit.text, hit.doc):
            if more:
                yield clipped(f"    {more}", width)
    yield from _text_lines(hits, width)


def _short(hits: Sequence[Hit], width: int) -> Iterator[str]:
    for hit in hits:
        if not hit.is_text:
            yield clipped(f"{hit.path}:{hit.line} {hit.text or hit.name}", width)
    yield from _text_lines(hits, width)


def _text_lines(hits: Sequence[Hit], width: int) -> Iterator[str]:
    """Grouped by file."""
    texts = [hit for hit in hits if hit.is_text]
    for path, group in groupby(texts, key=lambda hit: hit.path):
        yield clipped(path, width)
        for hit in group:
            yield clipped(f"  {hit.line}: {hit.text}", width)


def _names(hits: Sequence[Hit], width: int) -> Iterator[str]:
    yield from places_by_file(((hit.path, f"{hit.name} {hit.line}".strip()) for hit in hits), width)
