"""Tables as text: aligned lines of full width, except on a terminal."""

import sys
from collections.abc import Sequence

from rich.cells import cell_len

from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.terminal.output import Column, is_terminal

GAP = "  "


def of_rows(rows: Sequence[object], columns: Sequence[Column], invocation: Invocation) -> str:
    """One line per row under a line of headings."""
    if is_terminal(sys.stdout):
        from tsuzuki.cli.terminal import rich_tables  # noqa: PLC0415 - only a terminal pays for rich

        return rich_tables.table_of_rows(rows, columns, invocation)
    headings = [column.heading for column in columns]
    cells = [[column.cell(row) for column in columns] for row in rows]
    return _aligned([headings, *cells], [column.align for column in columns])


def of_object(data: object, columns: Sequence[Column], invocation: Invocation) -> str:
    """One line per field: its name, then its value."""
    if is_terminal(sys.stdout):
        from tsuzuki.cli.terminal import rich_tables  # noqa: PLC0415 - only a terminal pays for rich

        return rich_tables.table_of_object(data, columns, invocation)
    return _aligned([[column.heading, column.cell(data)] for column in columns], ["left", "left"])


def _aligned(lines: Sequence[Sequence[str]], aligns: Sequence[str]) -> str:
    """Columns as wide as their widest cell; a wide character counts two, no line ends in blanks."""
    widths = [max(map(cell_len, cells)) for cells in zip(*lines, strict=True)]
    return "\n".join(GAP.join(map(_padded, cells, widths, aligns)).rstrip(" ") for cells in lines)


def _padded(text: str, width: int, align: str) -> str:
    blanks = " " * (width - cell_len(text))
    return text + blanks if align == "left" else blanks + text
