"""Capacity: attached workers that were heard lately, how many runs each may hold, and how many are held by worker,
job and key.

Counted from the rows each time: a stored counter could drift, this cannot. Keys may be as many as runs, so a round
counts only those it asks for.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    Select,
    Text,
    and_,
    case,
    cast,
    func,
    null,
    select,
    union_all,
)
from sqlalchemy.types import TypeEngine

from tsuzuki.model.abilities import Abilities
from tsuzuki.model.run import RunRef
from tsuzuki.model.worker import WorkerState
from tsuzuki.store.liveness import has_recent_heartbeat
from tsuzuki.store.runs.queue import DUE, DueRun
from tsuzuki.store.runs.states import HELD
from tsuzuki.store.schema.tables import job_runs, workers
from tsuzuki.store.sql.prepared import AnyConnection, execute
from tsuzuki.store.sql.types import UtcTime
from tsuzuki.store.sql.value_list import in_long_list


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
    only_job: str | None = None
    """The one job that it may have; None: any."""
    abilities: Abilities | None = None
    """What it can execute; None: anything."""
    only_run: int | None = None
    """The one run that it may have; None: any."""


class Capacity(NamedTuple):
    """`due` is the most urgent due run, if it was queried and there is one. Of the keys only its own is counted."""

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


_HELD_KEY = (job_runs.c.job_definition_id, job_runs.c.concurrency_key)
_HELD_BY_KEY = (
    select(*_HELD_KEY, func.count())
    .where(HELD, in_long_list(job_runs.c.concurrency_key, "keys"))
    .group_by(*_HELD_KEY)
)


def held_by_key(connection: AnyConnection, keys: Collection[str]) -> dict[tuple[int, str], int]:
    """How many runs with these keys are held, by job and key."""
    rows = execute(connection, _HELD_BY_KEY, {"keys": keys}).all()
    return {(job_id, key): count for job_id, key, count in rows}


# The columns of a UNION of three kinds of rows; each kind fills its own.
_COLUMNS: dict[str, TypeEngine[Any]] = {
    "worker_id": Text(),
    "job_id": BigInteger(),
    "key": Text(),
    "runs": BigInteger(),
    "capacity": Integer(),
    "tags": workers.c.tags.type,
    "only_job": Text(),
    "only_run": BigInteger(),
    "abilities": Text(),
    "run_id": BigInteger(),
    "version": Integer(),
    "job_version": Integer(),
    "job_updated_at": UtcTime(),
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
    only_job=workers.c.only_job,
    only_run=workers.c.only_run,
    abilities=workers.c.abilities,
)
_HELD_BY_JOB = (job_runs.c.assigned_worker_id, job_runs.c.job_definition_id)
_HELD_PART = _part(
    select(*_HELD_BY_JOB).where(HELD).group_by(*_HELD_BY_JOB),
    worker_id=job_runs.c.assigned_worker_id,
    job_id=job_runs.c.job_definition_id,
    runs=func.count(),
)
_MOST_URGENT = DUE.limit(1).subquery()
_DUE_COLUMNS = dict(
    zip(
        ("run_id", "version", "job_id", "key", "job_version", "job_updated_at"),
        _MOST_URGENT.c,
        strict=True,
    )
)
_HAS_ITS_KEY = and_(
    job_runs.c.job_definition_id == _DUE_COLUMNS["job_id"],
    job_runs.c.concurrency_key == _DUE_COLUMNS["key"],
)
_HELD_WITH_ITS_KEY = (
    select(func.count())
    .select_from(job_runs)
    .where(HELD, _HAS_ITS_KEY)
    .correlate(_MOST_URGENT)
    .scalar_subquery()
)
_FIRST = _part(
    select(_MOST_URGENT),
    runs=case((_DUE_COLUMNS["key"].is_not(None), _HELD_WITH_ITS_KEY), else_=0),
    **_DUE_COLUMNS,
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
    by_key: dict[tuple[int, str], int] = {}
    for (
        worker_id,
        job_id,
        key,
        runs,
        capacity,
        tags,
        only_job,
        only_run,
        abilities,
        run_id,
        version,
        *edition,
    ) in rows:
        if capacity is not None:
            can = Abilities.from_text(abilities)
            attached.append(
                WorkerCapacity(worker_id, capacity, frozenset(tags), only_job, can, only_run)
            )
        elif run_id is not None:
            due = DueRun(RunRef(run_id, version), job_id, key, *edition)
            by_key = {} if key is None else {(job_id, key): runs}
        else:
            held.append((worker_id, job_id, None, runs))
    counted = _held(held)
    counted.by_key.update(by_key)
    return Capacity(attached, counted, due)


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
