"""Guards of the engine, each removed, to prove that the simulation detects it (mutation testing).

A guard in SQL is removed from the statement on its way to the database, however the store builds it; the others are
patched where they are decided.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from unittest.mock import patch

from sqlalchemy import event

from simulation.changes_by_time import changes_by_time
from simulation.clocks import SimulatedClock
from simulation.row_locks import RowLocks
from simulation.shared_store import shared_store
from tsuzuki.engine import death_watch
from tsuzuki.engine.leader import bulk_canceler, placement, planner
from tsuzuki.engine.leader.assigner import Assigner
from tsuzuki.engine.leader.bulk_canceler import BulkCanceler, KnownCancels
from tsuzuki.engine.leader.canceler import Canceler
from tsuzuki.engine.leader.lease import Lease
from tsuzuki.engine.leader.silence_guard import SilenceGuard
from tsuzuki.engine.local_start import LocalStart
from tsuzuki.engine.task import Task
from tsuzuki.engine.worker.heartbeat import Heartbeat, HeartbeatResult
from tsuzuki.engine.worker.output_buffer import BufferedOutput, OutputBuffer
from tsuzuki.engine.worker.step import WorkerStep
from tsuzuki.engine.worker.worker import Worker
from tsuzuki.model import run as run_module
from tsuzuki.model.abilities import Needs
from tsuzuki.model.job import Job, JobSpec
from tsuzuki.model.run import NewRun, Run
from tsuzuki.model.states import RunState
from tsuzuki.services import bulk
from tsuzuki.services.local_engine import LocalEngine
from tsuzuki.services.runs import Runs
from tsuzuki.store import events, jobs, leadership, rollups, workers
from tsuzuki.store.runs import cancel_requests, capacity, ownership, runs
from tsuzuki.store.runs.capacity import Capacity, WorkerCapacity
from tsuzuki.store.runs.progress import ProgressReport
from tsuzuki.store.sql.autocommit import AutocommitConnection

EPOCH = r"tsuzuki_leadership\.epoch = \?"
LEADER = r"tsuzuki_leadership\.holder = \?"
VERSION = r"tsuzuki_job_runs\.version = \w+\.version"
STATE = r"tsuzuki_job_runs\.state (?:IN \([^)]*\)|= (?:\?|'\w+'))"
HOLDER = r"tsuzuki_job_runs\.(?:assigned_worker_id = \?|leader_epoch = \w+\.epoch)"
NEWER_REPORT = r"(?:\w+\.number|\?) > coalesce\(tsuzuki_job_runs\.progress_number, \?\)"
LEADER_WRITES = r"UPDATE (?!tsuzuki_leadership)|INSERT"


@dataclass(frozen=True, kw_only=True)
class BrokenGuard:
    """`violation` is a pattern of the message that seeds of `scenario` must then lead to."""

    name: str
    scenario: str
    violation: str
    broken: Callable[[], AbstractContextManager[Any]]
    seed: int | None = None
    """One that is known to lead to it, tried before the others."""
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
def _local_start_unlocked(local: LocalStart, *, wakes: bool = True) -> Iterator[list[Task]]:
    """Without the lock until what was started is in the queue (race)."""
    tasks: list[Task] = []
    try:
        yield tasks
    except BaseException:
        local.note_unknown_commit()
        local._wake()
        raise
    local.queue.extend(tasks)
    if wakes:
        local._wake()


@contextmanager
def _local_start_without_reconciling(
    local: LocalStart, *, wakes: bool = True
) -> Iterator[list[Task]]:
    """A lost reply is taken for a rollback."""
    tasks: list[Task] = []
    with local.lock:
        yield tasks
        local.queue.extend(tasks)
    if wakes:
        local._wake()


def _store_all_or_none(
    worker: Worker, _ends: Any, output: BufferedOutput, problem: Exception
) -> WorkerStep:
    worker.output.put_back(output)
    raise problem


_on_detached = Worker.on_detached


def _detached_for_good(worker: Worker) -> None:
    """It takes its detachment for an order to drain."""
    worker._is_draining = True
    _on_detached(worker)


def _without_suspends(clock: SimulatedClock) -> float:
    """CLOCK_MONOTONIC, which stands still while the machine is suspended."""
    return clock._scheduler.now - clock.slept_seconds


_may_have = placement._may_have


def _may_have_any_job(worker: WorkerCapacity, spec: JobSpec, needs: Needs) -> bool:
    return _may_have(worker._replace(only_job=None), spec, needs)


def _may_have_any_tags(worker: WorkerCapacity, spec: JobSpec, needs: Needs) -> bool:
    return _may_have(worker, replace(spec, tags=frozenset()), needs)


def _may_have_any_program(worker: WorkerCapacity, spec: JobSpec, needs: Needs) -> bool:
    return _may_have(worker._replace(abilities=None), spec, needs)


_skipped_by = Job.skipped_by


def _skipped_if_enabled(job: Job, spec: JobSpec | None, now: datetime) -> Any:
    return _skipped_by(job, spec, now) if job.spec.enabled else None


def _report_not_taken(output: OutputBuffer, run_id: int) -> ProgressReport | None:
    return output._output.reports.get(run_id)


_start_if_needed = LocalEngine.start_if_needed


def _start_for_every_job(
    engine: LocalEngine, *, only_job: str | None = None, only_run: int | None = None, **options: Any
) -> bool:
    return _start_if_needed(engine, **options)


_capacity = capacity._capacity


def _capacity_for_every_run(rows: Any) -> Capacity:
    found = _capacity(rows)
    return found._replace(workers=[worker._replace(only_run=None) for worker in found.workers])


@contextmanager
def waiting(statements: str) -> Iterator[None]:
    """Make statements that skip locked rows wait for them, where they match."""
    skips, changed = RowLocks.skips, 0

    def skips_no_more(locks: RowLocks, statement: str) -> bool:
        nonlocal changed
        is_changed = re.search(statements, statement, re.DOTALL) is not None
        changed += is_changed
        return skips(locks, statement) and not is_changed

    with patch.object(RowLocks, "skips", skips_no_more):
        yield
    assert changed, f"no statement like {statements} changed a run"


@contextmanager
def _requests_forgotten() -> Iterator[None]:
    with (
        patch.object(Canceler, "tick", lambda *_a: 0),
        patch.object(cancel_requests, "of_runs", lambda *_a: {}),
    ):
        yield


_submit = Runs._submit


@contextmanager
def _remembered_after_rollbacks() -> Iterator[None]:
    """A job that was read in a caller's transaction is kept, and known by its id and version alone."""

    def submit(runs: Runs, connection: Any, requests: Any, **_options: Any) -> Any:
        return _submit(runs, connection, requests)

    conditions = (
        r"tsuzuki_job_definitions\.name = \?",
        r"tsuzuki_job_definitions\.updated_at = \?",
    )
    with (
        patch.object(Runs, "_submit", submit),
        without("INSERT INTO tsuzuki_job_runs", *conditions),
    ):
        yield


_heartbeat, _register = workers.heartbeat, workers.register


@contextmanager
def _judged_by_the_newest_settings() -> Iterator[None]:
    """Workers do not store the settings that they work by."""

    def heartbeat(connection: Any, worker_id: str, **_works_by: Any) -> Any:
        return _heartbeat(connection, worker_id)

    def register(connection: Any, **values: Any) -> None:
        _register(connection, **{**values, "works_by": None})

    with (
        patch.object(workers, "heartbeat", heartbeat),
        patch.object(workers, "register", register),
    ):
        yield


_know_cancels = Assigner.know_cancels


def _know_their_number(assigner: Assigner, known: KnownCancels) -> None:
    _know_cancels(assigner, KnownCancels(known.confirmed))


_bulk_change = bulk_canceler._change


def _change_of_waiting(action: Any, run_id: int, _before: RunState, after: Any) -> Any:
    return _bulk_change(action, run_id, RunState.PENDING, after)


def _still_live(connection: Any, _wanted: Any, run_ids: list[int]) -> list[Run]:
    """Whatever state they are in by now."""
    return [run for run in runs.get_many(connection, run_ids) if not run.state.is_final]


CONFIRMATION = (
    r"^UPDATE tsuzuki_job_runs SET continuation_state=\?, continuation_check_deadline_at=\? "
)
LIVE = r"'PENDING', 'ORPHANED', 'ASSIGNED', 'RUNNING'\)\)"

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
        broken=lambda: without(r"UPDATE tsuzuki_job_runs SET state=\?", VERSION, STATE),
        guarded=False,
    ),
    BrokenGuard(
        name="moves ignore version and state, and the triggers refuse it",
        scenario="operators",
        violation="refused a statement",
        broken=lambda: without(r"UPDATE tsuzuki_job_runs SET state=\?", VERSION, STATE),
    ),
    BrokenGuard(
        name="workers end runs by id alone",
        scenario="pauses",
        violation="by the worker",
        broken=lambda: without(r"UPDATE tsuzuki_job_runs SET state=\w+\.", VERSION, STATE, HOLDER),
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
        broken=lambda: patch.object(LocalStart, "starting", _local_start_without_reconciling),
    ),
    BrokenGuard(
        name="reconciliation races with a local start",
        scenario="lost replies",
        violation="twice",
        broken=lambda: patch.object(LocalStart, "starting", _local_start_unlocked),
    ),
    BrokenGuard(
        name="skipped ticks are not recorded",
        scenario="clock steps",
        violation="ticks",
        broken=lambda: patch.object(planner, "store_skipped", lambda *_a, **_k: 0),
    ),
    BrokenGuard(
        name="a leader judges silence before it has listened",
        scenario="clock steps",
        violation="still executing it",
        seed=676,
        broken=lambda: patch.object(SilenceGuard, "may_judge", lambda *_a, **_k: True),
    ),
    BrokenGuard(
        name="deadlines leave out the time that the machine was suspended",
        scenario="suspended machines",
        violation="which was failed as lost",
        broken=lambda: patch.object(SimulatedClock, "monotonic", _without_suspends),
    ),
    BrokenGuard(
        name="a process is recorded as dead by the process table alone",
        scenario="deaths that other processes see",
        violation="its command still runs|still executing it",
        broken=lambda: patch.object(
            death_watch, "has_died", lambda file: file.is_out_of_process_table()
        ),
    ),
    BrokenGuard(
        name="a process is recorded as dead by its lock alone",
        scenario="deaths that other processes see",
        violation="still executing it",
        broken=lambda: patch.object(death_watch, "has_died", lambda file: file.is_unlocked()),
    ),
    BrokenGuard(
        name="a worker that is recorded as dead is reattached",
        scenario="deaths that other processes see",
        violation="was recorded as dead, and gets run",
        broken=lambda: without(
            r"UPDATE tsuzuki_workers SET state=", r"tsuzuki_workers\.died_at IS NULL"
        ),
    ),
    BrokenGuard(
        name="the leader waits for the row of a run that is replaced",
        scenario="long transactions",
        violation="waits for a row that a handler holds",
        seed=35,
        broken=lambda: waiting(LIVE + ".*leadership"),
    ),
    BrokenGuard(
        name="a cancel waits for the row",
        scenario="long transactions that are canceled",
        violation="waits for a row that a handler holds",
        broken=lambda: waiting(LIVE + " RETURNING"),
    ),
    BrokenGuard(
        name="a request for confirmation waits for the row of its own handler",
        scenario="long transactions",
        violation="waits for a row that a handler holds",
        seed=26,
        broken=lambda: waiting(r"continuation_check_deadline_at=\(SELECT"),
    ),
    BrokenGuard(
        name="the leader's confirmation waits for the row of a handler",
        scenario="long transactions",
        violation="waits for a row that a handler holds",
        seed=72,
        broken=lambda: waiting(CONFIRMATION),
    ),
    BrokenGuard(
        name="a start waits for a row after ends (deadlock)",
        scenario="long transactions",
        violation="may wait for a row while it holds others",
        seed=5,
        broken=lambda: waiting(r"leader_epoch=\(SELECT"),
    ),
    BrokenGuard(
        name="a requested cancel is forgotten",
        scenario="long transactions that are canceled",
        violation="was canceled and goes on",
        seed=10,
        broken=_requests_forgotten,
    ),
    BrokenGuard(
        name="a wait for the write lock is taken for silence",
        scenario="a write lock held for long",
        violation="was lost without a fault",
        broken=lambda: patch.object(Heartbeat, "read_silence", lambda _self: 60.0),
    ),
    BrokenGuard(
        name="a run is assigned that was chosen before a bulk cancel was confirmed",
        scenario="bulk cancels",
        violation="was assigned after its bulk cancel",
        broken=lambda: without(
            r"UPDATE tsuzuki_job_runs", r"tsuzuki_leadership\.bulk_cancels = \?"
        ),
    ),
    BrokenGuard(
        name="runs are assigned that a bulk cancel covers",
        scenario="bulk cancels",
        violation="was assigned after its bulk cancel",
        broken=lambda: patch.object(Assigner, "know_cancels", _know_their_number),
    ),
    BrokenGuard(
        name="a bulk cancel is left to the queue",
        scenario="bulk cancels",
        violation="was canceled and goes on",
        broken=lambda: patch.object(BulkCanceler, "tick", lambda *_a: 0),
    ),
    BrokenGuard(
        name="a bulk cancel of what waits reaches runs that have started",
        scenario="bulk cancels",
        violation="canceled among those that wait",
        broken=lambda: patch.object(bulk, "frozen_states", lambda verb, _s: verb.possible_states),
    ),
    BrokenGuard(
        name="a run that moves while it is canceled in bulk is not matched with the filter again",
        scenario="bulk cancels of runs that start",
        violation="canceled among those that wait",
        broken=lambda: patch.object(bulk_canceler, "_still_matching", _still_live),
    ),
    BrokenGuard(
        name="the audit log has the state of the preview, not that of the move",
        scenario="bulk cancels",
        violation="the audit log tells otherwise",
        broken=lambda: patch.object(bulk_canceler, "_change", _change_of_waiting),
    ),
    BrokenGuard(
        name="a job of a transaction that was rolled back is remembered",
        scenario="transactions of a program",
        violation="was confirmed and is not stored",
        broken=_remembered_after_rollbacks,
    ),
    BrokenGuard(
        name="a change of a job leaves out ticks that were due",
        scenario="edited jobs",
        violation="ticks .* are wrong",
        broken=lambda: patch.object(Job, "skipped_by", lambda *_a: None),
    ),
    BrokenGuard(
        name="ticks that passed while a job was disabled are left out when it is enabled",
        scenario="edited jobs",
        violation="ticks .* are wrong",
        broken=lambda: patch.object(Job, "skipped_by", _skipped_if_enabled),
    ),
    BrokenGuard(
        name="a job that is added again has a new row",
        scenario="edited jobs",
        violation="runs at once",
        seed=234,
        broken=lambda: patch.object(jobs, "_restore", lambda *_a: []),
    ),
    BrokenGuard(
        name="an older progress report replaces a newer one",
        scenario="progress reports",
        violation="the progress of a run went back",
        seed=111,
        broken=lambda: without("UPDATE tsuzuki_job_runs SET progress", NEWER_REPORT),
    ),
    BrokenGuard(
        name="a transaction leaves out a report that the worker has taken to write it",
        scenario="progress reports",
        violation="has the progress",
        seed=111,
        broken=lambda: patch.object(OutputBuffer, "unstored_progress", _report_not_taken),
    ),
    BrokenGuard(
        name="an end is not counted after its hour",
        scenario="hours that are counted",
        violation="the hourly statistics differ",
        broken=lambda: patch.object(rollups, "add_late_ends", lambda *_a, **_k: 0),
    ),
    BrokenGuard(
        name="a worker is judged by settings that it has not read",
        scenario="changed silence limits",
        violation="still executing it",
        seed=73,
        broken=_judged_by_the_newest_settings,
    ),
    BrokenGuard(
        name="one end that cannot be stored stops the others",
        scenario="values at their bounds",
        violation="the end of run .* is not stored",
        broken=lambda: patch.object(Worker, "_store_singly", _store_all_or_none),
    ),
    BrokenGuard(
        name="leaders ignore the one job that a worker was started for",
        scenario="foreground engines",
        violation="may not have a run",
        broken=lambda: patch.object(placement, "_may_have", _may_have_any_job),
    ),
    BrokenGuard(
        name="leaders ignore the one run that a worker was started for",
        scenario="foreground engines",
        violation="may have no other run than",
        broken=lambda: patch.object(capacity, "_capacity", _capacity_for_every_run),
    ),
    BrokenGuard(
        name="an engine for one run takes every job",
        scenario="foreground engines",
        violation="may not have a run",
        broken=lambda: patch.object(LocalEngine, "start_if_needed", _start_for_every_job),
    ),
    BrokenGuard(
        name="leaders ignore the tags of a job",
        scenario="foreground engines",
        violation="may not have a run of tagged",
        broken=lambda: patch.object(placement, "_may_have", _may_have_any_tags),
    ),
    BrokenGuard(
        name="leaders ignore the program that a job needs",
        scenario="foreground engines",
        violation="may not have a run of scripted",
        broken=lambda: patch.object(placement, "_may_have", _may_have_any_program),
    ),
    BrokenGuard(
        name="a step of the clock counts as silence of a worker that is cut off",
        scenario="clock steps",
        violation="still executing it",
        seed=354,
        broken=lambda: patch.object(SilenceGuard, "_has_stepped", lambda *_a: False),
    ),
    BrokenGuard(
        name="a lease in the future is not shortened (clock skew)",
        scenario="clock steps",
        violation="there is no leader",
        broken=lambda: patch.object(leadership, "shorten_overlong_lease", lambda *_a: None),
    ),
    BrokenGuard(
        name="the stream of changes is ordered by time instead of commits",
        scenario="small clock steps",
        violation="the stream left out",
        seed=30,
        broken=changes_by_time,
    ),
    BrokenGuard(
        name="a lease is taken while it is held",
        scenario="crashes",
        violation="held its lease",
        broken=lambda: without(
            r"UPDATE tsuzuki_leadership", r"tsuzuki_leadership\.lease_expires_at <= \S+ \S+\)"
        ),
    ),
    BrokenGuard(
        name="the deduplication key of an event is ignored",
        scenario="operators",
        violation="has made two events",
        broken=lambda: patch.object(events, "emit", _emit_always),
    ),
)
