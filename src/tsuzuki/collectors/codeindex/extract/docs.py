"""The first line of a definition's documentation: its docstring, or the comment right above it."""

import re
from typing import NamedTuple

from tsuzuki.collectors.codeindex.extract.positions import Positions
from tsuzuki.collectors.codeindex.extract.symbols import DOC_CHARACTERS_MAX

LINES_MAX = 60
"""A comment is followed upwards this far."""

_DOCSTRING = re.compile(
    rb"""[rRuU]?(?:\"{3}(.*?)\"{3}|'{3}(.*?)'{3}|"([^"\n]*)"|'([^'\n]*)')""", re.DOTALL
)
_MARKS = rb"/*#!-: \t\r\n"
_ATTRIBUTE = re.compile(rb"#\[.*\]|@[\w.:]+(?:\(.*\))?|\[.*\]|template\s*<.*>")
_MODIFIERS = re.compile(rb"[\w\s]*")


class _Style(NamedTuple):
    line: tuple[bytes, ...]
    """What starts a comment of one line."""
    block: tuple[bytes, bytes] | None


_STYLES = {
    "slash": _Style((b"//",), (b"/*", b"*/")),
    "hash": _Style((b"#",), None),
    "dash": _Style((b"--",), (b"/*", b"*/")),
    "markup": _Style((), (b"<!--", b"-->")),
}


def docstring(text: bytes, body: int) -> str:
    found = _DOCSTRING.match(text, body)
    if found is None:
        return ""
    words = next(group for group in found.groups() if group is not None)
    return _shortened(next((line.strip() for line in words.splitlines() if line.strip()), b""))


def comment_above(positions: Positions, start: int, line: int, style: str) -> str:
    """The first line with words of the comment right above `start`, which is on `line`; only words and attributes
    may stand between."""
    known = _STYLES.get(style)
    before = positions.line_text(line)[: start - positions.line_start(line)]
    if known is None or line < 2 or not _MODIFIERS.fullmatch(before):
        return ""
    above = line - 1
    while above > 1 and _ATTRIBUTE.fullmatch(positions.line_text(above).strip()):
        above -= 1
    first = b""
    for written in _comment_upwards(positions, above, known):
        first = written.strip(_MARKS).removesuffix(b"*/").rstrip(_MARKS) or first
    return _shortened(first)


def _comment_upwards(positions: Positions, above: int, style: _Style) -> list[bytes]:
    """The lines of the comment that ends on `above`, last first."""
    lines: list[bytes] = []
    last = positions.line_text(above).strip()
    in_block = bool(style.block and last.endswith(style.block[1]))
    for number in range(above, max(above - LINES_MAX, 0), -1):
        written = positions.line_text(number).strip()
        if not in_block and not (style.line and written.startswith(style.line)):
            break
        lines.append(written)
        if in_block and style.block and style.block[0] in written:
            # Code before the comment on its line: the comment is that line's own.
            return lines if written.startswith(style.block[0]) else []
    return lines


def _shortened(words: bytes) -> str:
    return words.decode("utf-8", "replace")[:DOC_CHARACTERS_MAX]
