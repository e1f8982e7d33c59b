"""The log of one run within its size limit: its first lines are stored as they come, the last ones with its end.

Nothing is missing from a log within the limit. Of a longer one, what lies between is dropped, and one line says
how much that is. The last lines are kept in memory until the run ends: a worker that is lost loses them.
"""

from collections import deque
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from tsuzuki.engine.output_lines import pieces_of, split_lines, text_of
from tsuzuki.model.run_limits import LOG_LINE_BYTES_MAX
from tsuzuki.model.storable_text import storable
from tsuzuki.store.logs import LogLine

TAIL_FRACTION = 5
TAIL_BYTES_MAX = 512 * 1024
"""The last lines get a fifth of the limit, and at most so much: they are kept in memory for each run."""

LINE_COST_MIN = 64
"""What even an empty line counts as: stored, it takes more bytes than its text."""


class _Block(NamedTuple):
    """Lines that wait for the end of the run. Of a process they are bytes, not split yet: most are dropped."""

    at: datetime
    stream: str
    content: str | bytes
    lines: int
    size: int
    cost: int


class _KeptLine(NamedTuple):
    at: datetime
    stream: str
    body: str
    size: int
    cost: int


class RunLog:
    """Not thread-safe."""

    def __init__(self) -> None:
        self._seq = 0
        self._cost = 0
        self._is_head_full = False
        self._tail: deque[_Block] = deque()
        self._tail_cost = 0
        self._missing_lines = 0
        self._missing_bytes = 0

    def add(self, at: datetime, stream: str, content: str | bytes, *, cap: int) -> list[LogLine]:
        """Add a line, or the output of a process; returns the lines to be stored now. A line that is too long becomes
        several."""
        if isinstance(content, str) and _is_too_long(content):
            pieces = pieces_of(storable(content).encode("utf-8"))
            return [line for one in pieces for line in self._add(at, stream, text_of(one), cap)]
        return self._add(at, stream, content, cap)

    def _add(self, at: datetime, stream: str, content: str | bytes, cap: int) -> list[LogLine]:
        if self._is_head_full:
            return self._add_to_tail(at, stream, content, cap)
        if isinstance(content, str):
            if not self._fits(_size(content), cap):
                return self._add_to_tail(at, stream, content, cap)
            return [self._line(at, stream, content)]
        stored: list[LogLine] = []
        lines = split_lines(content)
        for number, line in enumerate(lines):
            if not self._fits(len(line) + 1, cap):
                rest = b"\n".join(lines[number:])
                return stored + self._add_to_tail(at, stream, rest, cap)
            stored.append(self._line(at, stream, text_of(line)))
        return stored

    def end(self, at: datetime, *, cap: int) -> list[LogLine]:
        """The run has ended: the lines that are still to be stored."""
        kept = self._kept_lines(cap)
        notice = []
        if self._missing_lines and kept:
            missing = f"{self._missing_lines} lines ({self._missing_bytes} bytes) are missing here"
            notice = [self._line(at, "log", missing)]
        self._tail.clear()
        return notice + [self._line(line.at, line.stream, line.body) for line in kept]

    def _fits(self, size: int, cap: int) -> bool:
        """Whether a line is one of the first ones; then it is counted."""
        cost = max(size, LINE_COST_MIN)
        self._is_head_full = self._cost + cost > cap - _tail_max(cap)
        self._cost += 0 if self._is_head_full else cost
        return not self._is_head_full

    def _add_to_tail(
        self, at: datetime, stream: str, content: str | bytes, cap: int
    ) -> list[LogLine]:
        block = _block(at, stream, content)
        self._tail.append(block)
        self._tail_cost += block.cost
        was_whole = not self._missing_lines
        # A block is dropped when what follows it is enough; the exact cut is made once, at the end.
        while self._tail_cost - self._tail[0].cost >= _tail_max(cap):
            dropped = self._tail.popleft()
            self._tail_cost -= dropped.cost
            self._missing_lines += dropped.lines
            self._missing_bytes += dropped.size
        if was_whole and self._missing_lines:
            limit = f"the log reached its limit of {cap} bytes; after this, only"
            return [self._line(at, "log", f"{limit} the last lines are stored when the run ends")]
        return []

    def _kept_lines(self, cap: int) -> list[_KeptLine]:
        lines = [line for block in self._tail for line in _lines_of(block)]
        cost, first = sum(line.cost for line in lines), 0
        while cost > _tail_max(cap) and first < len(lines) - 1:
            cost -= lines[first].cost
            first += 1
        self._missing_lines += first
        self._missing_bytes += sum(line.size for line in islice(lines, first))
        return lines[first:]

    def _line(self, at: datetime, stream: str, body: str) -> LogLine:
        self._seq += 1
        return LogLine(seq=self._seq, at=at, stream=stream, body=body)


def _tail_max(cap: int) -> int:
    return min(cap // TAIL_FRACTION, TAIL_BYTES_MAX)


def _block(at: datetime, stream: str, content: str | bytes) -> _Block:
    size = _size(content)
    lines = 1 if isinstance(content, str) else content.count(b"\n") + 1
    return _Block(at, stream, content, lines, size, max(size, lines * LINE_COST_MIN))


def _size(content: str | bytes) -> int:
    return 1 + len(storable(content).encode("utf-8") if isinstance(content, str) else content)


def _is_too_long(line: str) -> bool:
    return len(line) > LOG_LINE_BYTES_MAX // 4 and _size(line) > LOG_LINE_BYTES_MAX + 1


def _lines_of(block: _Block) -> Iterator[_KeptLine]:
    if isinstance(block.content, str):
        yield _KeptLine(block.at, block.stream, block.content, block.size, block.cost)
        return
    for body in split_lines(block.content):
        size = len(body) + 1
        yield _KeptLine(block.at, block.stream, text_of(body), size, max(size, LINE_COST_MIN))
