"""Tables on a terminal: coloured if allowed, folded to its width, never cut.

Cells are handed over as finished text, so that nothing in the data is taken for markup.
"""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.output import Column


def table_of_rows(rows: Sequence[object], columns: Sequence[Column], invocation: Invocation) -> str:
    """One row each under a row of headings."""
    table = _borderless(show_header=True)
    for column in columns:
        table.add_column(Text(column.heading), justify=column.align, overflow="fold")
    for row in rows:
        table.add_row(*(_cell(column, row) for column in columns))
    return _drawn(table, invocation)


def table_of_object(data: object, columns: Sequence[Column], invocation: Invocation) -> str:
    """One row per field: its name, then its value."""
    table = _borderless(show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for column in columns:
        table.add_row(Text(column.heading, "bold"), _cell(column, data))
    return _drawn(table, invocation)


def _cell(column: Column, row: object) -> Text:
    return Text(column.cell(row), column.cell_style(row))


def _borderless(*, show_header: bool) -> Table:
    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=show_header)


def _drawn(table: Table, invocation: Invocation) -> str:
    console = Console(color_system="auto" if invocation.color else None, highlight=False)
    with console.capture() as captured:
        console.print(table)
    return captured.get().rstrip("\n")
