"""What jobs did last: the newest runs that have ended, of many jobs in one statement, and how many are live."""

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    Connection,
    Integer,
    Select,
    bindparam,
    func,
    literal_column,
    or_,
    select,
    true,
)
from sqlalchemy.engine import Dialect

from tsuzuki.model.states import NOT_COUNTED_REASONS, Outcome, Reason, RunState, Trigger, outcome_of
from tsuzuki.store.schema.tables import job_runs
from tsuzuki.store.sql.batch import Columns, unpack
from tsuzuki.store.sql.dialect import is_sqlite
from tsuzuki.store.sql.prepared import execute, execute_batch
from tsuzuki.store.sql.value_list import in_list


class RecentRun(NamedTuple):
    """A run as a mark of a drawing. One that never started was skipped or canceled; `reason` says why."""

    id: int
    job_id: int
    state: RunState
    trigger: Trigger
    reason: Reason | None
    scheduled_for: datetime
    started_at: datetime | None
    finished_at: datetime
    covers_ticks: int

    @property
    def outcome(self) -> Outcome | None:
        return outcome_of(self.state, self.reason)

    @property
    def seconds(self) -> float | None:
        """How long it took; None if it never started."""
        if self.started_at is None:
            return None
        return max((self.finished_at - self.started_at).total_seconds(), 0.0)


_NAMES = (
    "id",
    "job_definition_id",
    "state",
    "trigger",
    "reason",
    "scheduled_for",
    "started_at",
    "finished_at",
    "covers_ticks",
)
_JOBS: Columns = {"job_id": BigInteger()}


def newest_ended(
    connection: Connection, job_ids: Sequence[int], *, limit: int
) -> dict[int, list[RecentRun]]:
    """The newest runs of each job that have ended, at most `limit` of each, oldest first; without those that a shutdown
    ended, because they are repeated."""
    rows = execute_batch(
        connection, _newest, _JOBS, [(job_id,) for job_id in job_ids], {"limit": limit}
    )
    found: dict[int, list[RecentRun]] = {job_id: [] for job_id in job_ids}
    for row in sorted(rows.all(), key=lambda row: row[0]):
        run_id, job_id, state, trigger, reason, *times = row
        found[job_id].append(
            RecentRun(
                run_id,
                job_id,
                RunState(state),
                Trigger(trigger),
                None if reason is None else Reason(reason),
                *times,
            )
        )
    return found


@lru_cache
def _newest(dialect: Dialect, varying: tuple[str, ...]) -> Select[Any]:
    jobs = unpack(dialect, _JOBS, varying)
    inner = job_runs.alias("newest")
    newest = (
        select(*(inner.c[name] for name in _NAMES))
        .where(
            inner.c.job_definition_id == jobs.c.job_id,
            inner.c.finished_at.is_not(None),
            or_(
                inner.c.reason.is_(None),
                inner.c.reason.not_in(
                    [literal_column(f"'{reason.value}'") for reason in sorted(NOT_COUNTED_REASONS)]
                ),
            ),
        )
        .order_by(inner.c.id.desc())
        .limit(bindparam("limit", type_=Integer()))
    )
    if not is_sqlite(dialect):
        of_job = newest.lateral("of_job")
        return select(*(of_job.c[name] for name in _NAMES)).join_from(jobs, of_job, true())
    # SQLite has no LATERAL: the ids of each job first, and then their rows.
    ids = newest.with_only_columns(inner.c.id).correlate(jobs)
    return select(*(job_runs.c[name] for name in _NAMES)).join_from(
        jobs, job_runs, job_runs.c.id.in_(ids)
    )


_LIVE = (
    select(job_runs.c.job_definition_id, job_runs.c.state, func.count())
    .where(job_runs.c.finished_at.is_(None), in_list(job_runs.c.job_definition_id, "jobs"))
    .group_by(job_runs.c.job_definition_id, job_runs.c.state)
)


def live_counts(connection: Connection, job_ids: Sequence[int]) -> dict[int, dict[RunState, int]]:
    """How many runs of each job have not ended, by state."""
    found: dict[int, dict[RunState, int]] = {job_id: {} for job_id in job_ids}
    for job_id, state, count in execute(connection, _LIVE, {"jobs": job_ids}).all():
        found[job_id][RunState(state)] = count
    return found
