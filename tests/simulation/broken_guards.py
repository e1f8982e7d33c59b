"""Guards of the engine, each removed, to prove that the simulation detects it (mutation testing).

A guard in SQL is removed from the statement on its way to the database, however the store builds it; the others are
patched where they are decided.
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
from tsuzuki.store.sql.autocommit import AutocommitConnection

EPOCH = r"leadership\.epoch = \?"
LEADER = r"leadership\.holder = \?"
VERSION = r"job_runs\.version = \w+\.version"
STATE = r"job_runs\.state (?:IN \([^)]*\)|= (?:\?|'\w+'))"
HOLDER = r"job_runs\.(?:assigned_worker_id = \?|leader_epoch = \w+\.epoch)"
LEADER_WRITES = r"UPDATE (?!leadership)|INSERT"


@dataclass(frozen=True, kw_only=True)
class BrokenGuard:
    """`violation` is a pattern of the message that seeds of `scenario` must then lead to."""

    name: str
    scenario: str
    violation: str
    broken: Callable[[], AbstractContextManager[Any]]
    guarded: bool = True
    """Whether the database's own triggers stay in place."""


_send_autocommit = AutocommitConnection.send


@contextmanager
def without(statements: str, *conditions: str) -> Iterator[None]:
    """Make these conditions always true in every statement that matches."""
    engine = shared_store().engine
    removed = 0

    def broken(sql: str) -> str:
        nonlocal removed
        if re.match(statements, sql):
            for condition in conditions:
                sql, count = re.subn(condition, lambda found: f"({found[0]} OR 1)", sql)
                removed += count
        return sql

    def send(_c: Any, _cursor: Any, sql: str, values: Any, _context: Any, _many: bool) -> Any:
        return broken(sql), values

    def send_autocommit(
        connection: AutocommitConnection, sql: str, values: Any = (), **options: Any
    ) -> Any:
        return _send_autocommit(connection, broken(sql), values, **options)

    event.listen(engine, "before_cursor_execute", send, retval=True)
    try:
        with patch.object(AutocommitConnection, "send", send_autocommit):
            yield
    finally:
        event.remove(engine, "before_cursor_execute", send)
    assert removed, f"no statement like {statements} has {conditions}"


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
    """Without the lock until what was started is in the queue (race)."""
    local = LocalStart(worker.worker_id if worker.accepting else None)
    try:
        yield local
    except BaseException:
        worker._on_unknown_commit()
        worker._wake()
        raise
    worker._adopted_next.extend(local.tasks)
    if local.tasks:
        worker._wake()


@contextmanager
def _local_start_without_reconciling(worker: Worker) -> Iterator[LocalStart]:
    """A lost reply is taken for a rollback."""
    with worker._local_start_lock:
        local = LocalStart(worker.worker_id if worker.accepting else None)
        yield local
        worker._adopted_next.extend(local.tasks)
    worker._wake()


_on_detached = Worker.on_detached


def _detached_for_good(worker: Worker) -> None:
    """It takes its detachment for an order to drain."""
    worker._is_draining = True
    _on_detached(worker)


_emit = events.emit


def _emit_always(connection: Any, *, dedupe_key: str, **values: Any) -> Any:
    return _emit(connection, **values)


BROKEN_GUARDS: tuple[BrokenGuard, ...] = (
    BrokenGuard(
        name="leader writes ignore their term",
        scenario="pauses",
        violation="wrote under epoch",
        broken=lambda: without(LEADER_WRITES, EPOCH, LEADER),
    ),
    BrokenGuard(
        name="moves ignore version and state",
        scenario="operators",
        violation=" by the |CHECK constraint",
        broken=lambda: without(r"UPDATE job_runs SET state=\?", VERSION, STATE),
        guarded=False,
    ),
    BrokenGuard(
        name="moves ignore version and state, and the triggers refuse it",
        scenario="operators",
        violation="refused a statement",
        broken=lambda: without(r"UPDATE job_runs SET state=\?", VERSION, STATE),
    ),
    BrokenGuard(
        name="workers end runs by id alone",
        scenario="pauses",
        violation="by the worker",
        broken=lambda: without(r"UPDATE job_runs SET state=\w+\.", VERSION, STATE, HOLDER),
        guarded=False,
    ),
    BrokenGuard(
        name="handlers write without a fence",
        scenario="pauses",
        violation="was fenced and wrote a row",
        broken=lambda: patch.object(ownership, "lock_if_owned", lambda *_a, **_k: True),
    ),
    BrokenGuard(
        name="retries have no idempotency key",
        scenario="operators",
        violation="is retried twice",
        broken=lambda: patch.object(run_module, "NewRun", _keyless),
    ),
    BrokenGuard(
        name="concurrency limits are not counted",
        scenario="lost replies",
        violation="at once",
        broken=lambda: patch.object(capacity, "_held", _nothing_held),
    ),
    BrokenGuard(
        name="an unconfirmed worker goes on",
        scenario="lost connections",
        violation="still executing it",
        broken=_never_stops_by_itself,
    ),
    BrokenGuard(
        name="a detached worker is taken for one that drains",
        scenario="lost connections",
        violation="without being asked to|was not asked to stop",
        broken=lambda: patch.object(Worker, "on_detached", _detached_for_good),
    ),
    BrokenGuard(
        name="a leader goes on after its deadline",
        scenario="lost connections",
        violation="still leads under epoch",
        broken=lambda: patch.object(Lease, "term", property(lambda lease: lease._term)),
    ),
    BrokenGuard(
        name="no reconciliation after a lost reply",
        scenario="lost replies",
        violation="not everything ended",
        broken=lambda: patch.object(Worker, "_reconcile", lambda *_a, **_k: []),
    ),
    BrokenGuard(
        name="no reconciliation after a lost reply to a local start",
        scenario="lost replies",
        violation="not everything ended",
        broken=lambda: patch.object(Worker, "local_start", _local_start_without_reconciling),
    ),
    BrokenGuard(
        name="reconciliation races with a local start",
        scenario="lost replies",
        violation="twice",
        broken=lambda: patch.object(Worker, "local_start", _local_start_unlocked),
    ),
    BrokenGuard(
        name="skipped ticks are not recorded",
        scenario="clock steps",
        violation="ticks",
        broken=lambda: patch.object(planner, "_store_skipped", lambda *_a, **_k: 0),
    ),
    BrokenGuard(
        name="a leader judges silence before it has listened",
        scenario="clock steps",
        violation="still executing it",
        broken=lambda: patch.object(SilenceGuard, "may_judge", lambda *_a, **_k: True),
    ),
    BrokenGuard(
        name="a lease in the future is not shortened (clock skew)",
        scenario="clock steps",
        violation="there is no leader",
        broken=lambda: patch.object(leadership, "shorten_overlong_lease", lambda *_a: None),
    ),
    BrokenGuard(
        name="a lease is taken while it is held",
        scenario="crashes",
        violation="held its lease",
        broken=lambda: without(r"UPDATE leadership", r"leadership\.lease_expires_at <= \S+ \S+\)"),
    ),
    BrokenGuard(
        name="the deduplication key of an event is ignored",
        scenario="operators",
        violation="has made two events",
        broken=lambda: patch.object(events, "emit", _emit_always),
    ),
)
