"""Statistics by period, author, project and branch, and the commits themselves for export.

What months can answer is read from `commit_totals`, which stays small; what needs days or branches is read
from the commits, each of a project once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sqlalchemy import ColumnElement, Connection, FromClause, func, literal_column, select

from tsuzuki.collectors.commits import grouping
from tsuzuki.collectors.commits.grouping import Dimension, folded_email
from tsuzuki.collectors.commits.queries import projects as project_queries
from tsuzuki.collectors.commits.queries import targets
from tsuzuki.collectors.commits.queries.commit_filter import EVERYTHING, CommitFilter
from tsuzuki.collectors.commits.tables import commit_totals, commits, projects
from tsuzuki.store.sql.prepared import execute
from tsuzuki.store.sql.value_list import in_list

_BY_DAY = {Dimension.DAY, Dimension.WEEK}
_BY_MONTH = {Dimension.MONTH, Dimension.QUARTER}


@dataclass(frozen=True, kw_only=True)
class _Source:
    """What is counted: a table, or one of each commit. `moment` is a month or an instant."""

    table: FromClause
    conditions: Sequence[ColumnElement[bool]]
    moment: ColumnElement[str]
    commits: ColumnElement[int]


def totals(
    connection: Connection, by: Sequence[Dimension], wanted: CommitFilter = EVERYTHING
) -> list[dict[str, Any]]:
    """Commits, additions and deletions for each value of the dimensions, in their order; without a
    dimension one row. A commit on several branches of a project counts once, by branch once for each.
    An author is known by the address, without regard to case, and shown by the name used most."""
    source = _source(connection, by, wanted)
    keys = _keys(by, source)
    newest = [func.max(source.moment).label("newest")] if Dimension.AUTHOR in by else []
    statement = (
        select(
            *keys,
            *newest,
            source.commits.label("commits"),
            func.sum(source.table.c.additions).label("additions"),
            func.sum(source.table.c.deletions).label("deletions"),
        )
        .select_from(source.table)
        .where(*source.conditions)
        .group_by(*keys)
    )
    groups = connection.execute(statement).all()
    return grouping.added_up(
        groups,
        by,
        names=_names(connection, groups) if Dimension.AUTHOR in by else {},
        paths={p.project_id: p.path for p in project_queries.find(connection)},
    )


def _source(connection: Connection, by: Sequence[Dimension], wanted: CommitFilter) -> _Source:
    needs_commits = wanted.branches is not None or not wanted.is_of_whole_months
    if not needs_commits and not {Dimension.BRANCH, *_BY_DAY} & {*by}:
        return _Source(
            table=commit_totals,
            conditions=wanted.of_totals(),
            moment=commit_totals.c.month,
            commits=func.coalesce(func.sum(commit_totals.c.commits), 0),
        )
    if Dimension.BRANCH in by or not _on_several_branches(connection, wanted):
        return _Source(
            table=commits,
            conditions=wanted.of_commits(),
            moment=commits.c.committed_date_utc,
            commits=func.count(),
        )
    once = _each_once(wanted)
    return _Source(
        table=once, conditions=(), moment=once.c.committed_date_utc, commits=func.count()
    )


def _on_several_branches(connection: Connection, wanted: CommitFilter) -> bool:
    """Whether a commit may be met more than once: looked up per branch, not per commit."""
    found = [
        target.project_id
        for target in targets.with_history(connection)
        if wanted.project_ids is None or target.project_id in wanted.project_ids
        if wanted.branches is None or target.branch in wanted.branches
    ]
    return any(one == other for one, other in pairwise(found))


def _each_once(wanted: CommitFilter) -> FromClause:
    """Each commit of a project, however many branches have it. Its rows differ in the branch only."""
    same = ("author_name", "author_email", "committed_date_utc", "additions", "deletions")
    return (
        select(commits.c.project_id, *(func.min(commits.c[name]).label(name) for name in same))
        .where(*wanted.of_commits())
        .group_by(commits.c.project_id, commits.c.sha)
        .subquery()
    )


def _keys(by: Sequence[Dimension], source: _Source) -> list[ColumnElement[Any]]:
    """The columns to group by: as coarse as the dimensions allow."""
    keys: list[ColumnElement[Any]] = []
    if _BY_DAY & {*by}:
        keys.append(_beginning(source.moment, "2024-02-01").label("period"))
    elif _BY_MONTH & {*by}:
        keys.append(_beginning(source.moment, "2024-02").label("period"))
    if Dimension.AUTHOR in by:
        keys.extend([source.table.c.author_email, source.table.c.author_name])
    if Dimension.PROJECT in by:
        keys.append(source.table.c.project_id)
    if Dimension.BRANCH in by:
        keys.append(source.table.c.branch_name)
    return keys


def _beginning(moment: ColumnElement[str], like: str) -> ColumnElement[str]:
    # Numbers in the text: PostgreSQL takes two parameters for two different expressions.
    return func.substr(moment, literal_column("1"), literal_column(str(len(like))))


def _names(connection: Connection, groups: Sequence[Any]) -> dict[str, str]:
    names = grouping.names_of(groups)
    tied = set(grouping.tied(names))
    emails = {g.author_email for g in groups if folded_email(g.author_email) in tied}
    return grouping.most_used(names, newest_uses(connection, emails) if emails else {})


_NEWEST_USES = (
    select(
        commits.c.author_email,
        commits.c.author_name,
        func.max(commits.c.committed_date_utc),
    )
    .where(in_list(commits.c.author_email, "emails"))
    .group_by(commits.c.author_email, commits.c.author_name)
)


def newest_uses(connection: Connection, emails: set[str]) -> dict[tuple[str, str], str]:
    """When each name was last used with each of the addresses, the address folded."""
    newest: dict[tuple[str, str], str] = {}
    for email, name, moment in execute(connection, _NEWEST_USES, {"emails": sorted(emails)}).all():
        key = (folded_email(email), name)
        newest[key] = max(newest.get(key, ""), moment)
    return newest


_AUTHORS = select(commit_totals.c.author_email, commit_totals.c.author_name).distinct()


def authors(connection: Connection) -> list[tuple[str, str]]:
    """Every address with every name that was used with it."""
    return [(email, name) for email, name in execute(connection, _AUTHORS).all()]


def export(connection: Connection, wanted: CommitFilter = EVERYTHING) -> Iterator[dict[str, Any]]:
    """Every stored commit, as it is stored, read a piece at a time."""
    statement = (
        select(projects.c.path.label("project"), commits)
        .join(projects, projects.c.project_id == commits.c.project_id)
        .where(*wanted.of_commits())
        .order_by(commits.c.project_id, commits.c.branch_name, commits.c.committed_date_utc)
    )
    rows = connection.execution_options(yield_per=1000).execute(statement).mappings()
    for row in rows:
        yield dict(row)
