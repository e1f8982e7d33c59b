"""Lines of text by words or a regular expression, always from the files of now: `git grep`, or a scan of our own.

Where git does not know the tree, or was built without Perl-compatible expressions, the files are read by us.
"""

import re
from collections.abc import Callable, Generator, Iterable
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeAlias

from tsuzuki.collectors.codeindex.answers.source_file import read_source
from tsuzuki.collectors.codeindex.tree.git import LIST_SECONDS, GitUnusable, git_process
from tsuzuki.model.errors import UsageError

LINE_LENGTH_MAX = 300
BINARY_BYTES = 8000
SCANNED_BYTES_MAX = 4 * 2**20
CONFIRMED_BYTES_MAX = 64 * 2**20
_NOTHING_FOUND = 1
_ANY_LINE_END = "(*ANYCRLF)"
"""For PCRE: `$` stands before a carriage return at the end of a line too."""


@dataclass(frozen=True, kw_only=True)
class FoundLine:
    """A line that matches. The column counts characters from 0; a long line is cut around the match."""

    path: str
    line: int
    column: int
    text: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class TextQuery:
    """What is asked for. Without `is_regex` the text is looked for as it is."""

    text: str
    is_regex: bool = False
    ignore_case: bool = False
    path_filter: Callable[[str], bool] = lambda _path: True

    def checked(self) -> Self:
        """The same, if its expression can be used."""
        _ = self.expression
        return self

    @property
    def expression(self) -> re.Pattern[str]:
        try:
            return re.compile(
                self.text if self.is_regex else re.escape(self.text),
                re.IGNORECASE if self.ignore_case else 0,
            )
        except re.error as problem:
            raise UsageError(
                f"invalid regular expression {self.text!r}: {problem}",
                hint="Leave out --regex to search for the literal text.",
                code="bad_regex",
            ) from None


FoundLines: TypeAlias = Generator[FoundLine, None, None]


def search_text(
    root: Path, query: TextQuery, *, limit: int, scanned: Iterable[str], listed: Iterable[str]
) -> tuple[list[FoundLine], bool]:
    """The first `limit` matching lines of the tree's files, and whether there are more. `listed` is what git lists."""
    expression = query.expression
    paths = [path for path in scanned if query.path_filter(path)]
    try:
        return _taken(_by_git_and_scan(root, query, expression, paths, {*listed}), limit)
    except GitUnusable:
        return _taken(_scan(root, expression, paths), limit)


def _by_git_and_scan(
    root: Path, query: TextQuery, expression: re.Pattern[str], paths: list[str], listed: set[str]
) -> FoundLines:
    """By git what git lists; by a scan the rest, such as files of another repository inside the tree."""
    wanted = {*paths}
    if not listed.isdisjoint(wanted):
        rows = (row for row in _git_grep(root, query) if row.path in wanted)
        for path, of_file in groupby(rows, key=lambda row: row.path):
            yield from _confirmed(root, path, of_file, expression)
    yield from _scan(root, expression, [path for path in paths if path not in listed])


def _taken(lines: FoundLines, limit: int) -> tuple[list[FoundLine], bool]:
    found: list[FoundLine] = []
    for line in lines:
        if len(found) == limit:
            lines.close()
            return found, True
        found.append(line)
    return found, False


class _GrepRow(NamedTuple):
    """A line as git found it."""

    path: str
    line: int
    text: bytes


def _git_grep(root: Path, query: TextQuery) -> Generator[_GrepRow, None, None]:
    """Lines as git finds them. A row is a path, a number and a text with NUL between; a path may have line feeds."""
    with git_process(
        root, *_grep_arguments(query), seconds=LIST_SECONDS, locale="C.UTF-8"
    ) as process:
        assert process.stdout  # noqa: S101 - we asked for a pipe
        row = b""
        for part in process.stdout:
            row += part
            if row.count(b"\0") >= 2:
                yield _grep_row(row)
                row = b""
        if process.wait() not in (0, _NOTHING_FOUND):
            raise GitUnusable


def _grep_arguments(query: TextQuery) -> list[str]:
    return [
        *("grep", "--no-color", "--no-column", "--no-full-name", "--untracked", "-I", "-n", "-z"),
        *(("-i",) if query.ignore_case else ()),
        "-P" if query.is_regex else "-F",
        *("-e", f"{_ANY_LINE_END}{query.text}" if query.is_regex else query.text),
    ]


def _grep_row(row: bytes) -> _GrepRow:
    path, number, text = row.rstrip(b"\n").split(b"\0", 2)
    return _GrepRow(path.decode("utf-8", "surrogateescape"), int(number), text)


def _confirmed(
    root: Path, path: str, rows: Iterable[_GrepRow], expression: re.Pattern[str]
) -> FoundLines:
    """The lines that we find in the file too. Git follows a link that has replaced a folder; we do not."""
    source = read_source(root, path, bytes_max=CONFIRMED_BYTES_MAX)
    for row in rows:
        if source and row.line <= source.line_count and source.lines[row.line - 1] == row.text:
            yield _found_line(path, row.line, source.line(row.line), expression)


def _scan(root: Path, expression: re.Pattern[str], paths: Iterable[str]) -> FoundLines:
    for path in paths:
        source = read_source(root, path, bytes_max=SCANNED_BYTES_MAX)
        if not source or b"\0" in source.content[:BINARY_BYTES]:
            continue
        for number in range(1, source.line_count + 1):
            text = source.line(number)
            if expression.search(text):
                yield _found_line(path, number, text, expression)


def _found_line(path: str, line: int, text: str, expression: re.Pattern[str]) -> FoundLine:
    match = expression.search(text)
    column = match.start() if match else 0
    start = max(0, column - LINE_LENGTH_MAX // 2) if len(text) > LINE_LENGTH_MAX else 0
    return FoundLine(
        path=path, line=line, column=column, text=text[start : start + LINE_LENGTH_MAX]
    )
