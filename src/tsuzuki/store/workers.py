"""Workers: registration, heartbeats, draining, detaching and re-attaching, and the confirmation of their runs.

A heartbeat is one write per worker, however many runs it has; its answer is the state the worker is in.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    Text,
    and_,
    bindparam,
    func,
    insert,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.sql.dml import ReturningUpdate

from tsuzuki.model.abilities import Abilities
from tsuzuki.model.clock import CLOCK_TOLERANCE_SECONDS
from tsuzuki.model.losses import Death
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import ContinuationState, RunState
from tsuzuki.model.worker import DetachReason, StoredWorker, WorkerState
from tsuzuki.store.leadership import TERM_IS_CURRENT, Term
from tsuzuki.store.liveness import (
    has_future_heartbeat,
    has_recent_heartbeat,
    in_states,
    is_not_dead,
    is_present,
    is_registered,
    is_silent,
)
from tsuzuki.store.runs.states import HELD, in_indexed_state
from tsuzuki.store.schema.tables import job_runs, workers
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.prepared import AnyConnection, execute, parameters_for
from tsuzuki.store.sql.types import UtcTime
from tsuzuki.store.sql.value_list import in_list
from tsuzuki.store.wakeups import channels
from tsuzuki.store.wakeups.channels import WakeupChannel

_ME = workers.c.id == bindparam("me", type_=Text())
_THESE = in_list(workers.c.id, "ids")

_REGISTER = insert(workers).values(
    **parameters_for(
        workers,
        "id",
        "host",
        "pid",
        "capacity",
        "tags",
        "only_job",
        "only_run",
        "abilities",
        "software_version",
        "process_name",
        "ttl_seconds",
        "grace_seconds",
    ),
    state=WorkerState.ATTACHED,
    started_at=db_now(),
    heartbeat_at=db_now(),
)


def register(  # noqa: PLR0913 -- what other processes know of a worker
    connection: Connection,
    *,
    worker_id: str,
    host: str,
    pid: int,
    capacity: int,
    tags: frozenset[str],
    software_version: str,
    process_name: str | None = None,
    only_job: str | None = None,
    only_run: int | None = None,
    abilities: Abilities | None = None,
    works_by: EngineSettings | None = None,
) -> None:
    """Register a worker, once: its id is new at every start. `process_name` is what others on its machine record the
    death of its process by. With `only_job` no leader assigns it a run of another
    job, with `only_run` no other run at all, and with `abilities` none that it cannot execute. No leader judges it by
    shorter settings than `works_by`."""
    values = {
        "id": worker_id,
        "host": host,
        "pid": pid,
        "capacity": capacity,
        "tags": sorted(tags),
        "only_job": only_job,
        "only_run": only_run,
        "abilities": abilities and abilities.as_text(),
        "software_version": software_version,
        "process_name": process_name,
        **_limits_of(works_by),
    }
    execute(connection, _REGISTER, values)


_SET_ABILITIES = update(workers).where(_ME).values(**parameters_for(workers, "abilities"))


def set_abilities(connection: Connection, worker_id: str, abilities: Abilities) -> None:
    """Replace what a worker can execute, and wake the leader: runs may have waited for it."""
    execute(connection, _SET_ABILITIES, {"me": worker_id, "abilities": abilities.as_text()})
    channels.notify(connection, WakeupChannel.LEADER)


_HEARTBEAT = (
    update(workers)
    .where(_ME, is_registered(), is_not_dead())
    .values(heartbeat_at=db_now(), silence_recorded_at=None)
    .returning(workers.c.state)
)


_HEARTBEAT_BY = _HEARTBEAT.values(**parameters_for(workers, "ttl_seconds", "grace_seconds"))


def heartbeat(
    connection: AnyConnection, worker_id: str, *, works_by: EngineSettings | None = None
) -> WorkerState | None:
    """Write a worker's heartbeat, and the settings that it works by from now on if they have changed. Answers the
    state it is in; None if it is gone, unknown or recorded as dead."""
    statement = _HEARTBEAT if works_by is None else _HEARTBEAT_BY
    values = {"me": worker_id, **({} if works_by is None else _limits_of(works_by))}
    state = execute(connection, statement, values).scalar_one_or_none()
    return None if state is None else WorkerState(state)


def _limits_of(works_by: EngineSettings | None) -> dict[str, float | None]:
    return {
        "ttl_seconds": works_by.worker_ttl_seconds if works_by else None,
        "grace_seconds": works_by.worker_grace_seconds if works_by else None,
    }


# A record in the future (clock skew: the clock was set back since) would delay the failure of lost runs.
_RECORD_SILENCE = (
    update(workers)
    .where(
        is_registered(),
        is_silent(),
        or_(
            workers.c.silence_recorded_at.is_(None),
            workers.c.silence_recorded_at > db_now(CLOCK_TOLERANCE_SECONDS),
        ),
        TERM_IS_CURRENT,
    )
    .values(silence_recorded_at=db_now())
)
_SILENCE_RECORDED = select(workers.c.silence_recorded_at, workers.c.state).where(_ME)


def record_silence(connection: Connection, *, term: Term, silent_after_seconds: float) -> int:
    """Record which workers have been silent that long. Their next heartbeat clears it."""
    return execute(connection, _RECORD_SILENCE, _judged_by(term, silent_after_seconds)).rowcount


class RecordedSilence(NamedTuple):
    """When a worker's silence was recorded, and the grace period that the worker works by."""

    at: datetime
    grace_seconds: float | None = None


_RECORDED_SILENCES = select(
    workers.c.id, workers.c.silence_recorded_at, workers.c.grace_seconds
).where(is_registered(), workers.c.silence_recorded_at.is_not(None))


def recorded_silences(connection: Connection) -> dict[str, RecordedSilence]:
    """Of registered workers, by id."""
    rows = execute(connection, _RECORDED_SILENCES).all()
    return {worker_id: RecordedSilence(*record) for worker_id, *record in rows}


def is_silence_recorded(connection: AnyConnection, worker_id: str) -> bool:
    """Whether a leader has recorded that this worker is silent, or it has left."""
    row = execute(connection, _SILENCE_RECORDED, {"me": worker_id}).one_or_none()
    return row is None or row[0] is not None or row[1] == WorkerState.GONE


_SILENT = select(workers.c.id).where(is_present(), is_silent())


def silent(connection: Connection, *, silent_after_seconds: float) -> list[str]:
    """Workers that are attached or draining, and silent for that long."""
    return list(execute(connection, _SILENT, {"minus_ttl": -silent_after_seconds}).scalars())


_SILENT_HEARTBEATS = select(workers.c.id, workers.c.heartbeat_at).where(
    is_registered(), is_silent()
)


def silent_heartbeats(
    connection: Connection, *, silent_after_seconds: float
) -> dict[str, datetime]:
    """The last heartbeats of all registered workers that are silent for that long, by worker."""
    parameters = {"minus_ttl": -silent_after_seconds}
    return {row[0]: row[1] for row in execute(connection, _SILENT_HEARTBEATS, parameters).all()}


_REFRESH = (
    update(workers)
    .where(
        _THESE,
        is_present(),
        workers.c.heartbeat_at < bindparam("sent_at", type_=UtcTime()),
        TERM_IS_CURRENT,
    )
    .values(heartbeat_at=bindparam("sent_at", type_=UtcTime()), silence_recorded_at=None)
    .returning(workers.c.id)
)


def refresh_heartbeats(
    connection: Connection, *, term: Term, worker_ids: Collection[str], sent_at: datetime
) -> frozenset[str]:
    """Write heartbeats that the leader got from the coordination service; `sent_at` is by the database's
    clock. They keep workers attached; a detached worker must send a heartbeat to the database itself."""
    if not worker_ids:
        return frozenset()
    parameters = {"ids": sorted(worker_ids), "sent_at": sent_at, **term.parameters}
    return frozenset(execute(connection, _REFRESH, parameters).scalars())


# Locked rows are skipped and left for the next round: after a lock wait, the statement's `now` would be past.
_IN_FUTURE = (
    select(workers.c.id)
    .where(
        is_registered(),
        has_future_heartbeat(),
    )
    .with_for_update(key_share=True, skip_locked=True)
)
_RESET_FUTURE = (
    update(workers)
    .where(workers.c.id.in_(_IN_FUTURE), TERM_IS_CURRENT)
    .values(heartbeat_at=db_now(), silence_recorded_at=None)
    .returning(workers.c.id)
)


def reset_future_heartbeats(connection: Connection, *, term: Term) -> frozenset[str]:
    """Set heartbeats that are in the future (clock skew: the clock was set back since) to now. So the silence
    of a dead worker is noticed as soon as any other's; a live worker sends its next heartbeat anyway."""
    return frozenset(execute(connection, _RESET_FUTURE, term.parameters).scalars())


def _set_state(
    guard: ColumnElement[bool], state: WorkerState, detach_reason: DetachReason | None = None
) -> ReturningUpdate[Any]:
    """A prepared UPDATE of the state; rows that are in that state already are not changed."""
    differs = or_(workers.c.state != state, workers.c.detach_reason.is_distinct_from(detach_reason))
    return (
        update(workers)
        .where(guard, differs)
        .values(state=state, detach_reason=detach_reason)
        .returning(workers.c.id)
    )


_DRAIN = (
    update(workers)
    .where(_THESE, workers.c.state == WorkerState.ATTACHED)
    .values(state=WorkerState.DRAINING, drain_ordered_at=db_now())
    .returning(workers.c.id)
)
# A silent worker cannot drain now; it will when it is re-attached, or under its next id.
_ORDER_DRAIN = (
    update(workers)
    .where(
        _THESE,
        workers.c.state == WorkerState.DETACHED,
        workers.c.detach_reason == DetachReason.SILENT,
        workers.c.drain_ordered_at.is_(None),
    )
    .values(drain_ordered_at=db_now())
    .returning(workers.c.id)
)
_DETACH = _set_state(and_(_THESE, is_registered()), WorkerState.DETACHED, DetachReason.OPERATOR)
_DETACH_SILENT = _set_state(
    and_(
        workers.c.state == WorkerState.ATTACHED,
        is_silent(),
        TERM_IS_CURRENT,
    ),
    WorkerState.DETACHED,
    DetachReason.SILENT,
)
_IS_BACK = and_(
    workers.c.state == WorkerState.DETACHED,
    workers.c.detach_reason == DetachReason.SILENT,
    is_not_dead(),
    has_recent_heartbeat(),
    TERM_IS_CURRENT,
)
_REATTACH = _set_state(and_(_IS_BACK, workers.c.drain_ordered_at.is_(None)), WorkerState.ATTACHED)
_REATTACH_DRAINING = _set_state(
    and_(_IS_BACK, workers.c.drain_ordered_at.is_not(None)), WorkerState.DRAINING
)


_RECORD_DEATHS = (
    update(workers)
    .where(in_list(workers.c.process_name, "names"), is_registered(), is_not_dead())
    .values(
        died_at=db_now(),
        state=WorkerState.DETACHED,
        detach_reason=func.coalesce(workers.c.detach_reason, DetachReason.SILENT.value),
    )
    .returning(workers.c.id)
)


def record_deaths(connection: Connection, process_names: Collection[str]) -> frozenset[str]:
    """Record that these processes have ended without leaving, and detach their workers for good. The caller has proof.
    Answers the workers."""
    parameters = {"names": sorted(process_names)}
    return frozenset(execute(connection, _RECORD_DEATHS, parameters).scalars())


_DEATHS = select(workers.c.id, workers.c.host, workers.c.process_name, workers.c.died_at).where(
    is_registered(), workers.c.died_at.is_not(None)
)


def deaths(connection: Connection) -> dict[str, Death]:
    """The recorded deaths of registered workers, by worker."""
    rows = execute(connection, _DEATHS).all()
    return {worker_id: Death(*death) for worker_id, *death in rows}


def drain(connection: Connection, worker_ids: Sequence[str]) -> frozenset[str]:
    """Let workers finish what they have and start nothing new; those that are detached for silence when they are
    heard again."""
    parameters = {"ids": worker_ids}
    drained = frozenset(execute(connection, _DRAIN, parameters).scalars())
    return drained | frozenset(execute(connection, _ORDER_DRAIN, parameters).scalars())


def detach(connection: Connection, worker_ids: Sequence[str]) -> frozenset[str]:
    """Detach workers by an operator's order. They are not re-attached."""
    return frozenset(execute(connection, _DETACH, {"ids": worker_ids}).scalars())


def detach_silent(
    connection: Connection, *, term: Term, silent_after_seconds: float
) -> frozenset[str]:
    """Detach attached workers that have been silent that long. Not draining ones: they get nothing new anyway,
    and re-attached they would not know any more that they are to leave."""
    parameters = _judged_by(term, silent_after_seconds)
    return frozenset(execute(connection, _DETACH_SILENT, parameters).scalars())


def reattach_and_confirm(
    connection: Connection, *, term: Term, silent_after_seconds: float
) -> frozenset[str]:
    """Re-attach workers that were detached for silence and send heartbeats again, and confirm their runs:
    those may go on. Answers the re-attached workers."""
    parameters = _judged_by(term, silent_after_seconds)
    reattached = frozenset(execute(connection, _REATTACH, parameters).scalars())
    reattached |= frozenset(execute(connection, _REATTACH_DRAINING, parameters).scalars())
    execute(connection, _CONFIRM, parameters)
    return reattached


def _judged_by(term: Term, silent_after_seconds: float) -> dict[str, Any]:
    """The parameters of a leader's statement that judges silence."""
    return {"minus_ttl": -silent_after_seconds, **term.parameters}


def _is_unlocked(condition: ColumnElement[bool]) -> ColumnElement[bool]:
    """The run is one to change, as it was read, and its row is not locked: a handler of the worker may hold its run for
    long, and while it does, no process can fail that run."""
    found = (
        select(job_runs.c.id, job_runs.c.version)
        .where(condition)
        .with_for_update(of=job_runs, key_share=True, skip_locked=True)
        .correlate(None)
    )
    return tuple_(job_runs.c.id, job_runs.c.version).in_(found)


_CONFIRMING_IN_TIME = and_(
    in_indexed_state(RunState.RUNNING),
    job_runs.c.continuation_state == ContinuationState.CONFIRMING,
    job_runs.c.continuation_check_deadline_at > db_now(),
    job_runs.c.assigned_worker_id.in_(
        select(workers.c.id).where(is_present(), has_recent_heartbeat())
    ),
)
_CONFIRM = (
    update(job_runs)
    .where(
        _is_unlocked(_CONFIRMING_IN_TIME),
        _CONFIRMING_IN_TIME,
        TERM_IS_CURRENT,
    )
    .values(continuation_state=ContinuationState.NONE, continuation_check_deadline_at=None)
)
_UNMARKED = and_(
    job_runs.c.assigned_worker_id == bindparam("me", type_=Text()),
    in_indexed_state(RunState.RUNNING),
    or_(
        job_runs.c.continuation_state == ContinuationState.NONE,
        # Locked by its handler when the leader confirmed the others, and until its deadline had passed.
        job_runs.c.continuation_check_deadline_at <= db_now(),
    ),
)
_REQUEST_CONFIRMATION = (
    update(job_runs)
    .where(_is_unlocked(_UNMARKED), _UNMARKED)
    .values(
        continuation_state=ContinuationState.CONFIRMING,
        continuation_check_deadline_at=db_now(bindparam("deadline_seconds", type_=Float())),
    )
)


def request_confirmation(connection: Connection, *, worker_id: str, deadline_seconds: float) -> int:
    """Mark the runs of a worker as CONFIRMING: it does not know whether it still owns them. A run whose handler
    holds its row is left out, because it is surely still owned. Answers how many were marked."""
    parameters = {"me": worker_id, "deadline_seconds": deadline_seconds}
    return execute(connection, _REQUEST_CONFIRMATION, parameters).rowcount


class Confirming(NamedTuple):
    """How many runs of a worker wait to be confirmed, and until when the first of them is."""

    worker_id: str
    runs: int
    deadline_at: datetime


_CONFIRMING = (
    select(
        job_runs.c.assigned_worker_id,
        func.count(),
        func.min(job_runs.c.continuation_check_deadline_at),
    )
    .where(
        in_indexed_state(RunState.RUNNING),
        job_runs.c.continuation_state == ContinuationState.CONFIRMING,
    )
    .group_by(job_runs.c.assigned_worker_id)
)


def confirming(connection: Connection) -> list[Confirming]:
    """The workers with runs that wait to be confirmed."""
    return [Confirming(*row) for row in execute(connection, _CONFIRMING).all()]


_DEREGISTER = _set_state(_ME, WorkerState.GONE)
_RETIRE_ID = _set_state(
    workers.c.id.in_(select(workers.c.id).where(_ME).with_for_update(skip_locked=True)),
    WorkerState.GONE,
)
_BUSY = select(job_runs.c.assigned_worker_id).where(
    job_runs.c.assigned_worker_id == workers.c.id,
    HELD,
)
_MARK_GONE = _set_state(
    and_(
        in_states(WorkerState.DETACHED, WorkerState.DRAINING),
        is_silent(),
        ~_BUSY.exists(),
        TERM_IS_CURRENT,
    ),
    WorkerState.GONE,
)


def deregister(connection: Connection, worker_id: str) -> bool:
    """A worker leaves. False if it is gone already."""
    return execute(connection, _DEREGISTER, {"me": worker_id}).scalar_one_or_none() is not None


def retire_id(connection: Connection, worker_id: str) -> bool:
    """Retire an id that its worker does not use any more, so that no run is assigned to it. Skips a locked row
    instead of waiting for it: then the silence of that id is noticed later."""
    return execute(connection, _RETIRE_ID, {"me": worker_id}).scalar_one_or_none() is not None


def mark_silent_gone(
    connection: Connection, *, term: Term, silent_after_seconds: float
) -> frozenset[str]:
    """Mark workers as gone that are detached or draining, silent for that long, and hold no run any more."""
    parameters = _judged_by(term, silent_after_seconds)
    return frozenset(execute(connection, _MARK_GONE, parameters).scalars())


_NOT_SHOWN = {"silence_recorded_at", "ttl_seconds", "grace_seconds", "process_name", "died_at"}
_COLUMNS = [column for column in workers.c if column.name not in _NOT_SHOWN]
_BY_ID = select(*_COLUMNS).where(_ME)
_ALL = select(*_COLUMNS).order_by(workers.c.started_at, workers.c.id)
_REGISTERED = _ALL.where(is_registered())


def get(connection: Connection, worker_id: str) -> StoredWorker | None:
    row = execute(connection, _BY_ID, {"me": worker_id}).mapping_or_none()
    return None if row is None else worker_from(row)


def find(connection: Connection, *, with_gone: bool = False) -> list[StoredWorker]:
    statement = _ALL if with_gone else _REGISTERED
    return [worker_from(row) for row in execute(connection, statement).mappings()]


def worker_from(row: Mapping[str, Any]) -> StoredWorker:
    values = dict(row)
    reason = row["detach_reason"]
    values["state"] = WorkerState(row["state"])
    values["detach_reason"] = None if reason is None else DetachReason(reason)
    values["tags"] = frozenset(row["tags"])
    values["abilities"] = Abilities.from_text(row["abilities"])
    return StoredWorker(**values)
