"""Counts for reports from the commits themselves, where the rollup cannot answer; and the commits for export."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    FromClause,
    Select,
    and_,
    case,
    cast,
    exists,
    func,
    literal_column,
    or_,
    select,
)

from tsuzuki.collectors.commits.queries.commit_filter import CommitFilter
from tsuzuki.collectors.commits.queries.rollup import merge_state_of
from tsuzuki.collectors.commits.tables import (
    commit_parents,
    commit_path_counts,
    commit_paths,
    commits,
    projects,
)
from tsuzuki.store.sql.prepared import execute
from tsuzuki.store.sql.value_list import in_list

_SAME = ("author_email", "author_name", "committed_date_utc", "additions", "deletions")
"""What does not differ between the rows of a commit on several branches."""


class CommitGroup(NamedTuple):
    """Some commits of an author. `day` is the beginning of a date as it is stored, or empty."""

    project_id: int
    author_email: str
    author_name: str
    branch_name: str
    merge_state: int
    day: str
    commits: int
    additions: int
    deletions: int
    without_paths: int
    """Commits among them of which the source did not tell the paths."""


def commit_groups(
    connection: Connection, wanted: CommitFilter, *, by_branch: bool, by_day: bool
) -> list[CommitGroup]:
    """Groups by author, merge state, month or day, and maybe by branch. A commit on several branches counts
    once, by branch once for each."""
    source = _commits(wanted, by_branch=by_branch)
    length = len("2024-02-01") if by_day else len("2024-02")
    # Numbers in the text: PostgreSQL takes two parameters for two different expressions.
    day = func.substr(
        source.c.committed_date_utc, literal_column("1"), literal_column(str(length))
    ).label("day")
    keys = [
        *(source.c[name] for name in CommitGroup._fields[:4]),
        source.c.merge_state,
        day,
    ]
    counted = _counted(source, wanted)
    statement = select(*keys, *counted.columns).select_from(counted.table).group_by(*keys)
    if counted.condition is not None:
        statement = statement.where(counted.condition)
    found = connection.execute(statement, {"paths": sorted(wanted.excluded_path_ids)})
    return [CommitGroup(*row) for row in found]


def _commits(wanted: CommitFilter, *, by_branch: bool) -> Any:
    """Each commit with its merge state; without `by_branch` once, however many branches have it."""
    if by_branch:
        once: Any = select(
            commits.c.project_id,
            commits.c.sha,
            commits.c.branch_name,
            *(commits.c[n] for n in _SAME),
        ).where(*wanted.of_commits())
    else:
        once = (
            select(
                commits.c.project_id,
                commits.c.sha,
                literal_column("''").label("branch_name"),
                *(func.min(commits.c[name]).label(name) for name in _SAME),
            )
            .where(*wanted.of_commits())
            .group_by(commits.c.project_id, commits.c.sha)
        )
    found = once.subquery("once")
    joined, state = merge_state_of(found.c.project_id, found.c.sha)
    return (
        select(found, state.label("merge_state"))
        .select_from(found.outerjoin(commit_parents, joined))
        .subquery("with_state")
    )


class _Counted(NamedTuple):
    table: FromClause
    columns: list[ColumnElement[Any]]
    condition: ColumnElement[bool] | None


def _counted(source: Any, wanted: CommitFilter) -> _Counted:
    """What is added up: everything, or what lies outside of the excluded paths."""
    additions, deletions = source.c.additions, source.c.deletions
    if not wanted.excluded_path_ids:
        columns = [func.count(), _sum(additions), _sum(deletions), literal_column("0")]
        return _Counted(source, columns, None)
    excluded = excluded_counts()
    joined = and_(
        excluded.c.project_id == source.c.project_id, excluded.c.commit_sha == source.c.sha
    )
    columns = [
        func.count(),
        _sum(additions - func.coalesce(excluded.c.additions, 0)),
        _sum(deletions - func.coalesce(excluded.c.deletions, 0)),
        _sum(case((_is_without_paths(source), 1), else_=0)),
    ]
    return _Counted(source.outerjoin(excluded, joined), columns, _has_other_paths(source, excluded))


def excluded_counts() -> Any:
    """What each commit changed in the excluded paths, which are the parameter `paths`."""
    key = (commit_path_counts.c.project_id, commit_path_counts.c.commit_sha)
    return (
        select(
            *key,
            func.sum(commit_path_counts.c.additions).label("additions"),
            func.sum(commit_path_counts.c.deletions).label("deletions"),
            func.count().label("paths"),
        )
        .where(in_list(commit_path_counts.c.path_id, "paths"))
        .group_by(*key)
        .subquery("excluded")
    )


def _paths_of(source: Any) -> ColumnElement[bool]:
    return and_(
        commit_path_counts.c.project_id == source.c.project_id,
        commit_path_counts.c.commit_sha == source.c.sha,
    )


def _has_other_paths(source: Any, excluded: Any) -> ColumnElement[bool]:
    count = (
        select(func.count()).select_from(commit_path_counts).where(_paths_of(source))
    ).scalar_subquery()
    return or_(excluded.c.paths.is_(None), excluded.c.paths < count)


def _is_without_paths(source: Any) -> ColumnElement[bool]:
    """Lines were changed, but in no path that is known."""
    known = exists(
        select(literal_column("1")).select_from(commit_path_counts).where(_paths_of(source))
    )
    return and_(source.c.additions + source.c.deletions > 0, ~known)


def _sum(column: Any) -> ColumnElement[int]:
    return cast(func.coalesce(func.sum(column), 0), BigInteger)


_PATHS = select(commit_paths.c.path_id, commit_paths.c.project_id, commit_paths.c.path)


def paths(connection: Connection) -> list[tuple[int, int, str]]:
    """Every path that is known: its id, its project, and itself."""
    return [(row[0], row[1], row[2]) for row in execute(connection, _PATHS).all()]


def exported(connection: Connection, wanted: CommitFilter) -> Iterator[dict[str, Any]]:
    """Every commit that is wanted, once for each branch that has it, with its parents, read a piece at a
    time. What was changed in excluded paths is taken off."""
    joined = and_(
        commit_parents.c.project_id == commits.c.project_id,
        commit_parents.c.commit_sha == commits.c.sha,
    )
    source: FromClause = commits.join(
        projects, projects.c.project_id == commits.c.project_id
    ).outerjoin(commit_parents, joined)
    extra = [commit_parents.c.parents, commit_parents.c.parent_count]
    statement: Select[Any] = select(projects.c.path.label("project"), commits, *extra)
    if wanted.excluded_path_ids:
        excluded = excluded_counts()
        same = and_(
            excluded.c.project_id == commits.c.project_id, excluded.c.commit_sha == commits.c.sha
        )
        source = source.outerjoin(excluded, same)
        statement = statement.add_columns(
            func.coalesce(excluded.c.additions, 0).label("excluded_additions"),
            func.coalesce(excluded.c.deletions, 0).label("excluded_deletions"),
        ).where(_has_other_paths(commits, excluded))
    statement = (
        statement.select_from(source)
        .where(*wanted.of_commits())
        .order_by(commits.c.project_id, commits.c.branch_name, commits.c.committed_date_utc)
    )
    read = connection.execution_options(yield_per=1000)
    found = read.execute(statement, {"paths": sorted(wanted.excluded_path_ids)})
    yield from (dict(row) for row in found.mappings())
