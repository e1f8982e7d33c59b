"""The numbers of a chart: commits per month of the authors with the most, and of the others together."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tsuzuki.collectors.commits.service.report import LeftOut

OTHERS = "others"
_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")
_MONTHS_OF_YEAR = 12


@dataclass(frozen=True, kw_only=True)
class Series:
    """The commits of one author, or of the others, in each month of the chart."""

    author: str
    commits: Sequence[int]


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Months follow each other without a gap; series are sorted by size, the others last."""

    months: Sequence[str]
    series: Sequence[Series]
    months_before: int
    """How many older months with commits are not shown."""
    left_out: LeftOut = field(default_factory=LeftOut)

    def is_of_others(self, index: int) -> bool:
        return self.series[index].author == OTHERS

    @property
    def month_totals(self) -> list[int]:
        return [sum(of_month) for of_month in zip(*(s.commits for s in self.series), strict=True)]


def chart_of(
    rows: Sequence[Mapping[str, Any]],
    *,
    top: int,
    months: int,
    left_out: LeftOut | None = None,
) -> Chart:
    """`rows` are statistics by month and author."""
    dated = [row for row in rows if _MONTH.fullmatch(row["month"])]
    present = sorted({row["month"] for row in dated})
    shown = list(_last_months(present, months))
    counts: dict[tuple[str, str], Counter[str]] = {}
    for row in dated:
        if row["month"] in shown:
            author = (row["author_email"], row["author_name"])
            counts.setdefault(author, Counter())[row["month"]] += row["commits"]
    ranked = sorted(counts, key=lambda author: (-counts[author].total(), author))
    labels = _labels(ranked)
    series = [(labels[author], counts[author]) for author in ranked[:top]]
    if rest := ranked[top:]:
        series.append((OTHERS, sum((counts[author] for author in rest), Counter())))
    return Chart(
        months=shown,
        series=[Series(author=a, commits=[of[month] for month in shown]) for a, of in series],
        months_before=len([month for month in present if month not in shown]),
        left_out=left_out or LeftOut(),
    )


def _last_months(present: Sequence[str], count: int) -> Iterator[str]:
    """The last `count` months up to the newest one, none of them before the oldest."""
    if not present:
        return
    oldest, newest = (_number(month) for month in (present[0], present[-1]))
    for number in range(max(oldest, newest - count + 1), newest + 1):
        yield f"{number // _MONTHS_OF_YEAR:04}-{number % _MONTHS_OF_YEAR + 1:02}"


def _number(month: str) -> int:
    return int(month[:4]) * _MONTHS_OF_YEAR + int(month[5:]) - 1


def _labels(authors: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """The name of each author; with the address if another author has the same name."""
    uses = Counter([*(name for _, name in authors), OTHERS])
    return {
        (email, name): name if name and uses[name] == 1 else f"{name} <{email}>".strip()
        for email, name in authors
    }
