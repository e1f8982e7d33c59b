"""Pruning: deletes runs that finished long ago, with their history and their logs.

A run is marked before anything of it is deleted: its `log_ref` then says that its log is being deleted, and
still which one. So a crash in the middle leaves no dangling reference, and the next leader finds the names of
everything that is still to be deleted. The run itself goes last, together with its history, which the triggers
protect for as long as the run exists.
"""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import (
    Connection,
    case,
    delete,
    func,
    literal,
    select,
    update,
)

from tsuzuki.store.leadership import Term, term_is_current
from tsuzuki.store.schema.tables import job_run_transitions, job_runs
from tsuzuki.store.sql.plan_hints import guard

MARK = "pruned:"


def is_marked(log_ref: str | None) -> bool:
    """Whether a run's log is being deleted."""
    return log_ref is not None and log_ref.startswith(MARK)


def due(connection: Connection, *, finished_before: datetime, limit: int) -> list[int]:
    """Runs that finished before `finished_before`, the oldest first.

    Driven by the partial index of finished runs on `created_at`: a run that finished before that time was
    also created before it. The scan reads in vain only the runs that were live at that time.
    """
    statement = (
        select(job_runs.c.id)
        .where(job_runs.c.created_at < finished_before, job_runs.c.finished_at < finished_before)
        .order_by(job_runs.c.created_at)
        .limit(limit)
    )
    return list(connection.execute(statement).scalars())


def mark(connection: Connection, *, term: Term, run_ids: Collection[int]) -> dict[int, str | None]:
    """Mark these runs as being deleted. Answers the marked ones, each with the ref of the archived log that
    must be deleted first, if there is one."""
    marked = case(
        (job_runs.c.log_ref.startswith(MARK), job_runs.c.log_ref),
        else_=literal(MARK) + func.coalesce(job_runs.c.log_ref, ""),
    )
    rows = connection.execute(
        update(job_runs)
        .where(
            job_runs.c.id.in_(run_ids),
            guard(job_runs.c.finished_at.is_not(None)),
            term_is_current(term),
        )
        .values(log_ref=marked)
        .returning(job_runs.c.id, job_runs.c.log_ref)
    )
    return {row.id: row.log_ref.removeprefix(MARK) or None for row in rows}


def delete_marked(connection: Connection, *, term: Term, run_ids: Collection[int]) -> int:
    """Delete marked runs and their history. Answers how many runs were deleted."""
    deleted = list(
        connection.execute(
            delete(job_runs)
            .where(
                job_runs.c.id.in_(run_ids),
                guard(job_runs.c.log_ref.startswith(MARK)),
                term_is_current(term),
            )
            .returning(job_runs.c.id)
        ).scalars()
    )
    connection.execute(delete(job_run_transitions).where(job_run_transitions.c.run_id.in_(deleted)))
    return len(deleted)
