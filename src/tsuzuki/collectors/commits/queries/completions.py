"""Completions: up to where the details of a branch's commits are stored.

A branch is complete if its completion says the same as its target. A statement that moves a complete target moves its
completion in the same transaction; a process that knows of no completions moves the target alone, and so
leaves a branch that is no longer complete.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import BigInteger, Connection, Text, and_, bindparam, func, select, update
from sqlalchemy.engine import Dialect

from tsuzuki.collectors.commits.queries.targets import Target
from tsuzuki.collectors.commits.sources.source import Range
from tsuzuki.collectors.commits.tables import (
    ResultStatus,
    bulk_collection_results,
    commit_completions,
    commit_parents,
    commit_targets,
    commit_totals,
    projects,
)
from tsuzuki.store.sql.dialect import insert_into
from tsuzuki.store.sql.prepared import execute
from tsuzuki.store.sql.types import KeyText

HEADS_MAX = 3

_targets, _completions = commit_targets, commit_completions
_PROJECT = bindparam("project", type_=BigInteger())
_BRANCH = bindparam("branch", type_=KeyText())
_IS_BRANCH = (_completions.c.project_id == _PROJECT, _completions.c.branch_name == _BRANCH)
_POSITION = ("head_sha", "range_old", "range_new", "range_mark")


@dataclass(frozen=True, kw_only=True)
class Completion:
    """Up to where a branch is complete. `wanted` is the range whose completion has started."""

    head: str | None = None
    wanted: Range | None = None
    mark: str | None = None


@dataclass(frozen=True, kw_only=True)
class Completing:
    """A project of which a branch is being completed: how many of its commits are complete, and in all."""

    path: str
    complete_commits: int
    commits: int


_SELECT = select(*(_completions.c[name] for name in _POSITION)).where(*_IS_BRANCH)
_IS_LEVEL = (
    _completions.c.project_id == _targets.c.project_id,
    _completions.c.branch_name == _targets.c.branch_name,
    *(_completions.c[name].is_not_distinct_from(_targets.c[name]) for name in _POSITION),
)
_COMPLETE = select(_targets.c.branch_name).where(*_IS_BRANCH, *_IS_LEVEL)
_COMPLETE_HEADS = (
    select(_targets.c.head_sha)
    .where(
        _targets.c.project_id == _PROJECT,
        _targets.c.branch_name != _BRANCH,
        _targets.c.head_sha.is_not(None),
        *_IS_LEVEL,
    )
    .order_by(_targets.c.is_default.desc(), _targets.c.branch_name)
    .limit(HEADS_MAX)
)
_COPY = (
    update(_completions)
    .where(*_IS_BRANCH)
    .values(
        {
            name: select(_targets.c[name])
            .where(_targets.c.project_id == _PROJECT, _targets.c.branch_name == _BRANCH)
            .scalar_subquery()
            for name in _POSITION
        }
    )
)
_TURN_PAGE = update(_completions).where(*_IS_BRANCH).values(range_mark=bindparam("mark"))
_FINISH = (
    update(_completions)
    .where(*_IS_BRANCH)
    .values(head_sha=bindparam("head"), range_old=None, range_new=None, range_mark=None)
)


def get(connection: Connection, target: Target) -> Completion:
    row = execute(connection, _SELECT, _key(target)).one_or_none()
    if row is None:
        return Completion()
    head, old, new, mark = row
    return Completion(head=head, wanted=Range(old=old, new=new) if new else None, mark=mark)


def is_complete(connection: Connection, target: Target) -> bool:
    """Whether every stored commit of the branch has its details."""
    return execute(connection, _COMPLETE, _key(target)).one_or_none() is not None


def complete_heads(connection: Connection, target: Target) -> list[str]:
    """Heads of other branches of the project that are complete, the default branch first."""
    return execute(connection, _COMPLETE_HEADS, _key(target)).scalars()


_results = bulk_collection_results
_COMPLETING = (
    select(
        projects.c.path,
        select(func.count())
        .select_from(commit_parents)
        .where(commit_parents.c.project_id == projects.c.project_id)
        .scalar_subquery()
        .label("complete_commits"),
        select(func.coalesce(func.sum(commit_totals.c.commits), 0))
        .where(commit_totals.c.project_id == projects.c.project_id)
        .scalar_subquery()
        .label("commits"),
    )
    .where(
        projects.c.project_id.in_(
            select(_completions.c.project_id)
            .join(
                _targets,
                and_(
                    _targets.c.project_id == _completions.c.project_id,
                    _targets.c.branch_name == _completions.c.branch_name,
                    _targets.c.range_new.is_(None),
                ),
            )
            .join(
                _results,
                and_(
                    _results.c.run_id == bindparam("collection", type_=Text()),
                    _results.c.project_id == _completions.c.project_id,
                    _results.c.branch_name == _completions.c.branch_name,
                    _results.c.status == ResultStatus.PENDING,
                ),
            )
            .where(_completions.c.range_new.is_not(None))
        )
    )
    .order_by(projects.c.path)
)


def in_work(connection: Connection, collection_id: str) -> list[Completing]:
    """The projects of which a branch is being completed in a collection."""
    rows = execute(connection, _COMPLETING, {"collection": collection_id}).mappings()
    return [Completing(**{**row, "commits": int(row["commits"])}) for row in rows]


@contextmanager
def kept_complete(connection: Connection, target: Target) -> Iterator[bool]:
    """Inside, a page is stored with its details and the target moved; a complete branch, which it says, stays so."""
    was_complete = is_complete(connection, target)
    yield was_complete
    if was_complete:
        execute(connection, _COPY, _key(target))


def start_empty(connection: Connection, target: Target) -> None:
    """A branch without a stored commit is complete."""
    values = {**_key(target), "old": None, "new": None}
    execute(connection, _start_empty(connection.dialect), values)


def start_range(connection: Connection, target: Target, wanted: Range) -> None:
    """Fix both ends of what is completed next."""
    values = {**_key(target), "old": wanted.old, "new": wanted.new}
    execute(connection, _start(connection.dialect), values)


def turn_page(connection: Connection, target: Target, *, mark: str) -> None:
    """A page is completed: after a crash the next one is asked for."""
    execute(connection, _TURN_PAGE, {**_key(target), "mark": mark})


def finish_range(connection: Connection, target: Target, *, head: str) -> None:
    """All that was stored up to this head is complete."""
    execute(connection, _FINISH, {**_key(target), "head": head})


@lru_cache
def _start(dialect: Dialect) -> Any:
    statement = _insert(dialect)
    moved = {name: statement.excluded[name] for name in ("range_old", "range_new", "range_mark")}
    return statement.on_conflict_do_update(index_elements=["project_id", "branch_name"], set_=moved)


@lru_cache
def _start_empty(dialect: Dialect) -> Any:
    return _insert(dialect).on_conflict_do_nothing()


def _insert(dialect: Dialect) -> Any:
    return insert_into(dialect, _completions).values(
        project_id=_PROJECT,
        branch_name=_BRANCH,
        range_old=bindparam("old", type_=Text()),
        range_new=bindparam("new", type_=Text()),
        range_mark=None,
    )


def _key(target: Target) -> dict[str, int | str]:
    return {"project": target.project_id, "branch": target.branch}
