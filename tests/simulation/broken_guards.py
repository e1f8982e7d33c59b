"""Guards, each taken out, to see whether the simulation would notice.

What is said in SQL is taken out of the SQL on its way to the database, so that it does not matter how the store
builds it; the rest is patched where it is decided.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from sqlalchemy import event

from simulation.shared_store import shared_store
from tsuzuki.engine.leader import planner
from tsuzuki.engine.leader.lease import Lease
from tsuzuki.engine.leader.silence_guard import SilenceGuard
from tsuzuki.engine.worker.heartbeat import Heartbeat, HeartbeatResult
from tsuzuki.engine.worker.local_start import LocalStart
from tsuzuki.engine.worker.worker import Worker
from tsuzuki.model import run as run_module
from tsuzuki.model.run import NewRun
from tsuzuki.store import events, leadership
from tsuzuki.store.runs import capacity, ownership

EPOCH = r"leadership\.epoch = \?"
VERSION = r"job_runs\.version = \w+\.version"
STATE = r"job_runs\.state (?:IN \([^)]*\)|= (?:\?|'\w+'))"
HOLDER = r"job_runs\.(?:assigned_worker_id = \?|leader_epoch = \w+\.epoch)"


@dataclass(frozen=True, kw_only=True)
class BrokenGuard:
    """`scenario` is where it is looked for, `law` (a pattern) what is then said to be broken."""

    name: str
    scenario: str
    law: str
    broken: Callable[[], AbstractContextManager[Any]]
    guarded: bool = True
    """Whether the database's own triggers are left in place."""


@contextmanager
def without(statements: str, *conditions: str) -> Iterator[None]:
    """In every statement that begins like this, these conditions are true whatever they say."""
    engine = shared_store().engine
    taken_out = 0

    def send(_c: Any, _cursor: Any, sql: str, given: Any, _context: Any, _many: bool) -> Any:
        nonlocal taken_out
        if re.match(statements, sql):
            for condition in conditions:
                sql, count = re.subn(condition, lambda found: f"({found[0]} OR 1)", sql)
                taken_out += count
        return sql, given

    event.listen(engine, "before_cursor_execute", send, retval=True)
    try:
        yield
    finally:
        event.remove(engine, "before_cursor_execute", send)
    assert taken_out, f"no statement like {statements} has {conditions}"


def _keyless(**values: Any) -> NewRun:
    return NewRun(**{**values, "idempotency_key": None})


def _nothing_held(_rows: Any) -> capacity.HeldRuns:
    return capacity.HeldRuns(by_worker={}, by_job={}, by_key={})


@contextmanager
def _never_stops_by_itself() -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(
            patch.object(Heartbeat, "_unreachable", lambda _self: HeartbeatResult.UNREACHABLE)
        )
        stack.enter_context(patch.object(Heartbeat, "looks_hung", lambda _self, _seconds: False))
        yield


@contextmanager
def _local_start_unlocked(worker: Worker) -> Iterator[LocalStart]:
    """Nobody has to wait until what was started is in the queue."""
    local = LocalStart(worker.worker_id if worker.accepting else None)
    try:
        yield local
    except BaseException:
        worker._on_unknown_commit()
        raise
    worker._adopted_next.extend(local.tasks)
    worker._wake()


@contextmanager
def _local_start_without_reconciling(worker: Worker) -> Iterator[LocalStart]:
    """A lost reply about what was started is taken for a no."""
    with worker._local_start_lock:
        local = LocalStart(worker.worker_id if worker.accepting else None)
        yield local
        worker._adopted_next.extend(local.tasks)
    worker._wake()


_on_detached = Worker.on_detached


def _detached_for_good(worker: Worker) -> None:
    """It marks itself as draining, and then obeys its own mark."""
    worker._is_draining = True
    _on_detached(worker)


_emit = events.emit


def _emit_always(connection: Any, *, dedupe_key: str, **said: Any) -> Any:
    return _emit(connection, **said)


BROKEN_GUARDS: tuple[BrokenGuard, ...] = (
    BrokenGuard(
        name="leaders write whatever their epoch",
        scenario="pauses",
        law="wrote under epoch",
        broken=lambda: without(r"UPDATE (?!leadership)|INSERT", EPOCH),
    ),
    BrokenGuard(
        name="runs are moved that were moved meanwhile",
        scenario="operators",
        law=" by the |CHECK constraint",
        broken=lambda: without(r"UPDATE job_runs SET state=\?", VERSION, STATE),
        guarded=False,
    ),
    BrokenGuard(
        name="the same, and the database refuses it",
        scenario="operators",
        law="asked for what it refuses",
        broken=lambda: without(r"UPDATE job_runs SET state=\?", VERSION, STATE),
    ),
    BrokenGuard(
        name="workers end runs by their id alone",
        scenario="pauses",
        law="by the worker",
        broken=lambda: without(r"UPDATE job_runs SET state=\w+\.", VERSION, STATE, HOLDER),
        guarded=False,
    ),
    BrokenGuard(
        name="handlers write without a fence",
        scenario="pauses",
        law="was fenced off and wrote a row",
        broken=lambda: patch.object(ownership, "lock_if_owned", lambda *_a, **_k: True),
    ),
    BrokenGuard(
        name="retries have no key",
        scenario="operators",
        law="is repeated twice",
        broken=lambda: patch.object(run_module, "NewRun", _keyless),
    ),
    BrokenGuard(
        name="limits are not counted",
        scenario="lost replies",
        law="at once",
        broken=lambda: patch.object(capacity, "_held", _nothing_held),
    ),
    BrokenGuard(
        name="a worker in doubt goes on",
        scenario="cut lines",
        law="still executing it",
        broken=_never_stops_by_itself,
    ),
    BrokenGuard(
        name="a worker that was cut off is taken for one that leaves",
        scenario="cut lines",
        law="nobody sent it away",
        broken=lambda: patch.object(Worker, "on_detached", _detached_for_good),
    ),
    BrokenGuard(
        name="a leader in doubt goes on",
        scenario="cut lines",
        law="still believes in epoch",
        broken=lambda: patch.object(Lease, "term", property(lambda lease: lease._term)),
    ),
    BrokenGuard(
        name="what a lost reply began is forgotten",
        scenario="lost replies",
        law="not everything ended",
        broken=lambda: patch.object(Worker, "_reconcile", lambda *_a, **_k: []),
    ),
    BrokenGuard(
        name="what a leader began for its own worker is forgotten",
        scenario="lost replies",
        law="not everything ended",
        broken=lambda: patch.object(Worker, "local_start", _local_start_without_reconciling),
    ),
    BrokenGuard(
        name="what is just arriving is read back too",
        scenario="lost replies",
        law="twice",
        broken=lambda: patch.object(Worker, "local_start", _local_start_unlocked),
    ),
    BrokenGuard(
        name="skipped ticks are not recorded",
        scenario="clock steps",
        law="ticks",
        broken=lambda: patch.object(planner, "_store_skipped", lambda *_a, **_k: 0),
    ),
    BrokenGuard(
        name="a leader judges before it listened",
        scenario="clock steps",
        law="still executing it",
        broken=lambda: patch.object(SilenceGuard, "may_judge", lambda *_a, **_k: True),
    ),
    BrokenGuard(
        name="a lease lasts as long as the clock was put back by",
        scenario="clock steps",
        law="nobody leads",
        broken=lambda: patch.object(leadership, "shorten_overlong_lease", lambda *_a: None),
    ),
    BrokenGuard(
        name="a lease is taken that is held",
        scenario="crashes",
        law="held its lease",
        broken=lambda: without(r"UPDATE leadership", r"leadership\.lease_expires_at <= \S+ \S+\)"),
    ),
    BrokenGuard(
        name="an event's key is not looked at",
        scenario="operators",
        law="has made two events",
        broken=lambda: patch.object(events, "emit", _emit_always),
    ),
)
