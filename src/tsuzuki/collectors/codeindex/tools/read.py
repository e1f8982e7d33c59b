"""`code_read`: source with line numbers, as it is now."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from tsuzuki.collectors.codeindex.service.answers import Excerpt
from tsuzuki.collectors.codeindex.tools.indexes import index_part, indexes_of
from tsuzuki.collectors.codeindex.tools.refusals import hint_of, without_commands
from tsuzuki.collectors.codeindex.tools.texts import listed_texts
from tsuzuki.mcp.answer import ToolAnswer
from tsuzuki.mcp.arguments import next_call
from tsuzuki.mcp.paging import ItemForm, McpPage, page_answer
from tsuzuki.mcp.tokens import clipped
from tsuzuki.mcp.tool import ToolCall
from tsuzuki.model.errors import TsuzukiError, UsageError

LINE_QUARTERS_MAX = 1_200


@dataclass(frozen=True, kw_only=True)
class SourceLine:
    """A line of an excerpt."""

    excerpt: Excerpt
    number: int
    text: str

    @property
    def path(self) -> str:
        return self.excerpt.path

    @property
    def key(self) -> str:
        """Without its number: lines that come or go above it do not matter."""
        name = self.excerpt.symbol.name_path if self.excerpt.symbol else ""
        return "\0".join((self.path, name, self.text))

    @property
    def heading(self) -> str:
        symbol = self.excerpt.symbol
        words = f" {symbol.kind} {symbol.name_path}" if symbol else ""
        return f"{self.path}:{self.excerpt.start}-{self.excerpt.end}{words}"


def read(call: ToolCall) -> ToolAnswer:
    """Symbols, or a file; what cannot be read is said beside what can."""
    indexes = indexes_of(call.state)
    tree = indexes.tree(call)
    wanted, lines = _wanted(call, tree.scope if (tree.root / tree.scope).is_file() else "")
    with indexes.answers(call, tree) as answers:
        answer = answers.read_each(wanted, lines=lines)
    excerpts = [one for one in answer.value if isinstance(one, Excerpt)]
    problems = [one for one in answer.value if isinstance(one, TsuzukiError)]
    may_come = answer.index.percent is not None and _are_unknown(problems)
    if problems and not excerpts and not may_come:
        problems[0].hint = hint_of(problems[0], call)
        raise problems[0]
    page = McpPage(
        index=index_part(answer.index),
        items=[*_lines(excerpts)],
        forms=[ItemForm("full", lambda shown: "\n".join(_numbered(shown, call.budget)))],
        total=sum(len(one.lines) for one in excerpts),
        notes=[*_notes(excerpts, problems, width=min(600, call.budget // 2))],
        counted=_ranges,
        empty="",
    )
    return page_answer(call, page)


def _wanted(call: ToolCall, file_of_path: str) -> tuple[list[str], str | None]:
    """What to read, and which lines of it."""
    symbols = listed_texts(call.get("symbols"))
    file, lines = call.get("file") or file_of_path, call.get("lines")
    if file and symbols:
        return [f"{file}:{one}" for one in symbols], None
    if file:
        return [file], lines
    if not symbols:
        raise UsageError(
            'code_read requires "symbols", or "file" with "lines".',
            hint=f"Next: {next_call(call.tool)}",
            code="bad_arguments",
        )
    if lines and len(symbols) > 1:
        raise UsageError(
            '"lines" requires "file".',
            hint=f"Next: {next_call(call.tool, {'file': symbols[0], 'lines': lines})}",
            code="bad_arguments",
        )
    return symbols, lines


def _are_unknown(problems: Sequence[TsuzukiError]) -> bool:
    return all(one.specific_code == "no_such_symbol" for one in problems)


def _notes(
    excerpts: Sequence[Excerpt], problems: Sequence[TsuzukiError], *, width: int
) -> Iterator[str]:
    """About what is not shown, or not in full."""
    for problem in problems:
        hint = "\n".join(without_commands(problem.hint or ""))
        yield clipped(f"{problem.specific_code}: {problem.message}. {hint}".rstrip(), width)
    outlined = [one.symbol.name_path for one in excerpts if one.is_outline and one.symbol]
    if outlined:
        names = ", ".join(outlined)
        yield clipped(f"Shown as members only: {names}. Read one as Class/member.", width)


def _lines(excerpts: Sequence[Excerpt]) -> Iterator[SourceLine]:
    for excerpt in excerpts:
        for number, text in excerpt.lines:
            yield SourceLine(excerpt=excerpt, number=number, text=text)


def _numbered(shown: Sequence[SourceLine], budget: int) -> Iterator[str]:
    width = min(LINE_QUARTERS_MAX, 2 * budget)
    for heading, group in groupby(shown, key=lambda line: line.heading):
        yield clipped(heading, width // 2)
        for line in group:
            yield f"{line.number}  {clipped(line.text, width)}".rstrip()


def _ranges(rest: Sequence[SourceLine]) -> str:
    """`Not shown: src/app.py:40-160.`"""
    parts = []
    for excerpt, group in groupby(rest, key=lambda line: line.excerpt):
        numbers = [line.number for line in group]
        parts.append(f"{excerpt.path}:{numbers[0]}-{numbers[-1]}")
    return f"Not shown: {', '.join(parts)}." if parts else ""
