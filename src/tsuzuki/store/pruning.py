"""Pruning: deletes runs that finished long ago, with their history and their logs.

A run is marked before anything of it is deleted: its `log_ref` then says that its log is being deleted, and
still which one. So a crash in the middle leaves no dangling reference, and the next leader finds the names of
everything that is still to be deleted. The run itself goes last, together with its history, which the triggers
protect for as long as the run exists.
"""

from collections.abc import Collection
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    Connection,
    Dialect,
    Integer,
    bindparam,
    case,
    delete,
    exists,
    func,
    literal,
    select,
    update,
)

from tsuzuki.model.worker import WorkerState
from tsuzuki.store import failures
from tsuzuki.store.leadership import TERM_IS_CURRENT, Term
from tsuzuki.store.schema.history_tables import late_ends, pruned_history, run_hours_progress
from tsuzuki.store.schema.tables import job_run_transitions, job_runs, workers
from tsuzuki.store.sql.dialect import insert_into
from tsuzuki.store.sql.plan_hints import guard
from tsuzuki.store.sql.prepared import execute
from tsuzuki.store.sql.types import UtcTime
from tsuzuki.store.sql.value_list import in_list

MARK = "pruned:"


def is_marked(log_ref: str | None) -> bool:
    """Whether a run's log is being deleted."""
    return log_ref is not None and log_ref.startswith(MARK)


_FINISHED_BEFORE = bindparam("finished_before", type_=UtcTime())
_COUNTED_UNTIL = select(run_hours_progress.c.until).scalar_subquery()
_DUE = (
    select(job_runs.c.id)
    .where(
        job_runs.c.created_at < _FINISHED_BEFORE,
        job_runs.c.finished_at < _FINISHED_BEFORE,
        guard(job_runs.c.finished_at < _COUNTED_UNTIL),
        ~exists(select(late_ends.c.run_id).where(late_ends.c.run_id == job_runs.c.id)),
    )
    .order_by(job_runs.c.created_at)
    .limit(bindparam("limit", type_=Integer()))
)


def due(connection: Connection, *, finished_before: datetime, limit: int) -> list[int]:
    """Runs that finished before `finished_before` and are counted in the hourly statistics, the oldest first.

    Driven by the index on `created_at`: a run that finished before that time was
    also created before it. The scan reads in vain only the runs that were live at that time.
    """
    wanted = {"finished_before": finished_before, "limit": limit}
    return execute(connection, _DUE, wanted).scalars()


_MARKED = case(
    (job_runs.c.log_ref.startswith(MARK), job_runs.c.log_ref),
    else_=literal(MARK) + func.coalesce(job_runs.c.log_ref, ""),
)
_MARK = (
    update(job_runs)
    .where(
        in_list(job_runs.c.id, "ids"),
        guard(job_runs.c.finished_at.is_not(None)),
        TERM_IS_CURRENT,
    )
    .values(log_ref=_MARKED)
    .returning(job_runs.c.id, job_runs.c.log_ref)
)


def mark(connection: Connection, *, term: Term, run_ids: Collection[int]) -> dict[int, str | None]:
    """Mark these runs as being deleted. Answers the marked ones, each with the ref of the archived log that
    must be deleted first, if there is one."""
    rows = execute(connection, _MARK, {"ids": run_ids, **term.parameters}).all()
    return {run_id: log_ref.removeprefix(MARK) or None for run_id, log_ref in rows}


_DELETE = (
    delete(job_runs)
    .where(
        in_list(job_runs.c.id, "ids"),
        guard(job_runs.c.log_ref.startswith(MARK)),
        TERM_IS_CURRENT,
    )
    .returning(job_runs.c.id, job_runs.c.finished_at)
)
_LAST_SEQ = select(func.coalesce(func.max(job_run_transitions.c.seq), 0)).where(
    in_list(job_run_transitions.c.run_id, "ids")
)
_DELETE_HISTORY = delete(job_run_transitions).where(in_list(job_run_transitions.c.run_id, "ids"))


def delete_marked(connection: Connection, *, term: Term, run_ids: Collection[int]) -> int:
    """Delete marked runs, their history and their place in a group of failures. Answers how many runs were deleted."""
    deleted = execute(connection, _DELETE, {"ids": run_ids, **term.parameters}).all()
    if not deleted:
        return 0
    ids = [run_id for run_id, _ in deleted]
    seq = execute(connection, _LAST_SEQ, {"ids": ids}).scalar_one()
    execute(connection, _DELETE_HISTORY, {"ids": ids})
    failures.delete_of_runs(connection, ids)
    last = max(finished_at for _, finished_at in deleted)
    execute(connection, _note_pruned(connection.dialect), {"until": last, "seq": seq})
    return len(deleted)


@lru_cache
def _note_pruned(dialect: Dialect) -> Any:
    added = insert_into(dialect, pruned_history).values(
        id=1,
        until=bindparam("until", type_=UtcTime()),
        seq=bindparam("seq", type_=BigInteger()),
    )
    newest = {
        name: case(
            (added.excluded[name] > pruned_history.c[name], added.excluded[name]),
            else_=pruned_history.c[name],
        )
        for name in ("until", "seq")
    }
    return added.on_conflict_do_update(index_elements=["id"], set_=newest)


class Pruned(NamedTuple):
    """Every transition that was deleted is of this moment or older, and has this number or a lower one."""

    until: datetime | None
    seq: int


_PRUNED = select(pruned_history.c.until, pruned_history.c.seq)


def pruned(connection: Connection) -> Pruned:
    row = execute(connection, _PRUNED).one_or_none()
    return Pruned(None, 0) if row is None else Pruned(*row)


_LEFT_BEFORE = bindparam("left_before", type_=UtcTime())
_DELETE_GONE = delete(workers).where(
    workers.c.id.in_(
        select(workers.c.id)
        .where(workers.c.state == WorkerState.GONE, workers.c.heartbeat_at < _LEFT_BEFORE)
        .limit(bindparam("limit", type_=Integer()))
    ),
    TERM_IS_CURRENT,
)


def delete_gone_workers(
    connection: Connection, *, term: Term, left_before: datetime, limit: int
) -> int:
    """Delete workers that are gone and sent their last heartbeat before that time. Answers how many were deleted.
    The runs keep the ids of their workers."""
    wanted = {"left_before": left_before, "limit": limit, **term.parameters}
    return execute(connection, _DELETE_GONE, wanted).rowcount
