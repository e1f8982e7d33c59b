"""The leader's poll: one query whether anything is due, unprocessed, changed or in need of rescue.

An idle leader sends this query and no other.
"""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, exists, func, select

from tsuzuki.store.bulk import ANY_ACTIVE_CANCEL
from tsuzuki.store.runs import rescue
from tsuzuki.store.runs.cancel_requests import ANY_REQUEST
from tsuzuki.store.runs.queue import FIRST_NOT_DUE, earliest
from tsuzuki.store.runs.states import WAITING
from tsuzuki.store.schema.tables import events, job_definitions, job_runs, leadership
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.prepared import execute


class LeaderPoll(NamedTuple):
    """All that a leader needs to decide that there is nothing to do."""

    now: datetime
    is_due: bool
    has_events: bool
    needs_rescue: bool
    has_cancel_requests: bool
    has_bulk_cancels: bool
    bulk_cancels: int
    """How many bulk cancels were ever confirmed."""
    jobs: tuple[int, int, datetime | None]
    """How many job definitions there are, the sum of their versions and the last change: differs when one changed."""
    next_due_at: datetime | None


_POLL = select(
    db_now(),
    exists(select(job_runs.c.id).where(WAITING, job_runs.c.scheduled_for <= db_now())),
    exists(select(events.c.id).where(events.c.processed_at.is_(None))),
    rescue.condition(),
    ANY_REQUEST,
    ANY_ACTIVE_CANCEL,
    select(leadership.c.bulk_cancels).where(leadership.c.id == 1).scalar_subquery(),
    select(func.count()).select_from(job_definitions).scalar_subquery(),
    select(func.coalesce(func.sum(job_definitions.c.version), 0)).scalar_subquery(),
    select(func.max(job_definitions.c.updated_at)).scalar_subquery(),
    *FIRST_NOT_DUE,
)


def poll(connection: Connection, *, silent_after_seconds: float, max_orphans: int) -> LeaderPoll:
    parameters = rescue.limits(silent_after_seconds=silent_after_seconds, max_orphans=max_orphans)
    row = execute(connection, _POLL, parameters).one()
    now, is_due, has_events, needs_rescue, has_requests, has_cancels, cancels, *rest = row
    jobs, versions, changed_at, *first_not_due = rest
    return LeaderPoll(
        now=now,
        is_due=bool(is_due),
        has_events=bool(has_events),
        needs_rescue=bool(needs_rescue),
        has_cancel_requests=bool(has_requests),
        has_bulk_cancels=bool(has_cancels),
        bulk_cancels=cancels,
        jobs=(jobs, int(versions), changed_at),
        next_due_at=earliest(first_not_due),
    )
