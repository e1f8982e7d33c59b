"""Counts for reports, read from the rollup: whole months from `commit_months`, single days from `commit_days`.

What the rollup cannot answer (some branches of a project together, days of a branch, without some paths) is
counted from the commits themselves (`commit_groups`).
"""

from calendar import monthrange
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    cast,
    func,
    literal_column,
    not_,
    select,
    text,
    union_all,
)

from tsuzuki.collectors.commits.queries.commit_filter import CommitFilter
from tsuzuki.collectors.commits.report_tables import (
    EACH_ONCE,
    MergeState,
    commit_authors,
    commit_days,
    commit_months,
    commit_rollups,
)
from tsuzuki.store.sql.dialect import is_sqlite
from tsuzuki.store.sql.prepared import execute
from tsuzuki.store.sql.value_list import in_list

_MONTHS_OF_YEAR = 12
_SUMS = ("commits", "additions", "deletions")


class Merges(StrEnum):
    """What is done with merge commits."""

    INCLUDE = "include"
    EXCLUDE = "exclude"
    ONLY = "only"


class Author(NamedTuple):
    """An author as written in the commits of a project."""

    author_id: int
    project_id: int
    author_email: str
    author_name: str


class Rollup(NamedTuple):
    """The counts of a branch."""

    rollup_id: int
    project_id: int
    branch_name: str


class AuthorCount(NamedTuple):
    """What an author did, merges apart, and the last month of it."""

    author_id: int
    merge_state: int
    commits: int
    additions: int
    deletions: int
    newest: int


class StatisticsGroup(NamedTuple):
    """Some commits. What was not asked for is 0: `period` is a day or a month as a number."""

    period: int
    author_id: int
    rollup_id: int
    commits: int
    additions: int
    deletions: int


MERGE_STATES = {
    Merges.INCLUDE: tuple(MergeState),
    Merges.EXCLUDE: (MergeState.NO, MergeState.UNKNOWN),
    Merges.ONLY: (MergeState.YES,),
}


@dataclass(frozen=True, kw_only=True)
class AuthorChoice:
    """Whose commits count. Either way may be the shorter list."""

    ids: Collection[int]
    is_excluding: bool

    def condition(self, column: ColumnElement[int]) -> ColumnElement[bool]:
        """Takes the parameter `authors`."""
        found = in_list(column, "authors")
        return not_(found) if self.is_excluding else found


_AUTHORS = select(commit_authors)
_ROLLUPS = select(
    commit_rollups.c.rollup_id, commit_rollups.c.project_id, commit_rollups.c.branch_name
)


def authors(connection: Connection) -> list[Author]:
    rows = execute(connection, _AUTHORS).all()
    return [Author(*row) for row in rows]


def rollups(connection: Connection) -> list[Rollup]:
    return [Rollup(*row) for row in execute(connection, _ROLLUPS).all()]


def author_counts(
    connection: Connection, wanted: CommitFilter, rollup_ids: Sequence[int] = (EACH_ONCE,)
) -> list[AuthorCount]:
    """What each author did within the days that are wanted, in all projects together."""
    source = _months(wanted)
    keys = (source.c.author_id, source.c.merge_state)
    statement = select(*keys, *_sums(source), func.max(source.c.month)).group_by(*keys)
    rows = connection.execute(statement, {"rollups": list(rollup_ids)}).all()
    return [AuthorCount(*row) for row in rows]


def groups(
    connection: Connection,
    wanted: CommitFilter,
    *,
    choice: AuthorChoice | None,
    merges: Merges,
    by_day: bool = False,
    by_month: bool = False,
    by_author: bool = False,
    rollup_ids: Sequence[int] | None = None,
) -> Sequence[Any]:
    """Counts as `StatisticsGroup`s. With `rollup_ids` those of some branches, each branch apart."""
    source = _days(wanted) if by_day else _months(wanted)
    nothing: ColumnElement[int] = literal_column("0")
    keys: dict[str, ColumnElement[Any]] = {}
    if by_day or by_month:
        keys["period"] = source.c.day if by_day else source.c.month
    if by_author:
        keys["author_id"] = source.c.author_id
    if rollup_ids is not None:
        keys["rollup_id"] = source.c.rollup_id
    selected = [keys.get(name, nothing) for name in StatisticsGroup._fields[:3]]
    statement = select(*selected, *_sums(source)).group_by(*keys.values())
    if choice is not None:
        statement = statement.where(choice.condition(source.c.author_id))
    if merges is not Merges.INCLUDE:
        statement = statement.where(source.c.merge_state.in_(MERGE_STATES[merges]))
    parameters = {
        "rollups": list(rollup_ids or (EACH_ONCE,)),
        "authors": sorted(choice.ids) if choice else [],
    }
    return connection.execute(statement, parameters).all()


def newest_days(connection: Connection, author_ids: Collection[int]) -> dict[int, int]:
    """The last day on which each of these authors committed."""
    return dict(execute(connection, _NEWEST_DAYS, {"authors": sorted(author_ids)}).all())


_NEWEST_DAYS = (
    select(commit_days.c.author_id, func.max(commit_days.c.day))
    .where(in_list(commit_days.c.author_id, "authors"))
    .group_by(commit_days.c.author_id)
)


def _sums(source: Any) -> Iterator[ColumnElement[int]]:
    # A sum of PostgreSQL is a decimal number.
    return (cast(func.coalesce(func.sum(source.c[n]), 0), BigInteger).label(n) for n in _SUMS)


def _days(wanted: CommitFilter) -> Any:
    """The days that are wanted, as a table."""
    if wanted.since is None and wanted.until is None:
        return commit_days
    first, last = _bounds(wanted)
    return select(commit_days).where(commit_days.c.day.between(first, last)).subquery()


def _months(wanted: CommitFilter) -> Any:
    """The months that are wanted, as a table; of a month of which some days are wanted, these days. Days of a
    single branch are not known."""
    first, last = _bounds(wanted)
    first_month, last_month = first // 100, last // 100
    if wanted.since is not None and wanted.since.day > 1:
        first_month = _next_month(first_month)
    if wanted.until is not None and wanted.until.day < _days_of_month(wanted.until):
        last_month = _month_before(last_month)
    if first_month > last_month:
        return _days_as_month(first, last).subquery()
    whole = select(commit_months).where(in_list(commit_months.c.rollup_id, "rollups"))
    if wanted.since is not None or wanted.until is not None:
        whole = whole.where(commit_months.c.month.between(first_month, last_month))
    parts = [whole]
    if first // 100 < first_month:
        parts.append(_days_as_month(first, first_month * 100 - 1))
    if last // 100 > last_month:
        parts.append(_days_as_month(_next_month(last_month) * 100, last))
    return union_all(*parts).subquery() if len(parts) > 1 else whole.subquery()


def _days_as_month(first: int, last: int) -> Select[Any]:
    return select(
        literal_column(str(EACH_ONCE)).label("rollup_id"),
        commit_days.c.author_id,
        commit_days.c.merge_state,
        (commit_days.c.day // 100).label("month"),
        *(commit_days.c[name] for name in _SUMS),
    ).where(commit_days.c.day.between(first, last))


def _bounds(wanted: CommitFilter) -> tuple[int, int]:
    """The first and the last day, as numbers. Without a first day, what has no date is wanted too."""
    return (
        _number(wanted.since) if wanted.since is not None else 0,
        _number(wanted.until) if wanted.until is not None else _number(date.max),
    )


def _number(day: date) -> int:
    return day.year * 10_000 + day.month * 100 + day.day


def _days_of_month(day: date) -> int:
    return monthrange(day.year, day.month)[1]


def _next_month(month: int) -> int:
    return month + 1 if month % 100 < _MONTHS_OF_YEAR else month + 89


def _month_before(month: int) -> int:
    return month - 1 if month % 100 > 1 else month - 89


_SNAPSHOT = text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ").columns()


def use_snapshot(connection: Connection) -> None:
    """Let all statements of this transaction see the same: on SQLite they do. Must be the first one."""
    if not is_sqlite(connection.dialect):
        execute(connection, _SNAPSHOT)
