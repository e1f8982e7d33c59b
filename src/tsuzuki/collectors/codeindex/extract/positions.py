"""Byte offsets to lines and columns.

Only offsets are asked of a node: its points cost more, and `Point.row` of tree-sitter 0.26 gives back a reference that
it does not own, which ends the process after some ten thousand calls.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import accumulate


class Positions:
    def __init__(self, text: bytes) -> None:
        self._text = text
        self._ascii = text.isascii()
        # A line feed at the end starts an empty line.
        self._starts = [0, *accumulate(map(len, BytesIO(text)))]
        if text and not text.endswith(b"\n"):
            self._starts.pop()
        self._known = (0, 0)

    def line(self, offset: int) -> int:
        return bisect_right(self._starts, offset)

    def line_start(self, line: int) -> int:
        return self._starts[line - 1]

    def line_text(self, line: int) -> bytes:
        end = self._starts[line] if line < len(self._starts) else len(self._text)
        return self._text[self._starts[line - 1] : end]

    def end_line(self, start: int, end: int) -> int:
        """The line of the last byte that is not white space."""
        while end - 1 > start and self._text[end - 1] in b" \t\r\n":
            end -= 1
        return bisect_right(self._starts, max(start, end - 1))

    def places(self, offsets: Sequence[int]) -> Iterator[tuple[int, int]]:
        """The places of many ascending offsets."""
        if not self._ascii:
            yield from map(self.place, offsets)
            return
        starts, first = self._starts, 0
        for offset in offsets:
            first = bisect_right(starts, offset, first)
            yield first, offset - starts[first - 1]

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column. Asked in order of offsets it stays linear, on a line of any length."""
        line = bisect_right(self._starts, offset)
        start = self._starts[line - 1]
        if self._ascii:
            return line, offset - start
        known, column = self._known
        if not start <= known <= offset:
            known, column = start, 0
        column += len(self._text[known:offset].decode("utf-8", "replace"))
        self._known = (offset, column)
        return line, column
