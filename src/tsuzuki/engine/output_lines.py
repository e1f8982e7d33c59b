"""From the output of a process to lines of a log. A line that is too long comes out in pieces."""

LINE_BYTES_MAX = 16 * 1024


def split_lines(output: bytes) -> list[bytes]:
    """The lines of an output that ends with a whole line, without its last newline."""
    lines = output.split(b"\n")
    if b"\r" in output:
        lines = [line.removesuffix(b"\r") for line in lines]
    if max(map(len, lines)) <= LINE_BYTES_MAX:
        return lines
    return [piece for line in lines for piece in pieces_of(line)]


def pieces_of(line: bytes) -> list[bytes]:
    """`line` in parts that are short enough, cut between characters. At least one part."""
    pieces = []
    while len(line) > LINE_BYTES_MAX:
        cut = LINE_BYTES_MAX
        while cut > LINE_BYTES_MAX - 4 and line[cut] & 0b1100_0000 == 0b1000_0000:
            cut -= 1
        pieces.append(line[:cut])
        line = line[cut:]
    return [*pieces, line]


def text_of(line: bytes) -> str:
    return line.decode("utf-8", errors="replace")
