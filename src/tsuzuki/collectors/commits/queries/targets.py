"""Targets: which branches are followed, up to which commit each is stored, and the range under way.

The head moves when a range is finished and nowhere else: with its last page, or once the commits that its pages lacked
are stored as well.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Connection,
    Text,
    and_,
    bindparam,
    case,
    func,
    select,
    tuple_,
    update,
)
from sqlalchemy.engine import Dialect

from tsuzuki.collectors.commits.sources.source import Range
from tsuzuki.collectors.commits.tables import commit_targets, commits
from tsuzuki.store.sql.dialect import insert_into
from tsuzuki.store.sql.prepared import execute, parameters_for
from tsuzuki.store.sql.stored_values import to_text
from tsuzuki.store.sql.types import KeyText

WALKED = "walked"
"""The mark of a range whose pages are all stored and lacked commits. A source takes it for no mark of its own, and
would start anew."""


@dataclass(frozen=True, order=True)
class Target:
    """One branch of one project."""

    project_id: int
    branch: str


@dataclass(frozen=True, kw_only=True)
class TargetState:
    """Where a branch stands. `wanted` is the range that was begun and not finished."""

    target: Target
    is_followed: bool
    is_default: bool
    head: str | None
    collected_at_utc: str | None
    wanted: Range | None
    mark: str | None
    range_collection_id: str | None
    range_commits: int
    is_closed: bool
    """Whether every parent that its commits name is known to be stored."""

    @property
    def has_commits(self) -> bool:
        """Whether anything of it was stored, be it the first pages of a range."""
        return self.head is not None or self.mark is not None


_COLUMNS = [column.name for column in commit_targets.c]
_PROJECT = bindparam("project", type_=BigInteger())
_BRANCH = bindparam("branch", type_=KeyText())
_IS_TARGET = (commit_targets.c.project_id == _PROJECT, commit_targets.c.branch_name == _BRANCH)
_SELECT = select(commit_targets).where(*_IS_TARGET)
_ALL = select(commit_targets).order_by(commit_targets.c.project_id, commit_targets.c.branch_name)
_FOLLOWED = _ALL.where(commit_targets.c.is_followed.is_(True))
_NEWEST = select(func.max(commits.c.committed_date_utc)).where(
    commits.c.project_id == _PROJECT, commits.c.branch_name == _BRANCH
)
_NEWEST_COMMIT = (
    select(commits.c.sha)
    .where(commits.c.project_id == _PROJECT, commits.c.branch_name == _BRANCH)
    .order_by(commits.c.committed_date_utc.desc())
    .limit(1)
)
_FIRST_WITH_COMMITS = (
    select(commits.c.project_id, commits.c.branch_name)
    .order_by(commits.c.project_id, commits.c.branch_name)
    .limit(1)
)
_NEXT_WITH_COMMITS = _FIRST_WITH_COMMITS.where(
    tuple_(commits.c.project_id, commits.c.branch_name) > tuple_(_PROJECT, _BRANCH)
)
_UNFOLLOW = (
    update(commit_targets)
    .where(*_IS_TARGET, commit_targets.c.is_followed.is_(True))
    .values(is_followed=False)
)
_COUNT = (
    update(commit_targets)
    .where(*_IS_TARGET)
    .values(range_run_id=bindparam("run"), range_commits=bindparam("counted"))
)
_START_RANGE = _COUNT.values(
    range_old=bindparam("old"),
    range_new=bindparam("new"),
    range_since_utc=bindparam("since"),
    range_mark=None,
)
_STAYS_CLOSED = and_(
    bindparam("is_proved", type_=Boolean()).is_(True),
    commit_targets.c.closed_sha.is_not_distinct_from(commit_targets.c.head_sha),
)
_CLOSE = update(commit_targets).where(*_IS_TARGET).values(closed_sha=commit_targets.c.head_sha)
_TURN_PAGE = _COUNT.values(range_mark=bindparam("mark"))
_FINISH_RANGE = _COUNT.values(
    head_sha=bindparam("head", type_=Text()),
    collected_at_utc=bindparam("collected_at"),
    closed_sha=case(
        (_STAYS_CLOSED, bindparam("head", type_=Text())), else_=commit_targets.c.closed_sha
    ),
    range_old=None,
    range_new=None,
    range_since_utc=None,
    range_mark=None,
)


def follow(connection: Connection, target: Target, *, is_default: bool = False) -> bool:
    """Take a branch among the targets; false if it was one already."""
    before = get(connection, target)
    values = {**_key(target), "is_default": is_default}
    execute(connection, _follow(connection.dialect), values)
    return before is None or not before.is_followed


@lru_cache
def _follow(dialect: Dialect) -> Any:
    values = {"is_followed": True, **parameters_for(commit_targets, "is_default")}
    return (
        insert_into(dialect, commit_targets)
        .values(project_id=_PROJECT, branch_name=_BRANCH, **values)
        .on_conflict_do_update(index_elements=["project_id", "branch_name"], set_=values)
    )


def unfollow(connection: Connection, target: Target) -> bool:
    """Leave a branch out from now on; what was collected stays."""
    return execute(connection, _UNFOLLOW, _key(target)).rowcount == 1


def add_targets_with_commits(connection: Connection) -> None:
    """Every branch that has commits is a target, also one whose commits came some other way."""
    known = {state.target for state in find(connection, with_unfollowed=True)}
    for target in with_history(connection):
        if target not in known:
            follow(connection, target)


def find(connection: Connection, *, with_unfollowed: bool = False) -> list[TargetState]:
    rows = execute(connection, _ALL if with_unfollowed else _FOLLOWED)
    return [_state(row) for row in rows.all()]


def get(connection: Connection, target: Target) -> TargetState | None:
    row = execute(connection, _SELECT, _key(target)).one_or_none()
    return None if row is None else _state(row)


def checkpoint(connection: Connection, target: Target) -> str | None:
    """The newest date stored of a branch: what is shown as "last collected"."""
    newest: str | None = execute(connection, _NEWEST, _key(target)).scalar_one()
    return newest


def start_range(
    connection: Connection, target: Target, wanted: Range, *, collection_id: str
) -> None:
    """Fix both ends of what is collected next."""
    values = {
        "old": wanted.old,
        "new": wanted.new,
        "since": to_text(wanted.since) if wanted.since else None,
        **_counted(connection, target, 0, collection_id),
    }
    execute(connection, _START_RANGE, {**_key(target), **values})


def turn_page(
    connection: Connection, target: Target, *, mark: str, added: int, collection_id: str
) -> None:
    """A page is stored: after a crash the next one is asked for."""
    counted = _counted(connection, target, added, collection_id)
    execute(connection, _TURN_PAGE, {**_key(target), "mark": mark, **counted})


def count_added(connection: Connection, target: Target, *, added: int, collection_id: str) -> None:
    """Commits that the pages of a range lacked are stored."""
    execute(
        connection, _COUNT, {**_key(target), **_counted(connection, target, added, collection_id)}
    )


def finish_range(
    connection: Connection,
    target: Target,
    *,
    head: str,
    added: int,
    collection_id: str,
    now: datetime,
    is_proved: bool,
) -> None:
    """The range is stored: the head moves. `is_proved` says whether the parents of all its commits were known."""
    counted = _counted(connection, target, added, collection_id)
    values = {"head": head, "collected_at": to_text(now), "is_proved": is_proved, **counted}
    execute(connection, _FINISH_RANGE, {**_key(target), **values})


def close(connection: Connection, target: Target) -> None:
    """Every parent that a commit up to the head names is stored."""
    execute(connection, _CLOSE, _key(target))


def added_in(connection: Connection, target: Target, collection_id: str) -> int:
    """How many commits a collection has added to a branch so far."""
    state = get(connection, target)
    return state.range_commits if state and state.range_collection_id == collection_id else 0


def _counted(
    connection: Connection, target: Target, added: int, collection_id: str
) -> dict[str, int | str]:
    """Counting goes on within one collection."""
    return {"run": collection_id, "counted": added_in(connection, target, collection_id) + added}


def with_history(connection: Connection) -> Iterator[Target]:
    """Each pair once, by one look into the index per pair instead of a walk through all commits."""
    row = execute(connection, _FIRST_WITH_COMMITS).one_or_none()
    while row is not None:
        target = Target(*row)
        yield target
        row = execute(connection, _NEXT_WITH_COMMITS, _key(target)).one_or_none()


def newest_commits(connection: Connection, project_ids: Collection[int]) -> dict[int, list[str]]:
    """The newest commit of each branch, by project."""
    found: dict[int, list[str]] = {}
    for target in with_history(connection):
        if target.project_id in project_ids:
            sha = execute(connection, _NEWEST_COMMIT, _key(target)).scalar_one()
            found.setdefault(target.project_id, []).append(sha)
    return found


def _key(target: Target) -> dict[str, int | str]:
    return {"project": target.project_id, "branch": target.branch}


def _state(values: Any) -> TargetState:
    row = dict(zip(_COLUMNS, values, strict=True))
    since = row["range_since_utc"]
    wanted = None
    if row["range_new"] is not None:
        wanted = Range(
            old=row["range_old"],
            new=row["range_new"],
            since=datetime.fromisoformat(since) if since else None,
        )
    return TargetState(
        target=Target(row["project_id"], row["branch_name"]),
        is_followed=row["is_followed"],
        is_default=row["is_default"],
        head=row["head_sha"],
        collected_at_utc=row["collected_at_utc"],
        wanted=wanted,
        mark=row["range_mark"],
        range_collection_id=row["range_run_id"],
        range_commits=row["range_commits"],
        is_closed=row["closed_sha"] == row["head_sha"],
    )
