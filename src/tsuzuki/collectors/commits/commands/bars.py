"""A chart as lines of text: under each month one bar per author."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
from rich.cells import cell_len, set_cell_size

from tsuzuki.model.visible_text import neutralise

if TYPE_CHECKING:
    from tsuzuki.collectors.commits.service.chart import Chart

COLOURS = ("blue", "yellow", "green", "magenta", "cyan", "red")
MONTH = "2024-02"
GAP = "  "


def bars(
    chart: "Chart", *, width: int, may_cut: bool, is_coloured: bool, block: str
) -> Iterator[str]:
    """Lines no wider than `width`. A long name is cut only if it may be; else the line is longer."""
    labels = [neutralise(series.author) for series in chart.series]
    most = max(max(series.commits) for series in chart.series)
    rest = width - len(MONTH) - len(str(most)) - 3 * len(GAP)
    label_width = max(map(cell_len, labels))
    if may_cut:
        label_width = max(1, min(label_width, width // 3, rest - 1))
    bar_width = max(1, rest - label_width)
    for number, month in enumerate(chart.months):
        lead = month
        for index, series in enumerate(chart.series):
            if count := series.commits[number]:
                bar = block * max(1, round(count / most * bar_width))
                if is_coloured:
                    bar = click.style(bar, fg=COLOURS[index % len(COLOURS)])
                yield GAP.join([lead, _fitted(labels[index], label_width), bar, str(count)])
                lead = " " * len(MONTH)
        if lead == month:
            yield f"{month}{GAP}-"


def _fitted(label: str, width: int) -> str:
    if cell_len(label) <= width:
        return set_cell_size(label, width)
    return set_cell_size(label, width - 1) + "…" if width > 1 else set_cell_size(label, width)
