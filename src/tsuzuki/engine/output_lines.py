"""From the output of a process to lines of a log. A line that is too long comes out in pieces."""

from tsuzuki.model.run_limits import LOG_LINE_BYTES_MAX


def split_lines(output: bytes) -> list[bytes]:
    """The lines of an output that ends with a whole line, without its last newline."""
    lines = output.split(b"\n")
    if b"\r" in output:
        lines = [line.removesuffix(b"\r") for line in lines]
    if max(map(len, lines)) <= LOG_LINE_BYTES_MAX:
        return lines
    return [piece for line in lines for piece in pieces_of(line)]


def pieces_of(line: bytes) -> list[bytes]:
    """`line` in parts that are short enough, cut between characters. At least one part."""
    pieces, start = [], 0
    while len(line) - start > LOG_LINE_BYTES_MAX:
        cut = start + LOG_LINE_BYTES_MAX
        cut_min = cut - 4
        while cut > cut_min and line[cut] & 0b1100_0000 == 0b1000_0000:
            cut -= 1
        pieces.append(line[start:cut])
        start = cut
    return [*pieces, line[start:]]


def text_of(line: bytes) -> str:
    return line.decode("utf-8", errors="replace")
