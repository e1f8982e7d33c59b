"""Details of commits, once per project: their parents, and the counts of each path they changed.

A commit's row in `commit_parents` is written with its counts, so a commit that has it is complete. Paths are
stored once and named by number. A path is text: what was not UTF-8 in it was replaced, a very long one was
shortened (`git_log`), and paths of a commit that became the same were added together, so the counts of a
commit always add up to its own.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

from sqlalchemy import BigInteger, Connection, Integer, Text, bindparam, exists, select
from sqlalchemy.engine import Dialect

from tsuzuki.collectors.commits.queries import rollup
from tsuzuki.collectors.commits.queries.targets import Target
from tsuzuki.collectors.commits.sources.source import Commit
from tsuzuki.collectors.commits.tables import (
    commit_parents,
    commit_path_counts,
    commit_paths,
    commits,
)
from tsuzuki.collectors.kit.upsert import insert_from
from tsuzuki.store.sql.batch import Columns, unpack
from tsuzuki.store.sql.prepared import execute, execute_batch
from tsuzuki.store.sql.value_list import in_list

ROWS_MAX = 20_000
"""Counts, or paths, in one statement: a single commit may change a hundred thousand files."""

PATH_IDS_MAX = 200_000

_PROJECT = bindparam("project", type_=BigInteger())
_BRANCH = bindparam("branch", type_=Text())
_PARENT_COLUMNS: Columns = {"commit_sha": Text(), "parent_count": Integer(), "parents": Text()}
_PATH_COLUMNS: Columns = {"path": Text()}
_COUNT_COLUMNS: Columns = {
    "commit_sha": Text(),
    "path_id": BigInteger(),
    "additions": Integer(),
    "deletions": Integer(),
}


class PathIds(dict[str, int]):
    """The numbers of a project's paths, remembered from page to page. To be cleared when a transaction
    that added some was not committed."""


def store_details(
    connection: Connection,
    project_id: int,
    page: Sequence[Commit],
    stored: Collection[str],
    path_ids: PathIds | None = None,
) -> None:
    """Store the details of those commits that lack them; `stored` are the ids that had been stored before,
    with details or without."""
    complete = _complete_among(connection, project_id, stored) if stored else ()
    if len(complete) < len(stored):
        rollup.forget(connection, project_id)  # it counts these as commits of unknown parents
    lacking = {commit.sha: commit for commit in page if commit.sha not in complete}
    # In the order of the key: so the index is written from left to right.
    ordered = [lacking[sha] for sha in sorted(lacking)]
    project = {"project": project_id}
    parents = [(one.sha, len(one.parents.split()), one.parents) for one in ordered]
    execute_batch(connection, _add_parents, _PARENT_COLUMNS, parents, project)
    numbers = PathIds() if path_ids is None else path_ids
    _number_paths(connection, project_id, ordered, numbers)
    counts = (
        (one.sha, numbers[path], additions, deletions)
        for one in ordered
        for path, additions, deletions in one.paths
    )
    for rows in _chunks(counts):
        execute_batch(connection, _add_counts, _COUNT_COLUMNS, rows, project)


_COMPLETE = select(commit_parents.c.commit_sha).where(
    commit_parents.c.project_id == _PROJECT, in_list(commit_parents.c.commit_sha, "shas")
)


def _complete_among(connection: Connection, project_id: int, shas: Collection[str]) -> set[str]:
    found = execute(connection, _COMPLETE, {"project": project_id, "shas": shas})
    return set(found.scalars())


_LACKING = (
    select(commits.c.sha)
    .where(
        commits.c.project_id == _PROJECT,
        commits.c.branch_name == _BRANCH,
        ~exists().where(
            commit_parents.c.project_id == commits.c.project_id,
            commit_parents.c.commit_sha == commits.c.sha,
        ),
    )
    .limit(1)
)


def has_incomplete(connection: Connection, target: Target) -> bool:
    """Whether a commit of the branch is stored without its details."""
    key = {"project": target.project_id, "branch": target.branch}
    return execute(connection, _LACKING, key).one_or_none() is not None


_PATHS = select(commit_paths.c.path, commit_paths.c.path_id).where(
    commit_paths.c.project_id == _PROJECT, in_list(commit_paths.c.path, "paths")
)


def _number_paths(
    connection: Connection, project_id: int, page: Sequence[Commit], numbers: PathIds
) -> None:
    """Have a number for each path of the page, in `numbers` and in the table."""
    if len(numbers) > PATH_IDS_MAX:
        numbers.clear()
    unknown = {path for one in page for path, *_ in one.paths if path not in numbers}
    for paths in _chunks(sorted(unknown)):
        project = {"project": project_id}
        numbers.update(execute(connection, _PATHS, {**project, "paths": paths}).all())
        new = [(path,) for path in paths if path not in numbers]
        numbers.update(execute_batch(connection, _add_paths, _PATH_COLUMNS, new, project).all())


def _chunks(rows: Iterable[Any]) -> Iterator[list[Any]]:
    rest = iter(rows)
    while chunk := list(islice(rest, ROWS_MAX)):
        yield chunk


@lru_cache
def _add_parents(dialect: Dialect, varying: tuple[str, ...]) -> Any:
    page = unpack(dialect, _PARENT_COLUMNS, varying)
    values = {"project_id": _PROJECT, **dict(page.c.items())}
    return insert_from(dialect, commit_parents, values).on_conflict_do_nothing()


@lru_cache
def _add_paths(dialect: Dialect, varying: tuple[str, ...]) -> Any:
    page = unpack(dialect, _PATH_COLUMNS, varying)
    values = {"project_id": _PROJECT, **dict(page.c.items())}
    statement = insert_from(dialect, commit_paths, values)
    return statement.returning(commit_paths.c.path, commit_paths.c.path_id)


@lru_cache
def _add_counts(dialect: Dialect, varying: tuple[str, ...]) -> Any:
    page = unpack(dialect, _COUNT_COLUMNS, varying)
    values = {"project_id": _PROJECT, **dict(page.c.items())}
    return insert_from(dialect, commit_path_counts, values).on_conflict_do_nothing()
