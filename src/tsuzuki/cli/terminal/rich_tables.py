"""Tables on a terminal: coloured if allowed, and folded to its width; cut only in columns that shrink.

Where a row does not fit into a line, times give way first: today's has no day, then no seconds. Cells are handed over
as finished text, so that nothing in the data is taken for markup.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.terminal.formatting import moment_of, short_time
from tsuzuki.cli.terminal.output import Column
from tsuzuki.cli.terminal.tables import GAP
from tsuzuki.model.clock import SystemClock

SHRUNK_MIN = 8
"""A column is not cut to fewer characters than these, even if the line becomes too long."""


def table_of_rows(rows: Sequence[object], columns: Sequence[Column], invocation: Invocation) -> str:
    """One row each under a row of headings."""
    table, console = _borderless(show_header=True), _console(invocation)
    is_cut = any(column.shrinks for column in columns)
    room = console.width - (len(columns) - 1) * len(GAP)
    times = {place for place, column in enumerate(columns) if _has_times(column, rows)}
    columns = _with_times_that_fit(rows, columns, room)
    widths_of = _cut_widths if is_cut else partial(_folded_widths, whole=times)
    widths = widths_of(rows, columns, room)
    for column, width in zip(columns, widths, strict=True):
        table.add_column(
            Text(column.heading),
            justify=column.align,
            overflow="ellipsis" if column.shrinks else "fold",
            no_wrap=is_cut,
            width=width,
        )
    for row in rows:
        table.add_row(*(_cell(column, row) for column in columns))
    return _drawn(table, console)


def _with_times_that_fit(
    rows: Sequence[object], columns: Sequence[Column], room: int
) -> Sequence[Column]:
    """The columns as they are if each row fits into a line. Otherwise short times, and those to the minute if words
    would be broken even so."""
    if sum(max(map(cell_len, _texts(column, rows))) for column in columns) <= room:
        return columns
    short = [_with_short_times(column, rows, seconds=True) for column in columns]
    least = [
        SHRUNK_MIN if column.shrinks else _longest_word(_texts(column, rows)) for column in short
    ]
    if sum(least) <= room:
        return short
    return [_with_short_times(column, rows, seconds=False) for column in columns]


def _with_short_times(column: Column, rows: Sequence[object], *, seconds: bool) -> Column:
    """The same column if it has no times."""
    if not _has_times(column, rows):
        return column
    short = short_time(SystemClock().now(), seconds=seconds)

    def cell(value: Any) -> str:
        moment = moment_of(value, column.format)
        return short(moment) if moment else column.format(value)

    return replace(column, format=cell)


def _has_times(column: Column, rows: Sequence[object]) -> bool:
    return any(moment_of(column.value_of(row), column.format) for row in rows)


def _cut_widths(rows: Sequence[object], columns: Sequence[Column], room: int) -> list[int]:
    """One line per row: of the columns that shrink, the widest gives way first."""
    widths = [max(map(cell_len, _texts(column, rows))) for column in columns]
    shrinking = {place: SHRUNK_MIN for place, column in enumerate(columns) if column.shrinks}
    return _narrowed(widths, room, shrinking)


def _folded_widths(
    rows: Sequence[object], columns: Sequence[Column], room: int, *, whole: Collection[int]
) -> list[int]:
    """Sentences give way first, between their words; then the columns that are better left `whole`; then words, of
    the first column last."""
    texts = [_texts(column, rows) for column in columns]
    widths = [max(map(cell_len, cells)) for cells in texts]
    words = dict(enumerate(map(_longest_word, texts)))
    sentences = {place: width for place, width in words.items() if place not in whole}
    widths = _narrowed(widths, room, sentences)
    widths = _narrowed(widths, room, words)
    widths = _narrowed(widths, room, dict.fromkeys(range(1, len(columns)), SHRUNK_MIN))
    return _narrowed(widths, room, dict.fromkeys(range(len(columns)), 1))


def _narrowed(widths: list[int], room: int, least: Mapping[int, int]) -> list[int]:
    """Take from the widest of the columns in `least`, down to these widths, until all fit into the `room`."""
    result = list(widths)
    while sum(result) > room:
        wide = [place for place, width in least.items() if result[place] > width]
        if not wide:
            break
        result[max(wide, key=lambda place: result[place])] -= 1
    return result


def _longest_word(texts: Sequence[str]) -> int:
    return max((cell_len(word) for text in texts for word in text.split()), default=1)


def _texts(column: Column, rows: Sequence[object]) -> list[str]:
    return [column.heading, *(column.cell(row) for row in rows)]


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
