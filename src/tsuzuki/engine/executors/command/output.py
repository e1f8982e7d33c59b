"""Splits the output of a process into log lines, in bounded memory however long its lines are."""

from collections.abc import Callable, Iterator

LINE_BYTES_MAX = 16 * 1024
TAIL_BYTES_MAX = 2 * 1024

LINE_COST_MIN = 64
"""What even an empty line counts as: stored, it takes more bytes than its text."""


class LineSplitter:
    """Splits a stream at its newlines; a line that is too long comes out in pieces."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> Iterator[str]:
        """The lines that `chunk` completes."""
        *complete, rest = (self._rest + chunk).split(b"\n")
        for line in complete:
            yield from map(_text, _pieces(line.removesuffix(b"\r")))
        *overlong, self._rest = _pieces(rest)
        yield from map(_text, overlong)

    def finish(self) -> Iterator[str]:
        """The last line, if it does not end with a newline."""
        if self._rest:
            yield _text(self._rest)
        self._rest = b""


class OutputStream:
    """One output of a process: its lines go to `deliver`, up to `bytes_max`.

    What comes after that is read and dropped unparsed, so that a flood costs next to nothing and does not
    block the process; one line says so. The tail of the output is kept either way.
    """

    def __init__(self, *, deliver: Callable[[str], None], bytes_max: int) -> None:
        self._deliver = deliver
        self._bytes_left = bytes_max
        self._is_full = False
        self._splitter = LineSplitter()
        self._tail = b""

    def feed(self, chunk: bytes) -> None:
        self._tail = (self._tail + chunk[-TAIL_BYTES_MAX:])[-TAIL_BYTES_MAX:]
        if self._is_full:
            return
        for line in self._splitter.feed(chunk):
            self._bytes_left -= max(len(line), LINE_COST_MIN)
            if self._bytes_left < 0:
                self._is_full = True
                self._deliver("[output limit reached: the rest was dropped]")
                return
            self._deliver(line)

    def finish(self) -> None:
        """The output has ended: deliver what is left."""
        if not self._is_full:
            for line in self._splitter.finish():
                self._deliver(line)

    def tail(self, characters_max: int) -> str:
        """The last lines written, as many whole ones as fit; or the end of the last one."""
        text = _text(self._tail).strip()
        if len(text) <= characters_max:
            return text
        text = text[-characters_max:]
        _, newline, whole = text.partition("\n")
        return whole if newline else text


def _pieces(line: bytes) -> list[bytes]:
    """`line` in parts that are short enough, cut between characters. At least one part."""
    pieces = []
    while len(line) > LINE_BYTES_MAX:
        cut = LINE_BYTES_MAX
        while cut > LINE_BYTES_MAX - 4 and line[cut] & 0b1100_0000 == 0b1000_0000:
            cut -= 1
        pieces.append(line[:cut])
        line = line[cut:]
    return [*pieces, line]


def _text(line: bytes) -> str:
    return line.decode("utf-8", errors="replace")
