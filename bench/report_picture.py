"""Bars on a logarithmic axis as SVG: right of the middle is better than the other, left of it is worse. Bars are grey
where the other is no peer."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 960
LABELS = 330
ROW = 18
TOP = 44
MARGIN = 70
DECADES_MIN = 1


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One bar: `times` as good as the other, 1 if equal. `is_bound`: the other is a lower bound that does less."""

    group: str
    label: str
    times: float
    is_bound: bool = False


def draw(bars: Sequence[Bar], *, title: str) -> str:
    decades = max([DECADES_MIN, *(math.ceil(abs(math.log10(bar.times)) - 1e-9) for bar in bars)])
    middle = LABELS + (WIDTH - LABELS - MARGIN) / 2
    scale = (WIDTH - LABELS - MARGIN) / 2 / decades
    parts, group, y = [], "", TOP
    for bar in bars:
        if bar.group != group:
            group = bar.group
            y += ROW // 2
            parts.append(f'<text x="8" y="{y + 13}" class="group">{escape(group)}</text>')
            y += ROW
        parts += _bar(bar, y, middle, math.log10(bar.times) * scale)
        y += ROW
    height = y + 30
    lines = [_line(power, middle + power * scale, height) for power in range(-decades, decades + 1)]
    return "\n".join([_head(height, title), *lines, *parts, "</svg>", ""])


def _head(height: int, title: str) -> str:
    style = (
        "text{font:12px sans-serif;fill:#222}.group{font-weight:bold}.axis{fill:#666}"
        "rect.better{fill:#2a7f62}rect.worse{fill:#b5651d}rect.bound{fill:#8a8f98}line{stroke:#ccc}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">\n'
        f"<title>{escape(title)}</title><style>{style}</style>\n"
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>\n'
        f'<text x="8" y="18" class="group">{escape(title)}</text>'
    )


def _line(power: int, x: float, height: int) -> str:
    told = f"{10**power:g}"
    return (
        f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{height - 10}"/>'
        f'<text x="{x:.1f}" y="{TOP - 10}" class="axis" text-anchor="middle">{told}</text>'
    )


def _bar(bar: Bar, y: int, middle: float, length: float) -> list[str]:
    left, kind = (middle, "better") if length >= 0 else (middle + length, "worse")
    kind = "bound" if bar.is_bound else kind
    beside, anchor = (4, "start") if length >= 0 else (-4, "end")
    told = f"{bar.times:.2g}" if bar.times < 100 else f"{bar.times:.0f}"
    return [
        f'<text x="24" y="{y + 13}">{escape(bar.label)}</text>',
        f'<rect class="{kind}" x="{left:.1f}" y="{y + 3}" width="{abs(length):.1f}" height="{ROW - 6}">'
        f"<title>{escape(bar.label)}: {told}</title></rect>",
        f'<text x="{middle + length + beside:.1f}" y="{y + 13}" text-anchor="{anchor}">{told}</text>',
    ]
