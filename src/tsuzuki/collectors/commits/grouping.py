"""Add up groups of commits by period, person, team, project and branch.

The database groups by what is stored; here authors become people, and days become weeks, so that both
databases answer alike.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from functools import partial
from itertools import product
from operator import itemgetter
from typing import Any, NamedTuple

from tsuzuki.collectors.commits.people.identity import Person


class Dimension(StrEnum):
    """What commits are counted by. Days are days of UTC, weeks are those of ISO 8601."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    AUTHOR = "author"
    TEAM = "team"
    PROJECT = "project"
    BRANCH = "branch"


BY_DAY = frozenset({Dimension.DAY, Dimension.WEEK})
BY_PERIOD = frozenset({*BY_DAY, Dimension.MONTH, Dimension.QUARTER})
BY_AUTHOR = frozenset({Dimension.AUTHOR, Dimension.TEAM, Dimension.PROJECT})
SUMS = ("commits", "additions", "deletions")


class NameUse(NamedTuple):
    """How often a name was used by a person, and when last."""

    commits: int
    newest: int


@dataclass(frozen=True, kw_only=True)
class Labels:
    """What the ids in a group stand for."""

    people: Mapping[int, Person] = field(default_factory=dict)
    """By author."""
    projects: Mapping[int, tuple[str, int]] = field(default_factory=dict)
    """Path and id of the project of each author."""
    branches: Mapping[int, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    """The name to show of each person, by key."""


def added_up(
    groups: Iterable[Sequence[int]], by: Sequence[Dimension], labels: Labels
) -> list[dict[str, Any]]:
    """One row for each value of the dimensions, in their order. A group is `queries.statistics.Group`."""
    if not by:
        return [total_of(dict(zip(SUMS, group[3:], strict=True)) for group in groups)]
    periods = _Periods([d for d in by if d in BY_PERIOD])
    people = _OfAuthor([d for d in by if d in BY_AUTHOR], labels)
    branches = _OfBranch(Dimension.BRANCH in by, labels)
    sums: dict[tuple[tuple[Any, ...], ...], list[int]] = {}
    for period, author, rollup, commits, additions, deletions in groups:
        for person in people[author]:
            key = (periods[period], person, branches[rollup])
            row = sums.get(key)
            if row is None:
                sums[key] = [commits, additions, deletions]
            else:
                row[0] += commits
                row[1] += additions
                row[2] += deletions
    in_order = _in_order(by)
    rows = [
        (in_order((*period, *who, *where)), sums) for (period, who, where), sums in sums.items()
    ]
    rows.sort(key=itemgetter(0))
    return _rows(rows, by, labels)


def total_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    total = dict.fromkeys(SUMS, 0)
    for row in rows:
        for key in SUMS:
            total[key] += row[key]
    return total


def most_used(
    uses: Mapping[str, Mapping[str, NameUse]], newest: Mapping[tuple[str, str], int]
) -> dict[str, str]:
    """The name used most by each person; of several the newest. `newest` knows it more exactly."""
    return {
        key: max(names, key=lambda name: (*names[name], newest.get((key, name), 0), name))
        for key, names in uses.items()
    }


def tied(uses: Mapping[str, Mapping[str, NameUse]]) -> list[str]:
    """The people with more than one name that was used most and last."""
    return [
        key for key, names in uses.items() if list(names.values()).count(max(names.values())) > 1
    ]


class _Periods(dict[int, tuple[str, ...]]):
    """The periods in which a day or a month lies, each worked out once."""

    def __init__(self, by: Sequence[Dimension]) -> None:
        super().__init__()
        self._by = by

    def __missing__(self, number: int) -> tuple[str, ...]:
        found = self[number] = tuple([period_of(dimension, number) for dimension in self._by])
        return found


class _OfAuthor(dict[int, list[tuple[Any, ...]]]):
    """Where a commit of an author counts: once for each team, so maybe more than once."""

    def __init__(self, by: Sequence[Dimension], labels: Labels) -> None:
        super().__init__()
        self._by = by
        self._labels = labels

    def __missing__(self, author: int) -> list[tuple[Any, ...]]:
        parts = [self._values(dimension, author) for dimension in self._by]
        found = self[author] = list(product(*parts))
        return found

    def _values(self, dimension: Dimension, author: int) -> tuple[Any, ...]:
        match dimension:
            case Dimension.AUTHOR:
                return (self._labels.people[author].key,)
            case Dimension.TEAM:
                return self._labels.people[author].teams
            case _:
                return (self._labels.projects[author],)


class _OfBranch(dict[int, tuple[str, ...]]):
    """The branch that counts stand for."""

    def __init__(self, is_wanted: bool, labels: Labels) -> None:
        super().__init__()
        self._is_wanted = is_wanted
        self._labels = labels

    def __missing__(self, rollup: int) -> tuple[str, ...]:
        found = self[rollup] = (self._labels.branches[rollup],) if self._is_wanted else ()
        return found


def _in_order(by: Sequence[Dimension]) -> Any:
    """Values as periods, authors and branch put into the order of the dimensions."""
    kinds = (BY_PERIOD, BY_AUTHOR, {Dimension.BRANCH})
    kept = [dimension for kind in kinds for dimension in by if dimension in kind]
    places = [kept.index(dimension) for dimension in by]
    return itemgetter(*places) if len(places) > 1 else partial(_as_tuple, places[0])


def _as_tuple(place: int, values: tuple[Any, ...]) -> tuple[Any, ...]:
    return (values[place],)


class _Fields(dict[Any, dict[str, Any]]):
    """The fields of a row that a value of one dimension stands for, each made once."""

    def __init__(self, dimension: Dimension, labels: Labels) -> None:
        super().__init__()
        self._dimension = dimension
        self._names = labels.names
        self._emails = (
            {person.key: person.email for person in labels.people.values()}
            if dimension is Dimension.AUTHOR
            else {}
        )

    def __missing__(self, value: Any) -> dict[str, Any]:
        match self._dimension:
            case Dimension.AUTHOR:
                fields = {"author_name": self._names[value], "author_email": self._emails[value]}
            case Dimension.PROJECT:
                fields = dict(zip(("project", "project_id"), value, strict=True))
            case _:
                fields = {self._dimension.value: value}
        self[value] = fields
        return fields


def _rows(
    rows: Iterable[tuple[tuple[Any, ...], list[int]]], by: Sequence[Dimension], labels: Labels
) -> list[dict[str, Any]]:
    fields = [_Fields(dimension, labels) for dimension in by]
    found: list[dict[str, Any]] = []
    for key, (commits, additions, deletions) in rows:
        row: dict[str, Any] = {}
        for place, value in enumerate(key):
            row.update(fields[place][value])
        row["commits"], row["additions"], row["deletions"] = commits, additions, deletions
        found.append(row)
    return found


def period_of(dimension: Dimension, number: int) -> str:
    """The period in which a day (20240229), or a month (202402), lies; empty for 0, which is no date."""
    if not number:
        return ""
    is_day = number > 999_999
    year, month = divmod(number // 100 if is_day else number, 100)
    day = number % 100 if is_day else 1
    match dimension:
        case Dimension.DAY:
            return f"{year:04}-{month:02}-{day:02}"
        case Dimension.WEEK:
            return _week(year, month, day)
        case Dimension.QUARTER:
            return f"{year:04}-Q{(month + 2) // 3}"
        case _:
            return f"{year:04}-{month:02}"


def _week(year: int, month: int, day: int) -> str:
    try:
        iso_year, week, _ = date(year, month, day).isocalendar()
    except ValueError:
        return ""
    return f"{iso_year:04}-W{week:02}"
