"""`code_outline`: the symbols of a file as a tree, or of a folder the files with their outermost symbols."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from tsuzuki.collectors.codeindex.service.answers import OutlineEntry
from tsuzuki.collectors.codeindex.tools.indexes import index_part, indexes_of
from tsuzuki.collectors.codeindex.tools.texts import places_by_file
from tsuzuki.mcp.answer import ToolAnswer
from tsuzuki.mcp.paging import ItemForm, McpPage, page_answer
from tsuzuki.mcp.tokens import clipped
from tsuzuki.mcp.tool import ToolCall


@dataclass(frozen=True)
class ListedSymbol:
    """A symbol in a list."""

    entry: OutlineEntry

    @property
    def path(self) -> str:
        return self.entry.symbol.path

    @property
    def key(self) -> str:
        symbol = self.entry.symbol
        return "\0".join((symbol.path, symbol.name_path, symbol.kind, symbol.signature))


def outline(call: ToolCall) -> ToolAnswer:
    indexes = indexes_of(call.state)
    answer = indexes.ask(
        call,
        indexes.tree(call),
        lambda answers: answers.outline(call.get("file", ""), depth=call.get("depth")),
    )
    entries = [ListedSymbol(one) for one in answer.value]
    page = McpPage(
        index=index_part(answer.index),
        items=entries,
        forms=_forms(call.budget),
        total=len(entries),
        empty="No symbols.",
    )
    return page_answer(call, page)


def _forms(budget: int) -> list[ItemForm[ListedSymbol]]:
    width = min(300, budget)
    return [
        ItemForm("full", lambda shown: "\n".join(_tree(shown, width, with_doc=True))),
        ItemForm("signatures", lambda shown: "\n".join(_tree(shown, width // 2, with_doc=False))),
        ItemForm("names by file", lambda shown: "\n".join(_by_file(shown, width))),
    ]


def _tree(shown: Sequence[ListedSymbol], width: int, *, with_doc: bool) -> Iterator[str]:
    for path, group in groupby(shown, key=lambda one: one.path):
        yield clipped(path, width)
        for one in group:
            symbol = one.entry.symbol
            lines = f"{symbol.line}-{symbol.end_line}" if with_doc else str(symbol.line)
            indent = "  " * (one.entry.depth + 1)
            yield clipped(f"{indent}{lines} {symbol.signature or symbol.name}", width)
            if with_doc and symbol.doc:
                yield clipped(f"{indent}  # {symbol.doc}", width)


def _by_file(shown: Sequence[ListedSymbol], width: int) -> Iterator[str]:
    return places_by_file(
        ((one.path, f"{one.entry.symbol.name_path} {one.entry.symbol.line}") for one in shown),
        width,
    )
