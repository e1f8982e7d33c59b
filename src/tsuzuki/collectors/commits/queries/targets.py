"""Targets: which branches are followed, up to which commit each is stored, and the range under way.

The head moves in the transaction of a range's last page and nowhere else.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, RowMapping, func, select, tuple_, update

from tsuzuki.collectors.commits.source import Range
from tsuzuki.collectors.commits.tables import commit_targets, commits
from tsuzuki.store.sql.dialect import insert_into
from tsuzuki.store.sql.types import to_text


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
    range_run_id: str | None
    range_commits: int


def follow(connection: Connection, target: Target, *, is_default: bool = False) -> bool:
    """Take a branch among the targets; false if it was one already."""
    before = get(connection, target)
    values = {"is_followed": True, "is_default": is_default}
    statement = insert_into(connection.dialect, commit_targets).values(
        project_id=target.project_id, branch_name=target.branch, **values
    )
    connection.execute(
        statement.on_conflict_do_update(index_elements=["project_id", "branch_name"], set_=values)
    )
    return before is None or not before.is_followed


def unfollow(connection: Connection, target: Target) -> bool:
    """Leave a branch out from now on; what was collected stays."""
    statement = (
        update(commit_targets)
        .where(*_is(target), commit_targets.c.is_followed.is_(True))
        .values(is_followed=False)
    )
    return connection.execute(statement).rowcount == 1


def adopt_those_with_history(connection: Connection) -> None:
    """Every branch that has commits is a target, also one whose commits came some other way."""
    known = {state.target for state in find(connection, with_unfollowed=True)}
    for target in _with_history(connection):
        if target not in known:
            follow(connection, target)


def find(connection: Connection, *, with_unfollowed: bool = False) -> list[TargetState]:
    statement = select(commit_targets).order_by(
        commit_targets.c.project_id, commit_targets.c.branch_name
    )
    if not with_unfollowed:
        statement = statement.where(commit_targets.c.is_followed.is_(True))
    return [_state(row) for row in connection.execute(statement).mappings()]


def get(connection: Connection, target: Target) -> TargetState | None:
    row = connection.execute(select(commit_targets).where(*_is(target))).mappings().one_or_none()
    return None if row is None else _state(row)


def checkpoint(connection: Connection, target: Target) -> str | None:
    """The newest date stored of a branch: what is shown as "last collected"."""
    newest: str | None = connection.execute(
        select(func.max(commits.c.committed_date_utc)).where(
            commits.c.project_id == target.project_id, commits.c.branch_name == target.branch
        )
    ).scalar_one()
    return newest


def begin_range(connection: Connection, target: Target, wanted: Range, *, run_id: str) -> None:
    """Fix both ends of what is collected next. Counting goes on within one bulk collection."""
    state = get(connection, target)
    counted = state.range_commits if state and state.range_run_id == run_id else 0
    connection.execute(
        update(commit_targets)
        .where(*_is(target))
        .values(
            range_old=wanted.old,
            range_new=wanted.new,
            range_since_utc=to_text(wanted.since) if wanted.since else None,
            range_mark=None,
            range_run_id=run_id,
            range_commits=counted,
        )
    )


def turn_page(
    connection: Connection, target: Target, *, mark: str, added: int, run_id: str
) -> None:
    """A page is stored: after a crash the next one is asked for."""
    connection.execute(
        update(commit_targets)
        .where(*_is(target))
        .values(range_mark=mark, **_counted(connection, target, added, run_id))
    )


def finish_range(
    connection: Connection, target: Target, *, head: str, added: int, run_id: str, now: datetime
) -> None:
    """The last page is stored: the head moves."""
    connection.execute(
        update(commit_targets)
        .where(*_is(target))
        .values(
            head_sha=head,
            collected_at_utc=to_text(now),
            range_old=None,
            range_new=None,
            range_since_utc=None,
            range_mark=None,
            **_counted(connection, target, added, run_id),
        )
    )


def drop_range(connection: Connection, target: Target) -> None:
    """What was begun cannot be finished: the source no longer has it."""
    connection.execute(
        update(commit_targets)
        .where(*_is(target))
        .values(range_old=None, range_new=None, range_since_utc=None, range_mark=None)
    )


def added_in(connection: Connection, target: Target, run_id: str) -> int:
    """How many commits a bulk collection has added to a branch so far."""
    state = get(connection, target)
    return state.range_commits if state and state.range_run_id == run_id else 0


def _counted(
    connection: Connection, target: Target, added: int, run_id: str
) -> dict[str, int | str]:
    return {
        "range_run_id": run_id,
        "range_commits": added_in(connection, target, run_id) + added,
    }


def _with_history(connection: Connection) -> Iterator[Target]:
    """Each pair once, by one look into the index per pair instead of a walk through all commits."""
    pair = tuple_(commits.c.project_id, commits.c.branch_name)
    first = (
        select(commits.c.project_id, commits.c.branch_name)
        .order_by(commits.c.project_id, commits.c.branch_name)
        .limit(1)
    )
    row = connection.execute(first).one_or_none()
    while row is not None:
        target = Target(row.project_id, row.branch_name)
        yield target
        row = connection.execute(
            first.where(pair > tuple_(target.project_id, target.branch))
        ).one_or_none()


def _is(target: Target) -> tuple[ColumnElement[bool], ...]:
    return (
        commit_targets.c.project_id == target.project_id,
        commit_targets.c.branch_name == target.branch,
    )


def _state(row: RowMapping) -> TargetState:
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
        range_run_id=row["range_run_id"],
        range_commits=row["range_commits"],
    )
