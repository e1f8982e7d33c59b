"""Who takes work, and what everybody has already: what the assigner has to know before it gives anything out.

Counted from the rows themselves, each time: a counter could be wrong, these cannot.
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
from tsuzuki.store.dispatch import DUE, DueRun
from tsuzuki.store.line import Sender
from tsuzuki.store.standing import HELD
from tsuzuki.store.tables import job_runs, workers


@dataclass(frozen=True, kw_only=True)
class HeldRuns:
    """How many runs are assigned or running, by whom and of what."""

    by_worker: dict[str, int]
    by_job: dict[int, int]
    by_key: dict[tuple[int, str], int]


class Places(NamedTuple):
    """A worker that takes work, and how much of it at once."""

    id: str
    capacity: int
    tags: frozenset[str]


class Room(NamedTuple):
    """`due` is the most urgent run, if it was asked for and there is one."""

    offered: list[Places]
    held: HeldRuns
    due: DueRun | None = None


_HELD_GROUP = (
    job_runs.c.assigned_worker_id,
    job_runs.c.job_definition_id,
    job_runs.c.concurrency_key,
)
_HELD = select(*_HELD_GROUP, func.count().label("runs")).where(HELD).group_by(*_HELD_GROUP)


def held_runs(connection: Connection) -> HeldRuns:
    return _held(connection.execute(_HELD).all())


# Rows of three kinds have these columns together, each kind its own of them.
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


_OFFERED = _part(
    select(workers).where(workers.c.state == WorkerState.ATTACHED, workers.c.capacity > 0),
    worker_id=workers.c.id,
    capacity=workers.c.capacity,
    tags=workers.c.tags,
)
_TAKEN = _part(
    _HELD,
    **dict(zip(("worker_id", "job_id", "key", "runs"), _HELD.selected_columns, strict=True)),
)
_MOST_URGENT = DUE.limit(1).subquery()
_FIRST = _part(
    select(_MOST_URGENT),
    **dict(zip(("run_id", "version", "job_id", "key", "job_version"), _MOST_URGENT.c, strict=True)),
)
_ROOM = union_all(_OFFERED, _TAKEN)
_ROOM_AND_FIRST = union_all(_OFFERED, _TAKEN, _FIRST)


def room(connection: Sender) -> Room:
    """Who takes work, and what everybody has already, in one question."""
    return _room(connection.execute(_ROOM).all())


def room_and_first(connection: Sender) -> Room:
    """The same, with the most urgent run that is due."""
    return _room(connection.execute(_ROOM_AND_FIRST).all())


def _room(rows: Sequence[Sequence[Any]]) -> Room:
    offered: list[Places] = []
    held: list[Sequence[Any]] = []
    due: DueRun | None = None
    for worker_id, job_id, key, runs, capacity, tags, run_id, version, job_version in rows:
        if capacity is not None:
            offered.append(Places(worker_id, capacity, frozenset(tags)))
        elif run_id is not None:
            due = DueRun(RunRef(run_id, version), job_id, key, job_version)
        else:
            held.append((worker_id, job_id, key, runs))
    return Room(offered, _held(held), due)


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
