"""Statistics by month, author and project, and the commits themselves for export."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, select

from tsuzuki.collectors.commits.tables import commit_totals, commits, projects


class Dimension(StrEnum):
    """What commits are counted by."""

    MONTH = "month"
    AUTHOR = "author"
    PROJECT = "project"


def totals(
    connection: Connection,
    by: Sequence[Dimension],
    *,
    project_ids: Sequence[int] | None = None,
    since_month: str | None = None,
    until_month: str | None = None,
) -> list[dict[str, Any]]:
    """Commits, additions and deletions for each value of the dimensions, in their order. A commit
    that is on several branches of a project counts once; an author is known by the address."""
    groups, shown = _columns(by)
    statement = (
        select(
            *shown,
            func.sum(commit_totals.c.commits).label("commits"),
            func.sum(commit_totals.c.additions).label("additions"),
            func.sum(commit_totals.c.deletions).label("deletions"),
        )
        .select_from(commit_totals)
        .group_by(*groups)
        .order_by(*groups)
    )
    if Dimension.PROJECT in by:
        statement = statement.join(projects, projects.c.project_id == commit_totals.c.project_id)
    if project_ids is not None:
        statement = statement.where(commit_totals.c.project_id.in_(project_ids))
    if since_month is not None:
        statement = statement.where(commit_totals.c.month >= since_month)
    if until_month is not None:
        statement = statement.where(commit_totals.c.month <= until_month)
    whole = ("commits", "additions", "deletions")
    return [
        {**row, **{key: int(row[key] or 0) for key in whole}}
        for row in connection.execute(statement).mappings()
    ]


def _columns(
    by: Sequence[Dimension],
) -> tuple[list[ColumnElement[Any]], list[ColumnElement[Any]]]:
    groups: list[ColumnElement[Any]] = []
    shown: list[ColumnElement[Any]] = []
    for dimension in by:
        match dimension:
            case Dimension.MONTH:
                groups.append(commit_totals.c.month)
                shown.append(commit_totals.c.month)
            case Dimension.AUTHOR:
                groups.append(commit_totals.c.author_email)
                # One address may have had several names: any one of them will do to be recognised.
                shown.append(func.max(commit_totals.c.author_name).label("author_name"))
                shown.append(commit_totals.c.author_email)
            case Dimension.PROJECT:
                groups.extend([projects.c.path, commit_totals.c.project_id])
                shown.extend([projects.c.path.label("project"), commit_totals.c.project_id])
    return groups, shown


def export(
    connection: Connection, *, project_ids: Sequence[int] | None = None, branch: str | None = None
) -> Iterator[dict[str, Any]]:
    """Every stored commit, as it is stored, read a piece at a time."""
    statement = (
        select(projects.c.path.label("project"), commits)
        .join(projects, projects.c.project_id == commits.c.project_id)
        .order_by(commits.c.project_id, commits.c.branch_name, commits.c.committed_date_utc)
    )
    if project_ids is not None:
        statement = statement.where(commits.c.project_id.in_(project_ids))
    if branch is not None:
        statement = statement.where(commits.c.branch_name == branch)
    rows = connection.execution_options(yield_per=1000).execute(statement).mappings()
    for row in rows:
        yield dict(row)
