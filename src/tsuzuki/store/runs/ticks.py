"""The runs of a job's ticks, in order: each stands for one tick, or for the skipped ticks of a range."""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import (
    BigInteger,
    Connection,
    Integer,
    and_,
    bindparam,
    literal_column,
    not_,
    select,
)

from tsuzuki.store.schema.tables import job_runs
from tsuzuki.store.sql.prepared import execute
from tsuzuki.store.sql.types import UtcTime

PAGE = 1000


class TickRun(NamedTuple):
    """A run of a tick. With `covers_until`, it records all ticks from `first` to that one."""

    run_id: int
    first: datetime
    covers_until: datetime | None
    covers_ticks: int

    @property
    def last(self) -> datetime:
        return self.covers_until or self.first


_AFTER, _AFTER_ID = bindparam("after", type_=UtcTime()), bindparam("after_id", type_=BigInteger())
_OF_JOB = (
    job_runs.c.job_definition_id == bindparam("job", type_=BigInteger()),
    job_runs.c.trigger == literal_column("'time'"),  # a constant, for the partial index
)
_TICKS = select(
    job_runs.c.id, job_runs.c.scheduled_for, job_runs.c.covers_until, job_runs.c.covers_ticks
).where(*_OF_JOB)
_PAGE = (
    _TICKS.where(
        job_runs.c.scheduled_for >= _AFTER,
        not_(and_(job_runs.c.scheduled_for == _AFTER, job_runs.c.id <= _AFTER_ID)),
        job_runs.c.scheduled_for <= bindparam("until", type_=UtcTime()),
    )
    .order_by(job_runs.c.scheduled_for, job_runs.c.id)
    .limit(bindparam("limit", type_=Integer()))
)
_BEFORE = (
    _TICKS.where(job_runs.c.scheduled_for < _AFTER)
    .order_by(job_runs.c.scheduled_for.desc())
    .limit(1)
)


def last_before(connection: Connection, job_id: int, moment: datetime) -> TickRun | None:
    """The run of the last tick before a moment, which may record ticks after it too."""
    row = execute(connection, _BEFORE, {"job": job_id, "after": moment}).one_or_none()
    return None if row is None else TickRun(*row)


def page(
    connection: Connection,
    job_id: int,
    *,
    since: datetime,
    until: datetime,
    after: TickRun | None = None,
) -> Iterator[TickRun]:
    """Up to `PAGE` runs of ticks from `since` to `until`, in order; those behind `after`, if it is given."""
    values = {
        "job": job_id,
        "after": after.first if after else since,
        "after_id": after.run_id if after else 0,
        "until": until,
        "limit": PAGE,
    }
    return (TickRun(*row) for row in execute(connection, _PAGE, values).all())
