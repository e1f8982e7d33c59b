"""Storing a page: its commits, each once per branch; totals, parents and counts per path, each commit once
per project.

A page is one statement per table, however many commits it has; only counts per path may take more.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    Select,
    Text,
    any_,
    bindparam,
    cast,
    func,
    select,
    text,
)
from sqlalchemy.engine import Dialect

from tsuzuki.collectors.commits.queries import rollup
from tsuzuki.collectors.commits.queries.details import PathIds, store_details
from tsuzuki.collectors.commits.queries.targets import Target
from tsuzuki.collectors.commits.sources.source import Commit
from tsuzuki.collectors.commits.tables import commit_targets, commit_totals, commits, projects
from tsuzuki.collectors.kit.upsert import insert_from
from tsuzuki.model import jsontext
from tsuzuki.store.sql.batch import Columns, pack, unpack
from tsuzuki.store.sql.dialect import is_sqlite
from tsuzuki.store.sql.prepared import execute

MONTH_LENGTH = len("2024-02")

_PROJECT = bindparam("project", type_=BigInteger())
_BRANCH = bindparam("branch", type_=Text())
_COMMIT_COLUMNS: Columns = {
    "sha": Text(),
    "author_name": Text(),
    "author_email": Text(),
    "committed_date_utc": Text(),
    "additions": Integer(),
    "deletions": Integer(),
}
_TOTAL_KEY: Columns = {"month": Text(), "author_email": Text(), "author_name": Text()}
_TOTAL_SUMS: Columns = {
    "commits": BigInteger(),
    "additions": BigInteger(),
    "deletions": BigInteger(),
}
_TOTAL_COLUMNS: Columns = {**_TOTAL_KEY, **_TOTAL_SUMS}


def store_page(
    connection: Connection, target: Target, page: Sequence[Commit], path_ids: PathIds | None = None
) -> int:
    """Store what is new in a page, and return how many commits that were."""
    if not page:
        return 0
    lock_project(connection, target.project_id)
    here, anywhere = stored_among(connection, target, [commit.sha for commit in page])
    store_details(connection, target.project_id, page, anywhere, path_ids)
    fresh = [commit for commit in page if commit.sha not in here] if here else page
    unique = {commit.sha: commit for commit in fresh}
    if len(unique) != len(fresh):
        fresh = list(unique.values())
    if not fresh:
        return 0
    _insert(connection, target, fresh)
    uncounted = [commit for commit in fresh if commit.sha not in anywhere] if anywhere else fresh
    _add_up(connection, target.project_id, uncounted)
    rollup.add_page(connection, target, fresh=fresh, uncounted=uncounted)
    return len(fresh)


def complete_page(
    connection: Connection, target: Target, page: Sequence[Commit], path_ids: PathIds
) -> None:
    """Store parents and counts per path of the commits in a page that are stored without them."""
    if not page:
        return
    lock_project(connection, target.project_id)
    _here, anywhere = stored_among(connection, target, [commit.sha for commit in page])
    stored = [commit for commit in page if commit.sha in anywhere]
    store_details(connection, target.project_id, stored, anywhere, path_ids)


_LOCK_PROJECT = (
    select(projects.c.project_id)
    .where(projects.c.project_id == _PROJECT)
    .with_for_update(key_share=True)
)


def lock_project(connection: Connection, project_id: int) -> None:
    """One page of a project at a time: two branches stored at once would both count a commit that is
    on both. SQLite has one writer anyway."""
    execute(connection, _LOCK_PROJECT, {"project": project_id})


# The page is one array, not a join: before PostgreSQL has counted a new table it believes a branch to be
# short, and would walk through all of it for each commit of the page. So it does that once at worst, and
# only with the array at hand does it look into it by hashing: a plan kept for any array would not.
_PLAN_EACH_TIME = text("SET LOCAL plan_cache_mode = force_custom_plan").columns()


def stored_among(
    connection: Connection, target: Target, shas: Sequence[str]
) -> tuple[set[str], set[str]]:
    """Which of these commits are stored already: for this branch, and for any of its project."""
    parameters = {"project": target.project_id, "shas": _as_parameter(connection, shas)}
    found = execute(connection, _select_known(connection.dialect), parameters).all()
    here = {sha for branch, sha in found if branch == target.branch}
    return here, {sha for _branch, sha in found}


def times_stored(connection: Connection, target: Target, shas: Sequence[str]) -> dict[str, int]:
    """How many rows of the branch each of these commits has; those without any are left out."""
    wanted = _as_parameter(connection, shas)
    parameters = {"project": target.project_id, "branch": target.branch, "shas": wanted}
    return dict(execute(connection, _select_times(connection.dialect), parameters).all())


@lru_cache
def _select_times(dialect: Dialect) -> Select[Any]:
    return (
        select(commits.c.sha, func.count())
        .where(
            commits.c.project_id == _PROJECT, commits.c.branch_name == _BRANCH, _in_page(dialect)
        )
        .group_by(commits.c.sha)
    )


@lru_cache
def _select_known(dialect: Dialect) -> Select[Any]:
    followed = select(commit_targets.c.branch_name).where(commit_targets.c.project_id == _PROJECT)
    return select(commits.c.branch_name, commits.c.sha).where(
        commits.c.project_id == _PROJECT, _in_page(dialect), commits.c.branch_name.in_(followed)
    )


def _as_parameter(connection: Connection, shas: Sequence[str]) -> Any:
    if is_sqlite(connection.dialect):
        return jsontext.encode(shas)
    execute(connection, _PLAN_EACH_TIME)
    return shas


def _in_page(dialect: Dialect) -> ColumnElement[bool]:
    if is_sqlite(dialect):
        values = func.json_each(bindparam("shas", type_=Text())).table_valued("value")
        return commits.c.sha.in_(select(values.c.value))
    return commits.c.sha == any_(cast(bindparam("shas"), ARRAY(Text)))


def _insert(connection: Connection, target: Target, fresh: Sequence[Commit]) -> None:
    rows = [commit[: len(_COMMIT_COLUMNS)] for commit in fresh]
    packed = pack(connection.dialect, _COMMIT_COLUMNS, rows)
    statement = _insert_commits(connection.dialect, packed.varying)
    execute(connection, statement, packed.with_(project=target.project_id, branch=target.branch))


@lru_cache
def _insert_commits(dialect: Dialect, varying: tuple[str, ...]) -> Any:
    page = unpack(dialect, _COMMIT_COLUMNS, varying)
    return insert_from(
        dialect, commits, {"project_id": _PROJECT, "branch_name": _BRANCH, **dict(page.c.items())}
    )


def _add_up(connection: Connection, project_id: int, uncounted: Sequence[Commit]) -> None:
    totals: dict[tuple[str, str, str], list[int]] = {}
    for _sha, name, email, date, additions, deletions, *_details in uncounted:
        total = totals.get(key := (date[:MONTH_LENGTH], email, name))
        if total is None:
            totals[key] = [1, additions, deletions]
        else:
            total[0] += 1
            total[1] += additions
            total[2] += deletions
    if not totals:
        return
    # In one order everywhere, or two transactions that add to the same rows could deadlock.
    rows = [(*key, *totals[key]) for key in sorted(totals)]
    packed = pack(connection.dialect, _TOTAL_COLUMNS, rows)
    statement = _add_totals(connection.dialect, packed.varying)
    execute(connection, statement, packed.with_(project=project_id))


@lru_cache
def _add_totals(dialect: Dialect, varying: tuple[str, ...]) -> Any:
    page = unpack(dialect, _TOTAL_COLUMNS, varying)
    statement = insert_from(
        dialect, commit_totals, {"project_id": _PROJECT, **dict(page.c.items())}
    )
    return statement.on_conflict_do_update(
        index_elements=["project_id", *_TOTAL_KEY],
        set_={name: commit_totals.c[name] + statement.excluded[name] for name in _TOTAL_SUMS},
    )
