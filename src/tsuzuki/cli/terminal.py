"""Tables on a terminal: coloured if allowed, and folded to its width; cut only in columns that shrink.

Cells are handed over as finished text, so that nothing in the data is taken for markup.
"""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.output import Column
from tsuzuki.cli.tables import GAP

SHRUNK_MIN = 8
"""A column is not cut to fewer characters than these, even if the line becomes too long."""


def table_of_rows(rows: Sequence[object], columns: Sequence[Column], invocation: Invocation) -> str:
    """One row each under a row of headings."""
    table, console = _borderless(show_header=True), _console(invocation)
    widths = _widths(rows, columns, console.width)
    for column, width in zip(columns, widths, strict=True):
        table.add_column(
            Text(column.heading),
            justify=column.align,
            overflow="ellipsis" if column.shrinks else "fold",
            no_wrap=width is not None,
            width=width,
        )
    for row in rows:
        table.add_row(*(_cell(column, row) for column in columns))
    return _drawn(table, console)


def _widths(
    rows: Sequence[object], columns: Sequence[Column], available: int
) -> Sequence[int | None]:
    """One line per row if any column shrinks: the widest of these gives way first. None: as rich likes."""
    if not any(column.shrinks for column in columns):
        return [None] * len(columns)
    widths = [
        max(cell_len(column.heading), *(cell_len(column.cell(row)) for row in rows))
        for column in columns
    ]
    shrinking = [place for place, column in enumerate(columns) if column.shrinks]
    room = available - (len(columns) - 1) * len(GAP)
    while sum(widths) > room and max(widths[place] for place in shrinking) > SHRUNK_MIN:
        widest = max(shrinking, key=lambda place: widths[place])
        widths[widest] -= 1
    return widths


def table_of_object(data: object, columns: Sequence[Column], invocation: Invocation) -> str:
    """One row per field: its name, then its value."""
    table, console = _borderless(show_header=False), _console(invocation)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for column in columns:
        table.add_row(Text(column.heading, "bold"), _cell(column, data))
    return _drawn(table, console)


def _cell(column: Column, row: object) -> Text:
    return Text(column.cell(row), column.cell_style(row))


def _borderless(*, show_header: bool) -> Table:
    return Table(box=None, pad_edge=False, padding=(0, len(GAP), 0, 0), show_header=show_header)


def _console(invocation: Invocation) -> Console:
    return Console(color_system="auto" if invocation.color else None, highlight=False)


def _drawn(table: Table, console: Console) -> str:
    with console.capture() as captured:
        console.print(table)
    return captured.get().rstrip("\n")
