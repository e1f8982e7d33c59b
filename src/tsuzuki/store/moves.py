"""Every move of a run, one function each. A move is one conditional UPDATE over a batch.

Each function names, in its WHERE, the run's `version` and `state` as the mover last saw them and what
makes the mover the right one: a leader its term, a worker its own id and the epoch it started under.
The answer is the set of runs that took. A run that is missing from it was moved by somebody else
first: that is an answer, not an error, and the mover does nothing more about it.

The guards sit on the primary key's plan (`guard`); history is written by the database itself.

The three moves that every run makes are statements that are written once and kept; building them anew would
cost more than all else a small batch needs.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    CursorResult,
    Integer,
    Text,
    and_,
    bindparam,
    exists,
    not_,
    or_,
    select,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.dml import ReturningUpdate

from tsuzuki.model.run import RunRef, Started, WorkOrder
from tsuzuki.model.states import Actor, ContinuationState, Reason, RunState
from tsuzuki.model.worker import WorkerState
from tsuzuki.store.batch import Columns, guard, pack
from tsuzuki.store.chosen import chosen
from tsuzuki.store.database import AHEAD_SECONDS, db_now
from tsuzuki.store.leadership import Term, epoch_is, held
from tsuzuki.store.line import Answer, Sender
from tsuzuki.store.move_parts import (
    assigned_to,
    ended,
    guarded_update,
    in_state,
    mine,
    orphaned,
    signed,
    started,
    takes_work,
    worker_is_heard,
)
from tsuzuki.store.tables import job_runs, leadership, workers
from tsuzuki.store.types import JsonText, PlainText

REF_COLUMNS: Columns = {"id": BigInteger(), "version": Integer()}
ASSIGN_COLUMNS: Columns = {**REF_COLUMNS, "worker_id": Text()}
FINISH_COLUMNS: Columns = {
    **REF_COLUMNS,
    "epoch": BigInteger(),
    "state": Text(),
    "reason": Text(),
    "error": PlainText(),
    "result": JsonText(),
}
ORDER_COLUMNS = [job_runs.c[name] for name in WorkOrder._fields]
NOTHING: frozenset[int] = frozenset()
_BY_ID = itemgetter(0)


class Assignment(NamedTuple):
    """A run and the worker the leader chose for it."""

    run: RunRef
    worker_id: str


class Ending(NamedTuple):
    """How a run ended, said by the worker that ran it."""

    run: Started
    state: RunState
    reason: Reason | None = None
    error: str | None = None
    result: Any = None


# --- the leader's moves -------------------------------------------------------------------------
# They leave out a run whose row somebody is just writing, and find it again in the next round: one handler's
# long transaction, or one host that died inside one, must not hold up all leading.


def assign(connection: Sender, *, term: Term, assignments: Sequence[Assignment]) -> frozenset[int]:
    """PENDING or ORPHANED -> ASSIGNED, each to its worker if that worker still takes work."""
    if not assignments:
        return NOTHING
    rows = sorted((run.id, run.version, worker_id) for run, worker_id in assignments)
    packed = pack(connection.dialect, ASSIGN_COLUMNS, rows)
    statement = _assigning(connection.dialect, packed.varying)
    parameters = {**packed.parameters, "leader": term.holder, "epoch": term.epoch}
    return frozenset(connection.execute(statement, parameters).scalars().all())


@lru_cache
def _assigning(dialect: Dialect, varying: tuple[str, ...]) -> ReturningUpdate[Any]:
    rows = chosen(dialect, job_runs, ASSIGN_COLUMNS, varying, skip_locked=True)
    epoch = bindparam("epoch", type_=BigInteger())
    return guarded_update(
        rows,
        in_state(RunState.PENDING, RunState.ORPHANED)
        & takes_work(rows.c.worker_id)
        & epoch_is(epoch),
        {
            **signed(Actor.LEADER, bindparam("leader", type_=Text()), epoch),
            **assigned_to(rows.c.worker_id),
            "state": RunState.ASSIGNED,
        },
    ).returning(job_runs.c.id)


def assign_and_start(
    connection: Sender, *, term: Term, worker_id: str, runs: Sequence[RunRef]
) -> dict[int, WorkOrder]:
    """PENDING or ORPHANED -> ASSIGNED -> RUNNING, both moves at once, for the worker of the leader's own
    process. The row is written once, the history has both, and the guards are those of both."""
    if not runs:
        return {}
    packed = pack(connection.dialect, REF_COLUMNS, sorted(runs))
    statement = _assigning_and_starting(connection.dialect, packed.varying)
    signature = {"leader": term.holder, "epoch": term.epoch, "me": worker_id}
    return _orders(connection.execute(statement, {**packed.parameters, **signature}))


@lru_cache
def _assigning_and_starting(dialect: Dialect, varying: tuple[str, ...]) -> ReturningUpdate[Any]:
    rows = chosen(dialect, job_runs, REF_COLUMNS, varying, skip_locked=True)
    epoch = bindparam("epoch", type_=BigInteger())
    me = bindparam("me", type_=Text())
    return guarded_update(
        rows,
        in_state(RunState.PENDING, RunState.ORPHANED) & takes_work(me) & epoch_is(epoch),
        {
            **signed(Actor.LEADER, bindparam("leader", type_=Text()), epoch, moves=2),
            **assigned_to(me),
            **started(epoch),
        },
    ).returning(*ORDER_COLUMNS)


def orphan(
    connection: Connection,
    *,
    term: Term,
    runs: Sequence[RunRef],
    reassign_after_seconds: float,
    silent_after_seconds: float,
) -> frozenset[int]:
    """ASSIGNED -> ORPHANED, if assigned long ago to a worker that is cut off or silent. Long ago is also
    what lies ahead: it was before the clock was put back, and the silence since then is long enough."""
    stale = and_(
        or_(
            job_runs.c.assigned_at <= db_now(-reassign_after_seconds),
            job_runs.c.assigned_at > db_now(AHEAD_SECONDS),
        ),
        not_(worker_is_heard(silent_after_seconds, attached=True)),
    )
    return _move_refs(
        connection,
        runs,
        in_state(RunState.ASSIGNED) & guard(stale) & held(term),
        {
            **signed(Actor.LEADER, term.holder, term.epoch),
            **orphaned(Reason.WORKER_SILENT),
        },
        skip_locked=True,
    )


def fail_lost(
    connection: Connection,
    *,
    term: Term,
    runs: Sequence[RunRef],
    silent_after_seconds: float,
) -> frozenset[int]:
    """RUNNING -> FAILED, if its worker has been silent that long and is not being confirmed. No deadline is
    further ahead than that silence is long, but for a clock that was put back since it was set."""
    confirming = and_(
        job_runs.c.continuation_state == ContinuationState.CONFIRMING,
        job_runs.c.continuation_check_deadline_at > db_now(),
        job_runs.c.continuation_check_deadline_at <= db_now(silent_after_seconds),
    )
    lost = and_(not_(worker_is_heard(silent_after_seconds)), not_(confirming))
    return _move_refs(
        connection,
        runs,
        in_state(RunState.RUNNING) & guard(lost) & held(term),
        {
            **signed(Actor.LEADER, term.holder, term.epoch),
            **ended(RunState.FAILED, Reason.WORKER_LOST),
        },
        skip_locked=True,
    )


def fail_orphaned(
    connection: Connection, *, term: Term, runs: Sequence[RunRef], max_orphans: int
) -> frozenset[int]:
    """ORPHANED -> FAILED, if that has happened to it too often."""
    return _move_refs(
        connection,
        runs,
        in_state(RunState.ORPHANED) & guard(job_runs.c.orphan_count >= max_orphans) & held(term),
        {
            **signed(Actor.LEADER, term.holder, term.epoch),
            **ended(RunState.FAILED, Reason.ORPHAN_LIMIT),
        },
        skip_locked=True,
    )


def skip(
    connection: Connection, *, term: Term, runs: Sequence[RunRef], reason: Reason
) -> frozenset[int]:
    """PENDING or ORPHANED -> CANCELED: a rule says that it shall not run, and this records it."""
    return _move_refs(
        connection,
        runs,
        in_state(RunState.PENDING, RunState.ORPHANED) & held(term),
        {
            **signed(Actor.LEADER, term.holder, term.epoch),
            **ended(RunState.CANCELED, reason),
        },
        skip_locked=True,
    )


def replace(connection: Connection, *, term: Term, runs: Sequence[RunRef]) -> frozenset[int]:
    """Any live run -> CANCELED, because its job lets a newer one take its place. This one waits for
    a row that is just being written: a run left out here would keep the newer one waiting."""
    return _move_refs(
        connection,
        runs,
        in_state(RunState.PENDING, RunState.ORPHANED, RunState.ASSIGNED, RunState.RUNNING)
        & held(term),
        {
            **signed(Actor.LEADER, term.holder, term.epoch),
            **ended(RunState.CANCELED, Reason.REPLACED),
        },
    )


# --- the worker's moves -------------------------------------------------------------------------


def start(connection: Sender, *, worker_id: str, runs: Sequence[RunRef]) -> dict[int, WorkOrder]:
    """ASSIGNED -> RUNNING for the worker it is assigned to. Not in the answer: do not execute."""
    if not runs:
        return {}
    packed = pack(connection.dialect, REF_COLUMNS, sorted(runs))
    statement = _starting(connection.dialect, packed.varying)
    return _orders(connection.execute(statement, {**packed.parameters, "me": worker_id}))


def _orders(answer: CursorResult[Any] | Answer) -> dict[int, WorkOrder]:
    return {row[0]: WorkOrder._make(row) for row in answer.all()}


@lru_cache
def _starting(dialect: Dialect, varying: tuple[str, ...]) -> ReturningUpdate[Any]:
    rows = chosen(dialect, job_runs, REF_COLUMNS, varying)
    me = bindparam("me", type_=Text())
    epoch = select(leadership.c.epoch).where(leadership.c.id == 1).scalar_subquery()
    may_start = exists(
        select(workers.c.id).where(
            workers.c.id == me,
            workers.c.state.in_([WorkerState.ATTACHED, WorkerState.DRAINING]),
        )
    )
    return guarded_update(
        rows,
        in_state(RunState.ASSIGNED) & mine(me) & may_start,
        {
            **signed(Actor.WORKER, me, epoch),
            **started(epoch),
        },
    ).returning(*ORDER_COLUMNS)


def finish(connection: Connection, *, worker_id: str, endings: Sequence[Ending]) -> frozenset[int]:
    """RUNNING -> its end, for the worker that started it, under the epoch it started under."""
    if not endings:
        return NOTHING
    rows = [(*run, *how) for run, *how in sorted(endings, key=_BY_ID)]
    packed = pack(connection.dialect, FINISH_COLUMNS, rows)
    statement = _finishing(connection.dialect, packed.varying)
    parameters = {**packed.parameters, "me": worker_id}
    return frozenset(connection.execute(statement, parameters).scalars().all())


@lru_cache
def _finishing(dialect: Dialect, varying: tuple[str, ...]) -> ReturningUpdate[Any]:
    rows = chosen(dialect, job_runs, FINISH_COLUMNS, varying)
    me = bindparam("me", type_=Text())
    return guarded_update(
        rows,
        in_state(RunState.RUNNING) & mine(me) & guard(job_runs.c.leader_epoch == rows.c.epoch),
        {
            **signed(Actor.WORKER, me, rows.c.epoch),
            **ended(rows.c.state, rows.c.reason),
            "error": rows.c.error,
            "result": rows.c.result,
        },
    ).returning(job_runs.c.id)


def hand_back(connection: Connection, *, worker_id: str, runs: Sequence[RunRef]) -> frozenset[int]:
    """ASSIGNED -> ORPHANED by the worker that has not begun it and will not. What somebody holds is left
    for the next time."""
    return _move_refs(
        connection,
        runs,
        in_state(RunState.ASSIGNED) & mine(worker_id),
        {
            **signed(Actor.WORKER, worker_id, None),
            **orphaned(Reason.WORKER_SHUTDOWN),
        },
        skip_locked=True,
    )


# --- the operator's move ------------------------------------------------------------------------


def cancel(connection: Connection, *, operator: str, runs: Sequence[RunRef]) -> frozenset[int]:
    """Any live run -> CANCELED. The worker that runs it finds out and stops."""
    return _move_refs(
        connection,
        runs,
        in_state(RunState.PENDING, RunState.ORPHANED, RunState.ASSIGNED, RunState.RUNNING),
        {
            **signed(Actor.OPERATOR, operator, None),
            **ended(RunState.CANCELED, Reason.OPERATOR),
        },
    )


# --- a batch of runs that all move alike ---------------------------------------------------------


def _move_refs(
    connection: Connection,
    runs: Sequence[RunRef],
    allowed: ColumnElement[bool],
    values: Mapping[str, Any],
    *,
    skip_locked: bool = False,
) -> frozenset[int]:
    if not runs:
        return NOTHING
    packed = pack(connection.dialect, REF_COLUMNS, sorted(runs))
    rows = chosen(
        connection.dialect,
        job_runs,
        REF_COLUMNS,
        packed.varying,
        parameters=packed.parameters,
        skip_locked=skip_locked,
    )
    statement = guarded_update(rows, allowed, values).returning(job_runs.c.id)
    return frozenset(connection.execute(statement).scalars().all())
