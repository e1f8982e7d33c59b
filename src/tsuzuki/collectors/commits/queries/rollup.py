"""The counts that reports read, kept beside the commits.

They are added to in the transaction of each page. Rows that an older process stored are missing in them:
`stale_projects` compares how many rows of each branch they hold with how many there are, and the project is
added up anew: `recount` reads without a lock, `replace` writes. So no report lacks a commit.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import (
    BigInteger,
    Connection,
    Integer,
    Select,
    Table,
    Text,
    and_,
    bindparam,
    case,
    delete,
    func,
    select,
    update,
)
from sqlalchemy.engine import Dialect

from tsuzuki.collectors.commits.queries.targets import Target
from tsuzuki.collectors.commits.report_tables import (
    EACH_ONCE,
    MergeState,
    commit_authors,
    commit_days,
    commit_months,
    commit_rollups,
)
from tsuzuki.collectors.commits.sources.source import Commit
from tsuzuki.collectors.commits.tables import commit_parents, commits
from tsuzuki.collectors.kit.upsert import insert_from
from tsuzuki.store.sql.batch import Columns, pack, unpack
from tsuzuki.store.sql.dialect import insert_into
from tsuzuki.store.sql.prepared import execute, execute_batch

ROWS_MAX = 20_000
"""Rows in one statement."""

AuthorIds: TypeAlias = dict[tuple[str, str], int]
"""By address and name, as they are written."""

_PROJECT = bindparam("project", type_=BigInteger())
_AUTHOR: Columns = {"author_email": Text(), "author_name": Text()}
_SUMS: Columns = {"commits": BigInteger(), "additions": BigInteger(), "deletions": BigInteger()}
_MONTHS: Columns = {
    "author_id": BigInteger(),
    "merge_state": Integer(),
    "month": Integer(),
    **_SUMS,
}
_DAYS: Columns = {"author_id": BigInteger(), "merge_state": Integer(), "day": Integer(), **_SUMS}


class CountedCommit(NamedTuple):
    """What is counted of a commit."""

    author_email: str
    author_name: str
    committed_date_utc: str
    additions: int
    deletions: int
    merge_state: int


def add_page(
    connection: Connection,
    target: Target,
    *,
    fresh: Sequence[Commit],
    uncounted: Sequence[Commit],
) -> None:
    """Add commits that are new on a branch, and those of them that are new in the project."""
    author_ids = intern_authors(
        connection, target.project_id, {(c.author_email, c.author_name) for c in fresh}
    )
    rollup_id = _add_commits(connection, target, len(fresh))
    on_branch = _Sums(author_ids)
    on_branch.add(_counted(fresh))
    once = on_branch
    if len(uncounted) != len(fresh):
        once = _Sums(author_ids)
        once.add(_counted(uncounted))
    _store_months(connection, rollup_id, on_branch)
    _store_months(connection, EACH_ONCE, once)
    _store_days(connection, once)


def day_number(date: str) -> int:
    """`2024-02-29T…` as 20240229; 0 if it is not a date."""
    try:
        return int(date[:4]) * 10_000 + int(date[5:7]) * 100 + int(date[8:10])
    except ValueError:
        return 0


def month_number(date: str) -> int:
    """`2024-02…` as 202402; 0 if it is not a date."""
    return day_number(f"{date[:7]}-00") // 100


def _counted(page: Iterable[Commit]) -> Iterator[CountedCommit]:
    for one in page:
        yield CountedCommit(
            one.author_email,
            one.author_name,
            one.committed_date_utc,
            one.additions,
            one.deletions,
            MergeState.YES if " " in one.parents else MergeState.NO,
        )


class _Sums:
    """Commits, additions and deletions by author, merge state and day."""

    def __init__(self, author_ids: AuthorIds) -> None:
        self._author_ids = author_ids
        self._by_day: dict[tuple[int, int, int], list[int]] = {}

    def add(self, counted: Iterable[tuple[Any, ...]]) -> None:
        by_day, author_ids = self._by_day, self._author_ids
        for email, name, date, additions, deletions, state in counted:
            key = (author_ids[email, name], int(state), day_number(date))
            total = by_day.get(key)
            if total is None:
                by_day[key] = [1, additions, deletions]
            else:
                total[0] += 1
                total[1] += additions
                total[2] += deletions

    def days(self) -> list[tuple[int, ...]]:
        # In one order everywhere, or two transactions that add to the same rows could deadlock.
        return [(*key, *self._by_day[key]) for key in sorted(self._by_day)]

    def months(self) -> list[tuple[int, ...]]:
        months: dict[tuple[int, int, int], list[int]] = {}
        for (author, state, day), sums in self._by_day.items():
            total = months.setdefault((author, state, day // 100), [0, 0, 0])
            for place, value in enumerate(sums):
                total[place] += value
        return [(*key, *months[key]) for key in sorted(months)]


# --- writing --------------------------------------------------------------------------------------


def intern_authors(
    connection: Connection, project_id: int, authors: set[tuple[str, str]]
) -> AuthorIds:
    """The ids of authors as they are written in the commits of a project; new ones are added."""
    rows = sorted(authors)
    parameters = {"project": project_id}
    execute_batch(connection, _insert_authors, _AUTHOR, rows, parameters)
    found = execute_batch(connection, _select_authors, _AUTHOR, rows, parameters).all()
    return {(email, name): author_id for author_id, email, name in found}


@lru_cache
def _insert_authors(dialect: Dialect, varying: tuple[str, ...]) -> Any:
    page = unpack(dialect, _AUTHOR, varying)
    values = {"project_id": _PROJECT, **dict(page.c.items())}
    return insert_from(dialect, commit_authors, values).on_conflict_do_nothing()


@lru_cache
def _select_authors(dialect: Dialect, varying: tuple[str, ...]) -> Any:
    page = unpack(dialect, _AUTHOR, varying)
    return (
        select(
            commit_authors.c.author_id, commit_authors.c.author_email, commit_authors.c.author_name
        )
        .join(
            page,
            and_(
                commit_authors.c.author_email == page.c.author_email,
                commit_authors.c.author_name == page.c.author_name,
            ),
        )
        .where(commit_authors.c.project_id == _PROJECT)
    )


def _add_commits(connection: Connection, target: Target, count: int) -> int:
    parameters = {"project": target.project_id, "branch": target.branch, "added": count}
    found: int = execute(connection, _add_to_rollup(connection.dialect), parameters).scalar_one()
    return found


@lru_cache
def _add_to_rollup(dialect: Dialect) -> Any:
    insert = insert_into(dialect, commit_rollups).values(
        project_id=_PROJECT,
        branch_name=bindparam("branch", type_=Text()),
        commits=bindparam("added", type_=BigInteger()),
    )
    return insert.on_conflict_do_update(
        index_elements=["project_id", "branch_name"],
        set_={"commits": commit_rollups.c.commits + insert.excluded.commits},
    ).returning(commit_rollups.c.rollup_id)


def _store_months(connection: Connection, rollup_id: int, sums: _Sums) -> None:
    rows = sums.months()
    for first in range(0, len(rows), ROWS_MAX):
        packed = pack(connection.dialect, _MONTHS, rows[first : first + ROWS_MAX])
        statement = _add_months(connection.dialect, packed.varying)
        execute(connection, statement, packed.with_(rollup=rollup_id))


def _store_days(connection: Connection, sums: _Sums) -> None:
    rows = sums.days()
    for first in range(0, len(rows), ROWS_MAX):
        packed = pack(connection.dialect, _DAYS, rows[first : first + ROWS_MAX])
        execute(connection, _add_days(connection.dialect, packed.varying), packed.parameters)


@lru_cache
def _add_months(dialect: Dialect, varying: tuple[str, ...]) -> Any:
    page = unpack(dialect, _MONTHS, varying)
    values = {"rollup_id": bindparam("rollup", type_=BigInteger()), **dict(page.c.items())}
    return _adding(commit_months, insert_from(dialect, commit_months, values))


@lru_cache
def _add_days(dialect: Dialect, varying: tuple[str, ...]) -> Any:
    page = unpack(dialect, _DAYS, varying)
    return _adding(commit_days, insert_from(dialect, commit_days, dict(page.c.items())))


def _adding(table: Table, insert: Any) -> Any:
    """The same INSERT, by which what is there already grows."""
    return insert.on_conflict_do_update(
        index_elements=list(table.primary_key),
        set_={name: table.c[name] + insert.excluded[name] for name in _SUMS},
    )


# --- what is missing ------------------------------------------------------------------------------

_STORED = select(commits.c.project_id, commits.c.branch_name, func.count()).group_by(
    commits.c.project_id, commits.c.branch_name
)
_HELD = select(commit_rollups.c.project_id, commit_rollups.c.branch_name, commit_rollups.c.commits)


def stale_projects(connection: Connection) -> list[int]:
    """The projects whose counts do not hold exactly what is stored. One walk along an index."""
    stored = {(p, branch): count for p, branch, count in execute(connection, _STORED).all()}
    held = {(p, branch): count for p, branch, count in execute(connection, _HELD).all() if count}
    return sorted({project for project, _ in dict(stored.items() ^ held.items())})


_FORGET = update(commit_rollups).where(commit_rollups.c.project_id == _PROJECT).values(commits=0)


def forget(connection: Connection, project_id: int) -> None:
    """Let the next report add a project up anew: something in its commits is known better now."""
    execute(connection, _FORGET, {"project": project_id})


_AUTHOR_IDS = select(commit_authors.c.author_id).where(commit_authors.c.project_id == _PROJECT)
_DELETE_MONTHS = delete(commit_months).where(commit_months.c.author_id.in_(_AUTHOR_IDS))
_DELETE_DAYS = delete(commit_days).where(commit_days.c.author_id.in_(_AUTHOR_IDS))
_BRANCHES = select(commits.c.branch_name).where(commits.c.project_id == _PROJECT).distinct()
_AUTHORS_OF_COMMITS = (
    select(commits.c.author_email, commits.c.author_name)
    .where(commits.c.project_id == _PROJECT)
    .distinct()
)
_MERGE_STATE = case(
    (commit_parents.c.parent_count.is_(None), int(MergeState.UNKNOWN)),
    (commit_parents.c.parent_count > 1, int(MergeState.YES)),
    else_=int(MergeState.NO),
)


def merge_state_of(project_id: Any, sha: Any) -> tuple[Any, Any]:
    """The condition that joins the parents of a commit, and its merge state as a column."""
    joined = and_(commit_parents.c.project_id == project_id, commit_parents.c.commit_sha == sha)
    return joined, _MERGE_STATE


@dataclass(frozen=True, kw_only=True)
class Recount:
    """A project added up anew, not yet stored. Commits are only ever added, so as long as there are as many
    of them, and as many with parents, as there were, it holds."""

    parents: int
    commits: Mapping[str, int]
    """By branch, as the rest."""
    on_branch: "Mapping[str, _Sums]"
    once: "_Sums"


_PARENTS = (
    select(func.count()).select_from(commit_parents).where(commit_parents.c.project_id == _PROJECT)
)


def rebuild(connection: Connection, project_id: int) -> None:
    """Add up a project anew from its commits. The caller holds its lock (`pages.lock_project`)."""
    found = recount(connection, project_id, intern_all(connection, project_id))
    if found is None or not replace(connection, project_id, found):
        raise RuntimeError("commits were added though the project is locked")


def intern_all(connection: Connection, project_id: int) -> AuthorIds:
    """The ids of all authors of a project; new ones are added."""
    rows = execute(connection, _AUTHORS_OF_COMMITS, {"project": project_id}).all()
    return intern_authors(connection, project_id, {(email, name) for email, name in rows})


def recount(connection: Connection, project_id: int, author_ids: AuthorIds) -> Recount | None:
    """Add up a project without a lock; None if an author has come since the ids were given."""
    parents = execute(connection, _PARENTS, {"project": project_id}).scalar_one()
    branches = execute(connection, _BRANCHES, {"project": project_id}).scalars()
    on_branch = {branch: _Sums(author_ids) for branch in branches}
    counts, once, seen = dict.fromkeys(branches, 0), _Sums(author_ids), set[str]()
    try:
        for branch in branches:
            for rows in _branch_pages(connection, project_id, branch):
                counts[branch] += len(rows)
                on_branch[branch].add(row[1:] for row in rows)
                if len(branches) > 1:
                    new = [row for row in rows if row[0] not in seen]
                    seen.update(row[0] for row in new)
                    once.add(row[1:] for row in new)
    except KeyError:
        return None
    if len(branches) == 1:
        once = on_branch[branches[0]]
    return Recount(parents=parents, commits=counts, on_branch=on_branch, once=once)


def replace(connection: Connection, project_id: int, found: Recount) -> bool:
    """Put a recount in place of what is held; False, and nothing is done, if it no longer holds. The caller
    holds the lock of the project."""
    parameters = {"project": project_id}
    stored = {b: n for p, b, n in execute(connection, _STORED).all() if p == project_id}
    parents = execute(connection, _PARENTS, parameters).scalar_one()
    if (stored, parents) != (found.commits, found.parents):
        return False
    for statement in (_DELETE_MONTHS, _DELETE_DAYS, _FORGET):
        execute(connection, statement, parameters)
    for branch, sums in found.on_branch.items():
        target = Target(project_id, branch)
        _store_months(connection, _add_commits(connection, target, found.commits[branch]), sums)
    _store_months(connection, EACH_ONCE, found.once)
    _store_days(connection, found.once)
    return True


def _branch_pages(connection: Connection, project_id: int, branch: str) -> Iterator[list[Any]]:
    """The commits of a branch in the order of their ids, some at a time: a history may be long."""
    parameters = {"project": project_id, "branch": branch, "after": "", "rows": ROWS_MAX}
    while rows := execute(connection, _COMMITS_AFTER, parameters).all():
        yield rows
        parameters["after"] = rows[-1][0]


def _commits_after() -> Select[Any]:
    joined, state = merge_state_of(commits.c.project_id, commits.c.sha)
    return (
        select(
            commits.c.sha,
            commits.c.author_email,
            commits.c.author_name,
            commits.c.committed_date_utc,
            commits.c.additions,
            commits.c.deletions,
            state,
        )
        .select_from(commits.outerjoin(commit_parents, joined))
        .where(
            commits.c.project_id == _PROJECT,
            commits.c.branch_name == bindparam("branch", type_=Text()),
            commits.c.sha > bindparam("after", type_=Text()),
        )
        .order_by(commits.c.sha)
        .limit(bindparam("rows", type_=Integer()))
    )


_COMMITS_AFTER = _commits_after()
