"""Closure of a branch under parents: which commits are named as a parent and are not stored.

A branch is complete if every commit that can be reached from its head, by the parents that stored commits name, is
stored for it. What a force push left behind cannot be reached, and does not count.
"""

from collections.abc import Collection
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    CTE,
    BigInteger,
    ColumnElement,
    Connection,
    FromClause,
    Select,
    Text,
    and_,
    bindparam,
    exists,
    func,
    literal_column,
    select,
    true,
)
from sqlalchemy.engine import Dialect

from tsuzuki.collectors.commits.queries.targets import Target
from tsuzuki.collectors.commits.tables import commit_absences, commit_parents, commits
from tsuzuki.collectors.kit.upsert import insert_from
from tsuzuki.store.sql.batch import Columns, unpack
from tsuzuki.store.sql.dialect import is_sqlite
from tsuzuki.store.sql.prepared import execute, execute_batch
from tsuzuki.store.sql.value_list import in_list

_PROJECT = bindparam("project", type_=BigInteger())
_BRANCH = bindparam("branch", type_=Text())
_RUN = bindparam("collection", type_=Text())
_ABSENCE_COLUMNS: Columns = {"commit_sha": Text()}


def missing_from(connection: Connection, target: Target, head: str) -> set[str]:
    """The commits reachable from `head` that are not stored for the branch and that a stored commit names as its
    parent; `head` itself if it is not stored. What lies behind a missing commit is not known, and not in the set."""
    values = {"project": target.project_id, "branch": target.branch, "head": head}
    return set(execute(connection, _select_missing(connection.dialect), values).scalars())


def without_parents(connection: Connection, target: Target, head: str) -> set[str]:
    """The commits reachable from `head` that are stored for the branch without their parents."""
    values = {"project": target.project_id, "branch": target.branch, "head": head}
    return set(execute(connection, _select_without_parents(connection.dialect), values).scalars())


_OF_BRANCH = (commits.c.project_id == _PROJECT, commits.c.branch_name == _BRANCH)


@lru_cache
def _select_missing(dialect: Dialect) -> Select[Any]:
    every = _reachable(dialect)
    stored = exists().where(*_OF_BRANCH, commits.c.sha == every.c.sha)
    return select(every.c.sha).where(~stored)


@lru_cache
def _select_without_parents(dialect: Dialect) -> Select[Any]:
    every = _reachable(dialect)
    has_parents = exists().where(
        commit_parents.c.project_id == _PROJECT, commit_parents.c.commit_sha == every.c.sha
    )
    stored = exists().where(*_OF_BRANCH, commits.c.sha == every.c.sha)
    return select(every.c.sha).where(stored, ~has_parents)


def _reachable(dialect: Dialect) -> CTE:
    """Every commit that can be reached from `head` through stored commits of the branch, which end with the first
    missing one on each way."""
    reachable = select(bindparam("head", type_=Text()).label("sha")).cte(
        "reachable", recursive=True
    )
    named, parent = _named_parents(dialect)
    parents_of = and_(
        commit_parents.c.project_id == _PROJECT, commit_parents.c.commit_sha == commits.c.sha
    )
    step = (
        select(parent)
        .select_from(
            reachable.join(commits, and_(*_OF_BRANCH, commits.c.sha == reachable.c.sha))
            .join(commit_parents, parents_of)
            .join(named, true())
        )
        .where(commit_parents.c.parent_count > 0)
    )
    return reachable.union(step)


def _named_parents(dialect: Dialect) -> tuple[FromClause, ColumnElement[str]]:
    """The parents of a row of `commit_parents`, one by one."""
    ids: ColumnElement[Any] = commit_parents.c.parents
    if is_sqlite(dialect):
        quoted = func.replace(ids, literal_column("' '"), literal_column("""'","'"""))
        as_json = literal_column("""'["'""").concat(quoted).concat(literal_column("""'"]'"""))
        named = func.json_each(as_json).table_valued("value", name="named")
        return named, named.c.value
    array = func.string_to_array(ids, literal_column("' '"))
    unnested = func.unnest(array).table_valued("value", name="named").render_derived()
    return unnested, unnested.c.value


_ABSENT = select(commit_absences.c.commit_sha).where(
    commit_absences.c.project_id == _PROJECT,
    commit_absences.c.run_id != _RUN,
    in_list(commit_absences.c.commit_sha, "shas"),
)


def absent(connection: Connection, project_id: int, shas: Collection[str]) -> set[str]:
    """Those commits that the source does not have, as a collection has found."""
    return absent_before(connection, project_id, shas, collection_id="")


def absent_before(
    connection: Connection, project_id: int, shas: Collection[str], *, collection_id: str
) -> set[str]:
    """Those commits that the source did not have in an earlier collection than `collection_id` either."""
    values = {"project": project_id, "collection": collection_id, "shas": shas}
    return set(execute(connection, _ABSENT, values).scalars())


def add_absences(
    connection: Connection, project_id: int, shas: Collection[str], *, collection_id: str
) -> None:
    """Record that the source does not have these commits. The first collection that found it so is kept."""
    rows = [(sha,) for sha in sorted(shas)]
    values = {"project": project_id, "collection": collection_id}
    execute_batch(connection, _add_absences, _ABSENCE_COLUMNS, rows, values)


@lru_cache
def _add_absences(dialect: Dialect, varying: tuple[str, ...]) -> Any:
    batch = unpack(dialect, _ABSENCE_COLUMNS, varying)
    values: dict[str, ColumnElement[Any]] = {"project_id": _PROJECT, "run_id": _RUN}
    values.update(batch.c.items())
    return insert_from(dialect, commit_absences, values).on_conflict_do_nothing()
