"""Add up groups of commits by period, author, project and branch.

The database groups by what is stored; here addresses are compared without case and days become weeks, so
that both databases answer alike.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple


class Dimension(StrEnum):
    """What commits are counted by. Days are days of UTC, weeks are those of ISO 8601."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    AUTHOR = "author"
    PROJECT = "project"
    BRANCH = "branch"


SUMS = ("commits", "additions", "deletions")


class NameUse(NamedTuple):
    """How often a name was used with an address, and when last."""

    commits: int
    newest: str


Names = dict[str, dict[str, NameUse]]
"""The names used with each folded address."""


def folded_email(email: str) -> str:
    """The address by which an author is known."""
    return email.lower()


def names_of(groups: Iterable[Any]) -> Names:
    names: Names = {}
    for group in groups:
        of_email = names.setdefault(folded_email(group.author_email), {})
        before = of_email.get(group.author_name, NameUse(0, ""))
        of_email[group.author_name] = NameUse(
            before.commits + int(group.commits), max(before.newest, group.newest)
        )
    return names


def tied(names: Names) -> list[str]:
    """The folded addresses with more than one name that was used most and last."""
    return [
        email for email, uses in names.items() if list(uses.values()).count(max(uses.values())) > 1
    ]


def most_used(names: Names, newest: Mapping[tuple[str, str], str]) -> dict[str, str]:
    """The name used most with each address; of several the newest. `newest` knows it more exactly."""
    return {
        email: max(uses, key=lambda name: (*uses[name], newest.get((email, name), ""), name))
        for email, uses in names.items()
    }


def added_up(
    groups: Iterable[Any],
    by: Sequence[Dimension],
    *,
    names: Mapping[str, str],
    paths: Mapping[int, str],
) -> list[dict[str, Any]]:
    """One row for each value of the dimensions, in their order."""
    parts = [_part(dimension, paths) for dimension in by]
    sums: dict[tuple[Any, ...], list[int]] = {}
    for group in groups:
        row = sums.setdefault(tuple([part(group) for part in parts]), [0, 0, 0])
        row[0] += int(group.commits)
        row[1] += int(group.additions or 0)
        row[2] += int(group.deletions or 0)
    fields = [*(field for dimension in by for field in _FIELDS[dimension]), *SUMS]
    return [
        dict(zip(fields, [*_values(by, key, names), *sums[key]], strict=True))
        for key in sorted(sums)
    ]


def total_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    total = dict.fromkeys(SUMS, 0)
    for row in rows:
        for key in SUMS:
            total[key] += row[key]
    return total


def _part(dimension: Dimension, paths: Mapping[int, str]) -> Callable[[Any], Any]:
    match dimension:
        case Dimension.AUTHOR:
            return lambda group: folded_email(group.author_email)
        case Dimension.PROJECT:
            return lambda group: (paths[group.project_id], group.project_id)
        case Dimension.BRANCH:
            return lambda group: group.branch_name
        case _:
            return lambda group: period_of(dimension, group.period)


_FIELDS = {
    **{dimension: (dimension.value,) for dimension in Dimension},
    Dimension.AUTHOR: ("author_name", "author_email"),
    Dimension.PROJECT: ("project", "project_id"),
}


def _values(
    by: Sequence[Dimension], key: tuple[Any, ...], names: Mapping[str, str]
) -> Iterator[Any]:
    for dimension, value in zip(by, key, strict=True):
        if dimension is Dimension.AUTHOR:
            yield names[value]
            yield value
        elif dimension is Dimension.PROJECT:
            yield from value
        else:
            yield value


@lru_cache(maxsize=100_000)
def period_of(dimension: Dimension, text: str) -> str:
    """The period in which a day, or a month, lies. A text that is no date stays what it is."""
    match dimension:
        case Dimension.WEEK:
            try:
                year, week, _ = date.fromisoformat(text).isocalendar()
            except ValueError:
                return text
            return f"{year:04}-W{week:02}"
        case Dimension.MONTH:
            return text[: len("2024-02")]
        case Dimension.QUARTER:
            year_text, _, month = text[: len("2024-02")].partition("-")
            return f"{year_text}-Q{(int(month) + 2) // 3}" if month.isdecimal() else text
        case _:
            return text
