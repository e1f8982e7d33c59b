"""Pruning: deletes runs that finished long ago, with their history and their logs.

A run is marked before anything of it is deleted: its `log_ref` then says that its log is being deleted, and
still which one. So a crash in the middle leaves no dangling reference, and the next leader finds the names of
everything that is still to be deleted. The run itself goes last, together with its history, which the triggers
protect for as long as the run exists.
"""

from collections.abc import Collection
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    Connection,
    Dialect,
    Integer,
    bindparam,
    case,
    delete,
    func,
    literal,
    select,
    update,
)

from tsuzuki.store import failures
from tsuzuki.store.leadership import TERM_IS_CURRENT, Term
from tsuzuki.store.schema.history_tables import pruned_history
from tsuzuki.store.schema.tables import job_run_transitions, job_runs
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
_DUE = (
    select(job_runs.c.id)
    .where(job_runs.c.created_at < _FINISHED_BEFORE, job_runs.c.finished_at < _FINISHED_BEFORE)
    .order_by(job_runs.c.created_at)
    .limit(bindparam("limit", type_=Integer()))
)


def due(connection: Connection, *, finished_before: datetime, limit: int) -> list[int]:
    """Runs that finished before `finished_before`, the oldest first.

    Driven by the partial index of finished runs on `created_at`: a run that finished before that time was
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
_DELETE_HISTORY = delete(job_run_transitions).where(in_list(job_run_transitions.c.run_id, "ids"))


def delete_marked(connection: Connection, *, term: Term, run_ids: Collection[int]) -> int:
    """Delete marked runs, their history and their place in a group of failures. Answers how many runs were deleted."""
    deleted = execute(connection, _DELETE, {"ids": run_ids, **term.parameters}).all()
    if not deleted:
        return 0
    ids = [run_id for run_id, _ in deleted]
    execute(connection, _DELETE_HISTORY, {"ids": ids})
    failures.delete_of_runs(connection, ids)
    last = max(finished_at for _, finished_at in deleted)
    execute(connection, _note_pruned(connection.dialect), {"until": last})
    return len(deleted)


@lru_cache
def _note_pruned(dialect: Dialect) -> Any:
    added = insert_into(dialect, pruned_history).values(
        id=1, until=bindparam("until", type_=UtcTime())
    )
    return added.on_conflict_do_update(
        index_elements=["id"],
        set_={"until": added.excluded.until},
        where=added.excluded.until > pruned_history.c.until,
    )


_PRUNED_UNTIL = select(pruned_history.c.until)


def pruned_until(connection: Connection) -> datetime | None:
    """Every transition that was deleted is of this moment or older; None if none was."""
    until: datetime | None = execute(connection, _PRUNED_UNTIL).scalar_one_or_none()
    return until
