"""Failures by group: stored in the transaction that ends a run, read as groups.

Rows are only inserted, never counted up: runs that fail at the same time do not wait for each other.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    Connection,
    Integer,
    Select,
    Subquery,
    Text,
    bindparam,
    delete,
    exists,
    func,
    literal_column,
    select,
    update,
)
from sqlalchemy.engine import Dialect

from tsuzuki.model.states import RunState
from tsuzuki.store.schema.history_tables import failure_groups, run_failures
from tsuzuki.store.schema.tables import job_definitions, job_runs
from tsuzuki.store.sql.batch import Columns, unpack
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.dialect import upsert_from
from tsuzuki.store.sql.prepared import execute, execute_batch, parameters_for
from tsuzuki.store.sql.types import BigId, PlainText, UtcTime
from tsuzuki.store.sql.value_list import in_list


class RunFailure(NamedTuple):
    """A run that failed, and its group."""

    run_id: int
    group_id: str
    job_definition_id: int
    signature: str


@dataclass(frozen=True, kw_only=True)
class FailureGroup:
    """Failures of one signature since a time."""

    id: str
    signature: str
    failures: int
    jobs: int
    first_failed_at: datetime
    last_failed_at: datetime
    last_run_id: int
    acknowledged_run_id: int | None
    acknowledged_at: datetime | None
    acknowledged_by: str | None
    job_names: tuple[str, ...] = ()
    """The jobs that were hit since that time, if they were asked for."""

    @property
    def is_open(self) -> bool:
        """Whether there is a failure that was not acknowledged: of a newer run, or later. An older run can fail
        after a newer one."""
        if self.acknowledged_run_id is None or self.acknowledged_at is None:
            return True
        is_of_newer_run = self.last_run_id > self.acknowledged_run_id
        return is_of_newer_run or self.last_failed_at > self.acknowledged_at


_GROUP_COLUMNS: Columns = {"id": Text(), "signature": PlainText()}
_FAILURE_COLUMNS: Columns = {"run_id": BigId, "group_id": Text(), "job_definition_id": BigId}


def note(connection: Connection, failures: Sequence[RunFailure]) -> None:
    """Store failures, in the transaction of the moves that ended the runs."""
    # In one order for all: two that insert the same new groups must not wait for each other.
    groups = sorted({failure.group_id: failure.signature for failure in failures}.items())
    rows = sorted(failure[:3] for failure in failures)
    execute_batch(connection, _add_groups, _GROUP_COLUMNS, groups)
    execute_batch(connection, _add_failures, _FAILURE_COLUMNS, rows)


@lru_cache
def _add_groups(dialect: Dialect, varying: tuple[str, ...]) -> Any:
    rows = unpack(dialect, _GROUP_COLUMNS, varying)
    names = list(_GROUP_COLUMNS)
    return upsert_from(
        dialect, failure_groups, names, select(*(rows.c[name] for name in names))
    ).on_conflict_do_nothing(index_elements=[failure_groups.c.id])


@lru_cache
def _add_failures(dialect: Dialect, varying: tuple[str, ...]) -> Any:
    rows = unpack(dialect, _FAILURE_COLUMNS, varying)
    names = list(_FAILURE_COLUMNS)
    selected = select(*(rows.c[name] for name in names), db_now())
    return upsert_from(
        dialect, run_failures, [*names, "failed_at"], selected
    ).on_conflict_do_nothing(index_elements=[run_failures.c.run_id])


LOOKED_MAX = 20_000
"""Failures that groups are made of: the newest. What is older is not counted."""

UNRESOLVED_LOOKED_MAX = 5_000
"""The same where each is asked whether a retry has succeeded."""

_LOOKED = select(
    run_failures.c.group_id,
    run_failures.c.job_definition_id,
    run_failures.c.failed_at,
    run_failures.c.run_id,
).limit(literal_column(str(LOOKED_MAX)))
_SINCE = run_failures.c.failed_at >= bindparam("since", type_=UtcTime())
_NEWEST_ID = 2**63 - 1
_IN_GROUP = run_failures.c.group_id == bindparam("wanted", type_=Text())
_OF_GROUP = _LOOKED.where(_IN_GROUP).order_by(run_failures.c.run_id.desc()).subquery("looked")


def _grouped(looked: Subquery) -> Select[Any]:
    """Counted by group first, and only then joined with what is known of the group."""
    counted = (
        select(
            looked.c.group_id,
            func.count().label("failures"),
            func.count(func.distinct(looked.c.job_definition_id)).label("jobs"),
            func.min(looked.c.failed_at).label("first_failed_at"),
            func.max(looked.c.failed_at).label("last_failed_at"),
            func.max(looked.c.run_id).label("last_run_id"),
        )
        .group_by(looked.c.group_id)
        .subquery("counted")
    )
    figures = [column for column in counted.c if column.name != "group_id"]
    return select(*failure_groups.c, *figures).join_from(
        counted, failure_groups, failure_groups.c.id == counted.c.group_id
    )


_NEWEST = _LOOKED.where(_SINCE).order_by(run_failures.c.failed_at.desc())
_FAILED, _DONE = job_runs.alias("failed"), job_runs.alias("done")
_IS_MADE_GOOD = exists(
    select(_DONE.c.id)
    .join_from(
        _FAILED, _DONE, _DONE.c.origin_id == func.coalesce(_FAILED.c.origin_id, _FAILED.c.id)
    )
    .where(
        _FAILED.c.id == run_failures.c.run_id,
        _DONE.c.id > _FAILED.c.id,
        _DONE.c.state == RunState.SUCCEEDED.value,
    )
)
"""A later attempt at the same work has succeeded."""

_BEFORE_AT = bindparam("before_at", type_=UtcTime())


def _listed(groups: Select[Any]) -> Select[Any]:
    last = groups.selected_columns.last_failed_at
    is_after = (last < _BEFORE_AT) | (
        (last == _BEFORE_AT) & (failure_groups.c.id > bindparam("after_id", type_=Text()))
    )
    ordered = groups.where(is_after).order_by(last.desc(), failure_groups.c.id)
    return ordered.limit(bindparam("limit", type_=Integer()))


def _open(groups: Select[Any]) -> Select[Any]:
    found = groups.selected_columns
    acknowledged = func.coalesce(failure_groups.c.acknowledged_run_id, 0)
    return groups.where(
        (found.last_run_id > acknowledged)
        | (failure_groups.c.acknowledged_at < found.last_failed_at)
    )


_LIST = _listed(_grouped(_NEWEST.subquery("looked")))
_LIST_OPEN = _open(_LIST)
_LIST_UNRESOLVED = _open(
    _listed(
        _grouped(
            _NEWEST.where(~_IS_MADE_GOOD)
            .limit(literal_column(str(UNRESOLVED_LOOKED_MAX)))
            .subquery("looked")
        )
    )
)
_IS_WANTED = failure_groups.c.id == bindparam("wanted", type_=Text())
_ONE = _grouped(_OF_GROUP)


class GroupPosition(NamedTuple):
    """After which group a page continues."""

    last_failed_at: datetime
    id: str


_FIRST = GroupPosition(datetime(9999, 12, 31, tzinfo=UTC), "")


def find(
    connection: Connection,
    *,
    since: datetime,
    with_acknowledged: bool,
    limit: int,
    after: GroupPosition | None = None,
    unresolved: bool = False,
) -> list[FailureGroup]:
    """Groups with a failure since then, the newest failure first; counts are of that time. `unresolved` are open ones,
    without the failures that a retry has made good."""
    statement = _LIST if with_acknowledged else _LIST_OPEN
    if unresolved:
        statement = _LIST_UNRESOLVED
    before_at, after_id = after or _FIRST
    values = {"since": since, "limit": limit, "before_at": before_at, "after_id": after_id}
    return [_group(row) for row in execute(connection, statement, values).mappings()]


def get(connection: Connection, group_id: str) -> FailureGroup | None:
    """A group with its failures that are still stored."""
    row = execute(connection, _ONE, {"wanted": group_id}).mapping_or_none()
    return None if row is None else _group(row)


_RUN_IDS = (
    select(run_failures.c.run_id)
    .where(_IN_GROUP, run_failures.c.run_id < bindparam("before_id", type_=BigInteger()))
    .order_by(run_failures.c.run_id.desc())
    .limit(bindparam("limit", type_=Integer()))
)
_JOB_NAMES = (
    select(job_definitions.c.name)
    .where(job_definitions.c.id.in_(select(_OF_GROUP.c.job_definition_id).correlate(None)))
    .order_by(job_definitions.c.name)
)


def run_ids(
    connection: Connection, group_id: str, *, before_id: int | None = None, limit: int
) -> list[int]:
    """The runs of a group, newest first. `before_id` continues a page."""
    values = {"wanted": group_id, "before_id": before_id or _NEWEST_ID, "limit": limit}
    return list(execute(connection, _RUN_IDS, values).scalars())


_GROUP_OF_RUN = select(run_failures.c.group_id).where(
    run_failures.c.run_id == bindparam("run_id", type_=BigInteger())
)


def group_of_run(connection: Connection, run_id: int) -> str | None:
    """The id of the group that a run failed in; None if it did not fail."""
    found: str | None = execute(connection, _GROUP_OF_RUN, {"run_id": run_id}).scalar_one_or_none()
    return found


_GROUP_JOBS = _LOOKED.where(_SINCE, in_list(run_failures.c.group_id, "groups")).subquery("looked")
_JOBS_OF_GROUPS = (
    select(_GROUP_JOBS.c.group_id, job_definitions.c.name)
    .distinct()
    .join_from(
        _GROUP_JOBS, job_definitions, job_definitions.c.id == _GROUP_JOBS.c.job_definition_id
    )
    .order_by(job_definitions.c.name)
)


def job_names_of(
    connection: Connection, group_ids: Sequence[str], *, since: datetime
) -> dict[str, list[str]]:
    """The jobs that each of these groups hit since then."""
    found: dict[str, list[str]] = {group_id: [] for group_id in group_ids}
    values = {"since": since, "groups": group_ids}
    for group_id, name in execute(connection, _JOBS_OF_GROUPS, values).all():
        found[group_id].append(name)
    return found


def job_names(connection: Connection, group_id: str) -> list[str]:
    return list(execute(connection, _JOB_NAMES, {"wanted": group_id}).scalars())


_ACKNOWLEDGE = (
    update(failure_groups)
    .where(
        _IS_WANTED,
        (
            func.coalesce(failure_groups.c.acknowledged_run_id, 0)
            < bindparam("through", type_=BigInteger())
        )
        | (failure_groups.c.acknowledged_at < bindparam("last_failed_at", type_=UtcTime())),
    )
    .values(
        **parameters_for(failure_groups, "acknowledged_by"),
        acknowledged_run_id=bindparam("through", type_=BigInteger()),
        acknowledged_at=db_now(),
    )
)


def acknowledge(connection: Connection, group: FailureGroup, *, through: int, actor: str) -> bool:
    """Acknowledge the failures of runs up to `through`, as `group` has them. False if that was done before."""
    values = {
        "wanted": group.id,
        "through": through,
        "last_failed_at": group.last_failed_at,
        "acknowledged_by": actor,
    }
    return execute(connection, _ACKNOWLEDGE, values).rowcount == 1


_DELETE = delete(run_failures).where(in_list(run_failures.c.run_id, "ids"))


def delete_of_runs(connection: Connection, deleted: Collection[int]) -> None:
    execute(connection, _DELETE, {"ids": deleted})


def _group(row: Mapping[str, Any]) -> FailureGroup:
    return FailureGroup(**row)
