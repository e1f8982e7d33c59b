"""A chart as an SVG picture: a column per month, stacked by author. Each value is one `rect` with a
`title`; there is no script and no style sheet."""

import re
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from tsuzuki.model.visible_text import neutralise

if TYPE_CHECKING:
    from tsuzuki.collectors.commits.service.chart import Chart

TITLE = "Commits per month and author"
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a800")
OTHERS_COLOUR = "#888888"
_NOT_XML = re.compile("[\ufffe\uffff]")

LEFT, TOP, RIGHT = 60, 50, 20
PLOT_HEIGHT = 240
MONTH_WIDTH, COLUMN_WIDTH = 60, 40
LEGEND_LINE = 22
WIDTH_MIN = 420


def svg(chart: "Chart") -> str:
    """The whole document."""
    width = max(WIDTH_MIN, LEFT + MONTH_WIDTH * len(chart.months) + RIGHT)
    height = TOP + PLOT_HEIGHT + 50 + LEGEND_LINE * len(chart.series)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
            f' viewBox="0 0 {width} {height}" role="img" font-family="sans-serif" font-size="12">',
            f"<title>{TITLE}</title>",
            f'<path d="M0 0H{width}V{height}H0Z" fill="#ffffff"/>',
            f'<text x="{LEFT}" y="28" font-size="16" fill="#222222">{_text(_heading(chart))}</text>',
            *_axis(chart, width),
            *_columns(chart),
            *_legend(chart),
            "</svg>",
            "",
        ]
    )


def _heading(chart: "Chart") -> str:
    if not chart.months:
        return "No commits"
    return f"{TITLE}, {chart.months[0]} to {chart.months[-1]}"


def _axis(chart: "Chart", width: int) -> Iterator[str]:
    most = max(chart.month_totals, default=0)
    for value in sorted({0, most // 2, most}):
        y = _y(value, most)
        yield f'<path d="M{LEFT} {y:g}H{width - RIGHT}" stroke="#cccccc"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:g}" text-anchor="end" fill="#222222">{value}</text>'


def _columns(chart: "Chart") -> Iterator[str]:
    most = max(chart.month_totals, default=0)
    for number, month in enumerate(chart.months):
        x = LEFT + MONTH_WIDTH * number + (MONTH_WIDTH - COLUMN_WIDTH) // 2
        below = 0
        for index, series in enumerate(chart.series):
            if count := series.commits[number]:
                top, bottom = _y(below + count, most), _y(below, most)
                said = _text(f"{month}, {series.author}: {count}")
                yield (
                    f'<rect x="{x}" y="{top:g}" width="{COLUMN_WIDTH}" height="{bottom - top:g}"'
                    f' fill="{_colour(chart, index)}"><title>{said}</title></rect>'
                )
                below += count
        middle = x + COLUMN_WIDTH // 2
        yield (
            f'<text x="{middle}" y="{TOP + PLOT_HEIGHT + 18}" text-anchor="middle"'
            f' fill="#222222">{month}</text>'
        )


def _legend(chart: "Chart") -> Iterator[str]:
    for index, series in enumerate(chart.series):
        y = TOP + PLOT_HEIGHT + 46 + LEGEND_LINE * index
        said = _text(f"{series.author}: {sum(series.commits)}")
        yield f'<circle cx="{LEFT + 6}" cy="{y - 4}" r="6" fill="{_colour(chart, index)}"/>'
        yield f'<text x="{LEFT + 20}" y="{y}" fill="#222222">{said}</text>'


def _y(value: int, most: int) -> float:
    return round(TOP + PLOT_HEIGHT * (1 - value / max(1, most)), 2)


def _colour(chart: "Chart", index: int) -> str:
    return OTHERS_COLOUR if chart.is_of_others(index) else COLOURS[index % len(COLOURS)]


def _text(text: str) -> str:
    return escape(_NOT_XML.sub("\N{REPLACEMENT CHARACTER}", neutralise(text)))
