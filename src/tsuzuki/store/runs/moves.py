"""Every move of a run, one function each. A move is one conditional UPDATE over a batch.

Each function names in its WHERE the run's `version` and `state` as the mover last saw them, and what
entitles the mover: a leader its term, a worker its own id and the epoch it started the run under. The
answer is the set of runs that moved. A run missing from it was moved by another process first (a lost
race), or another transaction holds its row: that is an answer, not an error. No move waits for a row, because
a handler may hold the row of its run for as long as its transaction takes.

The guards sit on the primary key's plan (`guard`); history is written by the database itself.
"""

from collections.abc import Collection, Sequence
from functools import lru_cache, partial
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    Connection,
    Integer,
    Text,
    bindparam,
    exists,
    not_,
    select,
    true,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.dml import ReturningUpdate

from tsuzuki.model.run import RunRef, StartedRun, WorkOrder
from tsuzuki.model.states import Actor, Reason, RunState
from tsuzuki.store.leadership import MAY_ASSIGN, TERM_IS_CURRENT, Term
from tsuzuki.store.liveness import is_present
from tsuzuki.store.runs.indexed_states import HELD_STATES, WAITING_STATES
from tsuzuki.store.runs.move_parts import (
    assigned_to,
    ended,
    guarded_update,
    in_state,
    is_assigned_to,
    is_at_orphan_limit,
    is_lost,
    is_stale_assignment,
    lost_after,
    orphaned,
    signed,
    stale_after,
    started,
    takes_work,
)
from tsuzuki.store.runs.ownership import ORDER_COLUMNS
from tsuzuki.store.schema.tables import job_runs, leadership, workers
from tsuzuki.store.sql.batch import Columns
from tsuzuki.store.sql.locked_rows import LockedRows, locked_rows
from tsuzuki.store.sql.plan_hints import guard
from tsuzuki.store.sql.prepared import AnyConnection, ResultRows, execute_batch
from tsuzuki.store.sql.types import PlainText, ResultText
from tsuzuki.store.sql.value_list import in_list

REF_COLUMNS: Columns = {"id": BigInteger(), "version": Integer()}
ASSIGN_COLUMNS: Columns = {**REF_COLUMNS, "worker_id": Text()}
FINISH_COLUMNS: Columns = {
    **REF_COLUMNS,
    "epoch": BigInteger(),
    "state": Text(),
    "reason": Text(),
    "error": PlainText(),
    "result": ResultText(),
}
NOTHING: frozenset[int] = frozenset()
LIVE = (*WAITING_STATES, *HELD_STATES)

_LEADER = bindparam("leader", type_=Text())
_EPOCH = bindparam("epoch", type_=BigInteger())
_ME = bindparam("me", type_=Text())
_BY_LEADER = signed(Actor.LEADER, _LEADER, _EPOCH)
_BY_ID = itemgetter(0)


class Assignment(NamedTuple):
    """A run and the worker the leader chose for it."""

    run: RunRef
    worker_id: str


class RunEnd(NamedTuple):
    """How a run ended, reported by the worker that ran it."""

    run: StartedRun
    state: RunState
    reason: Reason | None = None
    error: str | None = None
    result: Any = None


# --- the leader's moves -------------------------------------------------------------------------
# A locked row is found again in the next round: one handler's long transaction, or one host that died inside
# one, must not block the leader.


def assign(
    connection: AnyConnection,
    *,
    term: Term,
    assignments: Sequence[Assignment],
    bulk_cancels: int = 0,
) -> frozenset[int]:
    """PENDING or ORPHANED -> ASSIGNED, each to its worker if that worker still takes work. Nothing moves if a bulk
    cancel was confirmed since the runs were chosen, when `bulk_cancels` of them were."""
    rows = sorted((run.id, run.version, worker_id) for run, worker_id in assignments)
    parameters = {**term.parameters, "bulk_cancels": bulk_cancels}
    return _ids(execute_batch(connection, _assign, ASSIGN_COLUMNS, rows, parameters))


@lru_cache
def _assign(dialect: Dialect, varying: tuple[str, ...]) -> ReturningUpdate[Any]:
    rows = locked_rows(dialect, job_runs, ASSIGN_COLUMNS, varying)
    return guarded_update(
        rows,
        in_state(*WAITING_STATES) & takes_work(rows.c.worker_id) & MAY_ASSIGN,
        {**_BY_LEADER, **assigned_to(rows.c.worker_id), "state": RunState.ASSIGNED},
    ).returning(job_runs.c.id)


def assign_and_start(
    connection: AnyConnection,
    *,
    term: Term,
    worker_id: str,
    runs: Sequence[RunRef],
    bulk_cancels: int = 0,
) -> dict[int, WorkOrder]:
    """PENDING or ORPHANED -> ASSIGNED -> RUNNING in one UPDATE, for the worker of the leader's own
    process. The row is written once, the history has both moves, and the guards are those of both."""
    parameters = {**term.parameters, "me": worker_id, "bulk_cancels": bulk_cancels}
    return _orders(
        execute_batch(connection, _assign_and_start, REF_COLUMNS, sorted(runs), parameters)
    )


@lru_cache
def _assign_and_start(dialect: Dialect, varying: tuple[str, ...]) -> ReturningUpdate[Any]:
    return guarded_update(
        _refs(dialect, varying),
        in_state(*WAITING_STATES) & takes_work(_ME) & MAY_ASSIGN,
        {
            **signed(Actor.LEADER, _LEADER, _EPOCH, moves=2),
            **assigned_to(_ME),
            **started(_EPOCH),
        },
    ).returning(*ORDER_COLUMNS)


def orphan(
    connection: Connection,
    *,
    term: Term,
    runs: Sequence[RunRef],
    reassign_after_seconds: float,
    silent_after_seconds: float,
    lost_alone: Collection[str],
) -> frozenset[int]:
    """ASSIGNED -> ORPHANED, if it was assigned long ago to a worker that is detached or silent. An
    assignment in the future (clock skew: the clock was set back since) is long ago too. It counts
    against `max_orphans` only for runs of the workers `lost_alone`."""
    silent = stale_after(
        reassign_after_seconds=reassign_after_seconds, silent_after_seconds=silent_after_seconds
    )
    parameters = {**term.parameters, **silent, "lost_alone": sorted(lost_alone)}
    return _ids(execute_batch(connection, _orphan, REF_COLUMNS, sorted(runs), parameters))


@lru_cache
def _orphan(dialect: Dialect, varying: tuple[str, ...]) -> ReturningUpdate[Any]:
    return guarded_update(
        _refs(dialect, varying),
        in_state(RunState.ASSIGNED) & guard(is_stale_assignment()) & TERM_IS_CURRENT,
        {
            **_BY_LEADER,
            **orphaned(
                Reason.WORKER_SILENT,
                is_free=not_(in_list(job_runs.c.assigned_worker_id, "lost_alone")),
            ),
        },
    ).returning(job_runs.c.id)


def fail_lost(
    connection: Connection,
    *,
    term: Term,
    runs: Sequence[RunRef],
    silent_after_seconds: float,
    notice_seconds: float = 0.0,
) -> frozenset[int]:
    """RUNNING -> FAILED, if its worker has been silent that long, its silence has been on record for
    `notice_seconds`, and it is not being confirmed. A confirmation deadline further ahead than that does not
    count (clock skew: the clock was set back since)."""
    lost = lost_after(silent_after_seconds, notice_seconds=notice_seconds)
    parameters = {**term.parameters, **lost}
    return _ids(execute_batch(connection, _fail_lost, REF_COLUMNS, sorted(runs), parameters))


@lru_cache
def _fail_lost(dialect: Dialect, varying: tuple[str, ...]) -> ReturningUpdate[Any]:
    return guarded_update(
        _refs(dialect, varying),
        in_state(RunState.RUNNING) & guard(is_lost()) & TERM_IS_CURRENT,
        {**_BY_LEADER, **ended(RunState.FAILED, Reason.WORKER_LOST)},
    ).returning(job_runs.c.id)


def fail_orphaned(
    connection: Connection, *, term: Term, runs: Sequence[RunRef], max_orphans: int
) -> frozenset[int]:
    """ORPHANED -> FAILED, if it was orphaned `max_orphans` times, those that are free left out."""
    parameters = {**term.parameters, "max_orphans": max_orphans}
    return _ids(execute_batch(connection, _fail_orphaned, REF_COLUMNS, sorted(runs), parameters))


@lru_cache
def _fail_orphaned(dialect: Dialect, varying: tuple[str, ...]) -> ReturningUpdate[Any]:
    return guarded_update(
        _refs(dialect, varying),
        in_state(RunState.ORPHANED) & guard(is_at_orphan_limit()) & TERM_IS_CURRENT,
        {**_BY_LEADER, **ended(RunState.FAILED, Reason.ORPHAN_LIMIT)},
    ).returning(job_runs.c.id)


def skip(
    connection: Connection, *, term: Term, runs: Sequence[RunRef], reason: Reason
) -> frozenset[int]:
    """PENDING or ORPHANED -> CANCELED: records that a rule (`reason`) keeps it from running."""
    parameters = {**term.parameters, "why": reason.value}
    return _ids(execute_batch(connection, _skip, REF_COLUMNS, sorted(runs), parameters))


@lru_cache
def _skip(dialect: Dialect, varying: tuple[str, ...]) -> ReturningUpdate[Any]:
    return guarded_update(
        _refs(dialect, varying),
        in_state(*WAITING_STATES) & TERM_IS_CURRENT,
        {**_BY_LEADER, **ended(RunState.CANCELED, bindparam("why", type_=Text()))},
    ).returning(job_runs.c.id)


def replace(connection: Connection, *, term: Term, runs: Sequence[RunRef]) -> frozenset[int]:
    """Any live run -> CANCELED, because its job lets a newer one replace it."""
    return _ids(execute_batch(connection, _replace, REF_COLUMNS, sorted(runs), term.parameters))


@lru_cache
def _replace(dialect: Dialect, varying: tuple[str, ...]) -> ReturningUpdate[Any]:
    return guarded_update(
        _refs(dialect, varying),
        in_state(*LIVE) & TERM_IS_CURRENT,
        {**_BY_LEADER, **ended(RunState.CANCELED, Reason.REPLACED)},
    ).returning(job_runs.c.id)


# --- the worker's moves -------------------------------------------------------------------------


def start(
    connection: AnyConnection, *, worker_id: str, runs: Sequence[RunRef]
) -> dict[int, WorkOrder]:
    """ASSIGNED -> RUNNING for the worker it is assigned to. Not in the answer: do not execute."""
    return _orders(execute_batch(connection, _start, REF_COLUMNS, sorted(runs), {"me": worker_id}))


@lru_cache
def _start(dialect: Dialect, varying: tuple[str, ...]) -> ReturningUpdate[Any]:
    epoch = select(leadership.c.epoch).where(leadership.c.id == 1).scalar_subquery()
    may_start = exists(select(workers.c.id).where(workers.c.id == _ME, is_present()))
    return guarded_update(
        _refs(dialect, varying),
        in_state(RunState.ASSIGNED) & is_assigned_to(_ME) & may_start,
        {**signed(Actor.WORKER, _ME, epoch), **started(epoch)},
    ).returning(*ORDER_COLUMNS)


def finish(connection: Connection, *, worker_id: str, ends: Sequence[RunEnd]) -> frozenset[int]:
    """RUNNING -> its end, for the worker that started it, under the epoch it started under. A run that is
    missing from the answer and still owned is locked, and to be tried again."""
    rows = [(*run, *how) for run, *how in sorted(ends, key=_BY_ID)]
    return _ids(execute_batch(connection, _finish, FINISH_COLUMNS, rows, {"me": worker_id}))


@lru_cache
def _finish(dialect: Dialect, varying: tuple[str, ...]) -> ReturningUpdate[Any]:
    rows = locked_rows(dialect, job_runs, FINISH_COLUMNS, varying)
    return guarded_update(
        rows,
        in_state(RunState.RUNNING)
        & is_assigned_to(_ME)
        & guard(job_runs.c.leader_epoch == rows.c.epoch),
        {
            **signed(Actor.WORKER, _ME, rows.c.epoch),
            **ended(rows.c.state, rows.c.reason),
            "error": rows.c.error,
            "result": rows.c.result,
        },
    ).returning(job_runs.c.id)


def hand_back(connection: Connection, *, worker_id: str, runs: Sequence[RunRef]) -> frozenset[int]:
    """ASSIGNED -> ORPHANED by the worker that has not started it and will not. It does not count against
    `max_orphans`."""
    return _ids(execute_batch(connection, _hand_back, REF_COLUMNS, sorted(runs), {"me": worker_id}))


@lru_cache
def _hand_back(dialect: Dialect, varying: tuple[str, ...]) -> ReturningUpdate[Any]:
    return guarded_update(
        _refs(dialect, varying),
        in_state(RunState.ASSIGNED) & is_assigned_to(_ME),
        {**signed(Actor.WORKER, _ME, None), **orphaned(Reason.WORKER_SHUTDOWN, is_free=true())},
    ).returning(job_runs.c.id)


# --- the operator's move ------------------------------------------------------------------------


def cancel(
    connection: Connection,
    *,
    operator: str,
    runs: Sequence[RunRef],
    term: Term | None = None,
    reason: Reason = Reason.OPERATOR,
) -> frozenset[int]:
    """Any live run -> CANCELED. The worker that runs it finds out and stops. With a `term`, a leader carries out what
    the operator ordered, and nothing moves once that term is over."""
    statement = partial(_cancel, is_led=term is not None)
    parameters = {"me": operator, "why": reason.value, **(term.parameters if term else {})}
    return _ids(execute_batch(connection, statement, REF_COLUMNS, sorted(runs), parameters))


@lru_cache
def _cancel(dialect: Dialect, varying: tuple[str, ...], *, is_led: bool) -> ReturningUpdate[Any]:
    return guarded_update(
        _refs(dialect, varying),
        in_state(*LIVE) & TERM_IS_CURRENT if is_led else in_state(*LIVE),
        {
            **signed(Actor.OPERATOR, _ME, None),
            **ended(RunState.CANCELED, bindparam("why", type_=Text())),
        },
    ).returning(job_runs.c.id)


# --- parts of the functions above ---------------------------------------------------------------


def _refs(dialect: Dialect, varying: tuple[str, ...]) -> LockedRows:
    return locked_rows(dialect, job_runs, REF_COLUMNS, varying)


def _ids(moved: ResultRows) -> frozenset[int]:
    return frozenset(moved.scalars())


def _orders(moved: ResultRows) -> dict[int, WorkOrder]:
    return {row[0]: WorkOrder._make(row) for row in moved.all()}
