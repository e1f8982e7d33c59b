"""`code_map`: the most used files of a tree, with their most used definitions. The same index gives the same map."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tsuzuki.collectors.codeindex.service.answers import RankedFile
from tsuzuki.collectors.codeindex.tools.indexes import index_part, indexes_of
from tsuzuki.collectors.codeindex.tools.texts import listed_texts
from tsuzuki.mcp.answer import ToolAnswer
from tsuzuki.mcp.paging import ItemForm, McpCursor, McpPage, page_answer
from tsuzuki.mcp.tokens import clipped
from tsuzuki.mcp.tool import ToolCall

FILES_OF_PAGE = 100
"""More than the largest budget has room for, with definitions."""


@dataclass(frozen=True)
class MapFile:
    """A file in the list."""

    file: RankedFile

    @property
    def path(self) -> str:
        return self.file.path

    @property
    def key(self) -> str:
        return self.file.path


def code_map(call: ToolCall) -> ToolAnswer:
    """Files from the most used on: fewer of them with definitions say more than many without."""
    indexes = indexes_of(call.state)
    count = McpCursor.of(call).offset + FILES_OF_PAGE
    answer = indexes.ask(
        call,
        indexes.tree(call),
        lambda answers: answers.map(focus=listed_texts(call.get("focus")), limit=count + 1),
    )
    files = [MapFile(one) for one in answer.value]
    width = min(300, call.budget)
    page = McpPage(
        index=index_part(answer.index),
        items=files[:count],
        forms=[ItemForm("full", lambda shown: "\n".join(_lines(shown, width)))],
        total=len(files),
        is_total_exact=len(files) <= count,
        empty="No symbols.",
    )
    return page_answer(call, page)


def _lines(shown: Sequence[MapFile], width: int) -> Iterator[str]:
    for one in shown:
        yield clipped(f"{one.path} ({100 * one.file.rank:.1f} %)", width)
        for symbol in one.file.symbols:
            inside = f"{symbol.container}/ " if symbol.container else ""
            yield clipped(f"  {symbol.line} {inside}{symbol.signature or symbol.name}", width)
