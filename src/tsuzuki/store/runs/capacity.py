"""Capacity: attached workers that were heard lately, how many runs each may hold, and how many are held by worker,
job and key.

Counted from the rows each time: a stored counter could drift, this cannot.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    Select,
    Text,
    cast,
    func,
    null,
    select,
    union_all,
)
from sqlalchemy.types import TypeEngine

from tsuzuki.model.run import RunRef
from tsuzuki.model.worker import WorkerState
from tsuzuki.store.liveness import has_recent_heartbeat
from tsuzuki.store.runs.queue import DUE, DueRun
from tsuzuki.store.runs.states import HELD
from tsuzuki.store.schema.tables import job_runs, workers
from tsuzuki.store.sql.prepared import AnyConnection, execute


@dataclass(frozen=True, kw_only=True)
class HeldRuns:
    """How many runs are assigned or running, by worker, by job and by concurrency key."""

    by_worker: dict[str, int]
    by_job: dict[int, int]
    by_key: dict[tuple[int, str], int]


class WorkerCapacity(NamedTuple):
    """An attached worker, and how many runs it may hold."""

    id: str
    capacity: int
    tags: frozenset[str]


class Capacity(NamedTuple):
    """`due` is the most urgent due run, if it was queried and there is one."""

    workers: list[WorkerCapacity]
    held: HeldRuns
    due: DueRun | None = None


_HELD_GROUP = (
    job_runs.c.assigned_worker_id,
    job_runs.c.job_definition_id,
    job_runs.c.concurrency_key,
)
_HELD = select(*_HELD_GROUP, func.count().label("runs")).where(HELD).group_by(*_HELD_GROUP)


def held_runs(connection: Connection) -> HeldRuns:
    return _held(execute(connection, _HELD).all())


# The columns of a UNION of three kinds of rows; each kind fills its own.
_COLUMNS: dict[str, TypeEngine[Any]] = {
    "worker_id": Text(),
    "job_id": BigInteger(),
    "key": Text(),
    "runs": BigInteger(),
    "capacity": Integer(),
    "tags": workers.c.tags.type,
    "run_id": BigInteger(),
    "version": Integer(),
    "job_version": Integer(),
}


def _part(source: Select[Any], **columns: ColumnElement[Any]) -> Select[Any]:
    return source.with_only_columns(
        *(columns.get(name, cast(null(), kind)).label(name) for name, kind in _COLUMNS.items()),
        maintain_column_froms=True,
    )


_ATTACHED = _part(
    select(workers).where(
        workers.c.state == WorkerState.ATTACHED, workers.c.capacity > 0, has_recent_heartbeat()
    ),
    worker_id=workers.c.id,
    capacity=workers.c.capacity,
    tags=workers.c.tags,
)
_HELD_PART = _part(
    _HELD,
    **dict(zip(("worker_id", "job_id", "key", "runs"), _HELD.selected_columns, strict=True)),
)
_MOST_URGENT = DUE.limit(1).subquery()
_FIRST = _part(
    select(_MOST_URGENT),
    **dict(zip(("run_id", "version", "job_id", "key", "job_version"), _MOST_URGENT.c, strict=True)),
)
_CAPACITY = union_all(_ATTACHED, _HELD_PART)
_CAPACITY_AND_FIRST = union_all(_ATTACHED, _HELD_PART, _FIRST)


def load(connection: AnyConnection, *, heard_within_seconds: float) -> Capacity:
    """Attached workers with a heartbeat within that time, and held runs, in one query."""
    return _capacity(execute(connection, _CAPACITY, _heard(heard_within_seconds)).all())


def load_with_first_due(connection: AnyConnection, *, heard_within_seconds: float) -> Capacity:
    """The same, with the most urgent due run."""
    return _capacity(execute(connection, _CAPACITY_AND_FIRST, _heard(heard_within_seconds)).all())


def _heard(within_seconds: float) -> dict[str, float]:
    return {"minus_ttl": -within_seconds}


def _capacity(rows: Sequence[Sequence[Any]]) -> Capacity:
    attached: list[WorkerCapacity] = []
    held: list[Sequence[Any]] = []
    due: DueRun | None = None
    for worker_id, job_id, key, runs, capacity, tags, run_id, version, job_version in rows:
        if capacity is not None:
            attached.append(WorkerCapacity(worker_id, capacity, frozenset(tags)))
        elif run_id is not None:
            due = DueRun(RunRef(run_id, version), job_id, key, job_version)
        else:
            held.append((worker_id, job_id, key, runs))
    return Capacity(attached, _held(held), due)


def _held(rows: Iterable[Sequence[Any]]) -> HeldRuns:
    by_worker: dict[str, int] = {}
    by_job: dict[int, int] = {}
    by_key: dict[tuple[int, str], int] = {}
    for worker_id, job_id, key, runs in rows:
        by_worker[worker_id] = by_worker.get(worker_id, 0) + runs
        by_job[job_id] = by_job.get(job_id, 0) + runs
        if key is not None:
            by_key[job_id, key] = by_key.get((job_id, key), 0) + runs
    return HeldRuns(by_worker=by_worker, by_job=by_job, by_key=by_key)
