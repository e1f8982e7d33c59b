"""The whole engine with its threads, on the machine's own clock: it runs, shuts down, and is detached."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from typing import Any

import pytest

from support.factories import add_job, spec
from support.history_checker import check_history
from support.scripted_executors import Handler, ThreadExecutor
from support.unreliable_database import UnreliableDatabase
from support.waiting import wait_until
from tsuzuki.engine.outcome import Failed, Outcome, Succeeded
from tsuzuki.engine.process import Engine
from tsuzuki.engine.role import Role
from tsuzuki.engine.run_until_idle import run_until_idle
from tsuzuki.engine.task import Task
from tsuzuki.model.clock import SystemClock
from tsuzuki.model.errors import Conflict
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.retry import RetryPolicy
from tsuzuki.model.run import Run
from tsuzuki.model.schedule import parse_schedule
from tsuzuki.model.states import Reason, RunState
from tsuzuki.model.worker import WorkerState
from tsuzuki.services.events import Events
from tsuzuki.services.runs import Request, Runs
from tsuzuki.services.workers import Workers
from tsuzuki.store import settings, workers
from tsuzuki.store.runs.runs import RunFilter
from tsuzuki.store.sql.database import Database
from tsuzuki.store.sql.prepared import AutocommitConnection

TIMEOUT_SECONDS = 60.0
FREE = spec("free", concurrency_policy=ConcurrencyPolicy.ALLOW)

QUICK = {
    "poll_interval_seconds": 0.05,
    "heartbeat_interval_seconds": 0.1,
    "lease_renew_interval_seconds": 0.2,
    "lease_margin_seconds": 0.5,
    "lease_seconds": 5.0,
    "drain_timeout_seconds": 20.0,
}


class Gate:
    """A handler that waits until it is released, and counts its executions."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.stopped = threading.Event()
        self.inside: Counter[int] = Counter()
        self.most = 0
        self._changed = threading.Condition()
        self._now = 0

    def __call__(self, task: Task, stopping: threading.Event) -> Outcome:
        with self._changed:
            self.inside[task.run.id] += 1
            self._now += 1
            self.most = max(self.most, self._now)
            self._changed.notify_all()
        while not self.open.is_set() and not stopping.wait(0.01):
            pass
        with self._changed:
            self._now -= 1
        if stopping.is_set():
            self.stopped.set()
        return Succeeded(result=task.run.id)

    def wait_for(self, count: int) -> None:
        with self._changed:
            enough = self._changed.wait_for(
                lambda: sum(self.inside.values()) >= count, TIMEOUT_SECONDS
            )
        assert enough, f"only {dict(self.inside)} started"


class Engines:
    """Engines on one database, all shut down at the end of the test."""

    def __init__(self, database: Database, stack: ExitStack) -> None:
        self.database = database
        self.runs = Runs(database=database, actor="test")
        self.workers = Workers(database=database, actor="test")
        self._stack = stack
        self.put(**QUICK)

    def put(self, **values: float) -> None:
        with self.database.write() as connection:
            for key, value in values.items():
                settings.put(connection, key=key, value=value, actor="test")

    def create(
        self,
        handler: Handler | None = None,
        *,
        database: Database | None = None,
        seed: int = 1,
        **role: Any,
    ) -> Engine:
        return Engine(
            database=database or self.database,
            executor=ThreadExecutor(handler or (lambda _task, _stopping: Succeeded())),
            clock=SystemClock(),
            random=Random(seed),
            role=Role(**role),
            software_version="test",
        )

    def start(self, handler: Handler | None = None, **options: Any) -> Engine:
        engine = self.create(handler, **options)
        engine.start()
        self._stack.callback(self.end, engine)
        return engine

    def end(self, engine: Engine) -> None:
        engine.hurry()
        engine.shut_down()

    def submit(self, count: int = 1, job: str = "free") -> list[int]:
        return [s.run_id for s in self.runs.submit_many([Request(job=job)] * count)]

    def wait(self, run_id: int) -> Run:
        return self.runs.wait(run_id, timeout_seconds=TIMEOUT_SECONDS)

    def worker_state(self, worker_id: str) -> WorkerState | None:
        with self.database.read() as connection:
            worker = workers.get(connection, worker_id)
        return worker.state if worker else None


@pytest.fixture
def engines(live_database: Database) -> Iterator[Engines]:
    with ExitStack() as stack:
        yield Engines(live_database, stack)
    check_history(live_database)


@contextmanager
def expecting(event: threading.Event, what: str) -> Iterator[None]:
    yield
    assert event.wait(TIMEOUT_SECONDS), f"timed out waiting until {what}"


# --- it runs --------------------------------------------------------------------------------------


def test_what_is_submitted_is_executed_once_within_the_limits(engines: Engines) -> None:
    add_job(engines.database, FREE)
    add_job(engines.database, spec("two", max_concurrent=2))
    open_gate, narrow = Gate(), Gate()
    open_gate.open.set()

    def handler(task: Task, stopping: threading.Event) -> Outcome:
        return (narrow if task.job_name == "two" else open_gate)(task, stopping)

    engines.start(handler, capacity=5)
    ids = [*engines.submit(60), *engines.submit(6, "two")]
    narrow.wait_for(2)
    narrow.open.set()
    for run_id in ids:
        run = engines.wait(run_id)
        assert (run.state, run.result, run.attempt) == (RunState.SUCCEEDED, run_id, 1)
    assert set((open_gate.inside + narrow.inside).values()) == {1}
    assert open_gate.most <= 5
    assert narrow.most <= 2


def test_ticks_and_events_become_runs_that_end(engines: Engines) -> None:
    add_job(engines.database, FREE)
    add_job(engines.database, spec("ticking", schedule=parse_schedule("every 1s")))
    add_job(engines.database, spec("listening", on_event="pushed"))
    heard: list[Any] = []

    def handler(task: Task, _stopping: threading.Event) -> Outcome:
        if task.job_name == "listening":
            heard.append(task.event)
        return Succeeded()

    engines.start(handler)
    Events(database=engines.database).emit("pushed", {"branch": 1}, dedupe_key="once")

    def ended(job: str) -> list[Run]:
        wanted = RunFilter(job_name=job, states=frozenset({RunState.SUCCEEDED}))
        return engines.runs.find(wanted)

    wait_until(lambda: len(ended("ticking")) >= 2, "two ticks have run")
    wait_until(lambda: len(ended("listening")) == 1, "the event has run")
    assert heard == [{"branch": 1}]


def test_a_failure_is_retried_until_it_succeeds(engines: Engines) -> None:
    add_job(
        engines.database,
        spec("stubborn", retry=RetryPolicy(max_retries=5, initial_seconds=0.01, jitter=0)),
    )
    keys: list[str] = []

    def handler(task: Task, _stopping: threading.Event) -> Outcome:
        keys.append(task.idempotency_key)
        if task.run.attempt < 3:
            return Failed(reason=Reason.HANDLER_FAILED, error="not yet")
        return Succeeded(result="at last")

    engine = engines.start(handler)
    (first,) = engines.submit(job="stubborn")
    engines.wait(first)
    run_id: int | None = first
    while (retried := engines.runs.get(run_id or 0).retried_as) is not None:
        run_id = retried
        engines.wait(run_id)
    assert engines.wait(run_id or 0).result == "at last"
    assert len(keys) == 3
    assert set(keys) == {f"run-{first}"}
    wait_until(lambda: engine.ended.total() == 3, "the engine has counted")
    assert engine.ended == {RunState.FAILED: 2, RunState.SUCCEEDED: 1}


def test_a_canceled_run_is_stopped_while_it_runs(engines: Engines) -> None:
    add_job(engines.database, FREE)
    gate = Gate()
    engine = engines.start(gate)
    (run_id,) = engines.submit()
    gate.wait_for(1)
    with expecting(gate.stopped, "the handler was stopped"):
        engines.runs.cancel(run_id)
    wait_until(lambda: engine.worker.running == 0, "the slot is free")
    assert engines.wait(run_id).state is RunState.CANCELED
    gate.open.set()
    (next_id,) = engines.submit()
    assert engines.wait(next_id).state is RunState.SUCCEEDED


def test_a_run_that_takes_too_long_is_stopped(engines: Engines) -> None:
    add_job(engines.database, spec("slow", timeout_seconds=0.1))
    engines.start(Gate())
    (run_id,) = engines.submit(job="slow")
    run = engines.wait(run_id)
    assert (run.state, run.reason) == (RunState.TIMED_OUT, Reason.TIMEOUT)


# --- several processes ----------------------------------------------------------------------------


def test_one_leads_the_others_work_and_when_it_goes_another_leads(engines: Engines) -> None:
    add_job(engines.database, FREE)
    done: Counter[int] = Counter()

    def handler(task: Task, _stopping: threading.Event) -> Outcome:
        done[task.run.id] += 1
        return Succeeded()

    first = engines.start(handler, seed=1)
    wait_until(lambda: first.lease.term is not None, "the first leads")
    others = [engines.start(handler, seed=n) for n in (2, 3)]
    for run_id in engines.submit(30):
        engines.wait(run_id)
    assert [engine.lease.term for engine in others] == [None, None]
    first.shut_down()
    wait_until(lambda: any(e.lease.term for e in others), "another leads")
    for run_id in engines.submit(30):
        engines.wait(run_id)
    assert set(done.values()) == {1}
    assert engines.workers.leader().epoch >= 2
    assert engines.worker_state(first.worker.identity.id) is WorkerState.GONE


def test_leading_and_working_can_be_two_processes(engines: Engines) -> None:
    add_job(engines.database, FREE)
    lead = engines.start(work=False)
    work = engines.start(lead=False, capacity=2)
    (run_id,) = engines.submit()
    run = engines.wait(run_id)
    assert run.assigned_worker_id == work.worker.identity.id
    assert work.lease.term is None
    assert engines.worker_state(lead.worker.identity.id) is None


def test_a_leader_that_an_operator_deposed_is_followed_under_a_new_epoch(engines: Engines) -> None:
    add_job(engines.database, FREE)
    engine = engines.start()
    wait_until(lambda: engine.lease.term is not None, "it leads")
    engines.workers.step_down()
    wait_until(lambda: engines.workers.leader().epoch >= 2, "it leads again")
    (run_id,) = engines.submit()
    assert engines.wait(run_id).state is RunState.SUCCEEDED


# --- settings that change meanwhile ---------------------------------------------------------------


def test_changed_settings_reach_also_a_process_that_only_works(
    engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leader that judges by new settings a worker that lives by old ones judges too early."""
    monkeypatch.setattr("tsuzuki.engine.settings_cache.SETTINGS_MAX_AGE_SECONDS", 0.0)
    worker = engines.start(lead=False)
    engines.put(worker_ttl_seconds=17.0)
    wait_until(lambda: worker.settings().worker_ttl_seconds == 17.0, "the worker knows")


# --- leaving --------------------------------------------------------------------------------------


def test_shutting_down_waits_for_what_runs_and_hands_back_the_rest(engines: Engines) -> None:
    add_job(engines.database, FREE)
    gate = Gate()
    engine = engines.start(gate, capacity=1)
    ids = engines.submit(3)
    gate.wait_for(1)
    leaving = threading.Thread(target=engine.shut_down)
    leaving.start()
    wait_until(lambda: not engine.worker.accepting, "it takes nothing new")
    gate.open.set()
    leaving.join(TIMEOUT_SECONDS)
    assert not leaving.is_alive()
    states = Counter(engines.runs.get(run_id).run.state for run_id in ids)
    assert states[RunState.SUCCEEDED] == 1
    assert set(states) <= {RunState.SUCCEEDED, RunState.PENDING, RunState.ORPHANED}
    assert engine.drained.is_set()
    assert engines.worker_state(engine.worker.identity.id) is WorkerState.GONE
    assert not engines.workers.leader().is_valid


def test_asked_to_hurry_it_stops_what_runs_and_the_run_is_retried_elsewhere(
    engines: Engines,
) -> None:
    add_job(engines.database, FREE)
    gate = Gate()
    engine = engines.start(gate)
    (run_id,) = engines.submit()
    gate.wait_for(1)
    engines.end(engine)
    run = engines.runs.get(run_id)
    assert (run.run.state, run.run.reason) == (RunState.FAILED, Reason.WORKER_SHUTDOWN)
    engines.start()
    assert run.retried_as is not None
    assert engines.wait(run.retried_as).state is RunState.SUCCEEDED


def test_a_worker_that_an_operator_drains_finishes_and_leaves(engines: Engines) -> None:
    add_job(engines.database, FREE)
    gate = Gate()
    engine = engines.start(gate)
    (run_id,) = engines.submit()
    gate.wait_for(1)
    engines.workers.drain(engine.worker.identity.id)
    wait_until(lambda: not engine.worker.accepting, "it takes nothing new")
    (waiting,) = engines.submit()
    assert not engine.drained.is_set()
    with expecting(engine.drained, "it has left"):
        gate.open.set()
    assert engines.wait(run_id).state is RunState.SUCCEEDED
    assert engines.runs.get(waiting).run.state is not RunState.RUNNING
    assert engines.worker_state(engine.worker.identity.id) is WorkerState.GONE


# --- detached -------------------------------------------------------------------------------------


def test_a_worker_that_an_operator_detaches_stops_its_runs_and_registers_under_a_new_id(
    engines: Engines,
) -> None:
    add_job(engines.database, FREE)
    gate = Gate()
    engine = engines.start(gate)
    old_id = engine.worker.identity.id
    (run_id,) = engines.submit()
    gate.wait_for(1)
    with expecting(gate.stopped, "the handler was stopped"):
        engines.workers.detach(old_id)
    gate.open.set()
    run = engines.wait(run_id)
    assert (run.state, run.reason) == (RunState.FAILED, Reason.NOT_CONFIRMED)
    retried = engines.runs.get(run_id).retried_as
    assert retried is not None
    again = engines.wait(retried)
    assert (again.state, again.retries_used) == (RunState.SUCCEEDED, 0)
    assert again.assigned_worker_id == engine.worker.identity.id != old_id


def outage(engines: Engines) -> UnreliableDatabase:
    """Short timeouts, so that an outage is soon too long; and the database that it makes unreachable."""
    engines.put(
        worker_ttl_seconds=1.0,
        continuation_retry_interval_seconds=0.05,
        worker_grace_seconds=1.0,
    )
    return UnreliableDatabase(engines.database)


def test_a_worker_without_the_database_for_too_long_stops_and_registers_anew(
    engines: Engines,
) -> None:
    faulty = outage(engines)
    add_job(engines.database, FREE)
    gate = Gate()
    engines.start(work=False)
    engine = engines.start(gate, database=faulty, lead=False)
    old_id = engine.worker.identity.id
    (run_id,) = engines.submit()
    gate.wait_for(1)
    with expecting(gate.stopped, "the handler was stopped"):
        faulty.is_away = True
    assert engines.wait(run_id).reason is Reason.WORKER_LOST
    gate.open.set()
    faulty.is_away = False
    retried = engines.runs.get(run_id).retried_as
    assert retried is not None
    assert engines.wait(retried).assigned_worker_id != old_id
    assert engine.worker.identity.id != old_id


class HangingHeartbeats(UnreliableDatabase):
    """Heartbeats, the only thing a worker sends as a single statement, can be made to hang."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.flows = threading.Event()
        self.flows.set()
        self.heartbeats = 0

    @contextmanager
    def statement(self) -> Iterator[AutocommitConnection]:
        self.flows.wait(TIMEOUT_SECONDS)
        with super().statement() as connection:
            yield connection
        self.heartbeats += 1


def test_a_heartbeat_that_returns_late_does_not_count_for_the_workers_new_id(
    engines: Engines,
) -> None:
    outage(engines)
    engines.put(worker_ttl_seconds=4.0)
    add_job(engines.database, FREE)
    gate, faulty = Gate(), HangingHeartbeats(engines.database)
    engines.start(work=False)
    engine = engines.start(gate, database=faulty, lead=False)
    name = engine.worker.identity.id
    faulty.flows.clear()
    wait_until(lambda: engine.worker.identity.id != name, "it has registered under another id")
    (run_id,) = engines.submit()
    gate.wait_for(1)
    seen = faulty.heartbeats
    faulty.flows.set()
    wait_until(lambda: faulty.heartbeats >= seen + 3, "the late heartbeat, and some more")
    assert not gate.stopped.is_set()
    gate.open.set()
    assert engines.wait(run_id).state is RunState.SUCCEEDED


@pytest.mark.parametrize("asked_by", ["an operator", "a signal"])
def test_a_draining_worker_that_is_detached_does_not_register_anew(
    engines: Engines, asked_by: str
) -> None:
    faulty = outage(engines)
    add_job(engines.database, FREE)
    gate = Gate()
    engines.start(work=False)
    engine = engines.start(gate, database=faulty, lead=False)
    name = engine.worker.identity.id
    engines.submit()
    gate.wait_for(1)
    leaving = threading.Thread(target=engine.shut_down)
    if asked_by == "an operator":
        engines.workers.drain(name)
    else:
        leaving.start()
    wait_until(lambda: not engine.worker.accepting, "it takes nothing new")
    with expecting(gate.stopped, "the handler was stopped"):
        faulty.is_away = True
    faulty.is_away = False
    assert engine.drained.wait(TIMEOUT_SECONDS)
    if asked_by == "a signal":
        leaving.join(TIMEOUT_SECONDS)
    assert engine.worker.identity.id == name
    assert not engine.worker.accepting
    wait_until(lambda: engines.worker_state(name) is WorkerState.GONE, "it is gone")
    with engines.database.read() as connection:
        assert workers.find(connection) == []


def test_replies_lost_at_random_cost_nothing_but_time(engines: Engines) -> None:
    engines.put(lease_seconds=1.0)  # a lost reply about the lease costs what is left of it
    add_job(engines.database, FREE)
    executed: Counter[int] = Counter()

    def handler(task: Task, _stopping: threading.Event) -> Outcome:
        executed[task.run.id] += 1
        return Succeeded(result=task.run.id)

    faulty, chance = UnreliableDatabase(engines.database), Random(7)
    engine = engines.start(handler, database=faulty)
    ids = []
    for _ in range(12):
        ids += engines.submit(4)
        faulty.replies_to_lose = chance.randint(0, 2)
        engine.leader_steps.rounds.clear()
        engine.leader_steps.rounds.wait(0.5)
    faulty.replies_to_lose = 0
    for run_id in ids:
        assert engines.wait(run_id).result == run_id
    assert executed == dict.fromkeys(ids, 1)


# --- until idle -----------------------------------------------------------------------------------


def test_run_until_idle_runs_everything_that_is_due_and_leaves(engines: Engines) -> None:
    add_job(engines.database, FREE)
    ids = engines.submit(12)
    engine = engines.create(capacity=4)
    ended = run_until_idle(engine, stop=threading.Event())
    assert ended == {RunState.SUCCEEDED: 12}
    assert {engines.runs.get(run_id).run.state for run_id in ids} == {RunState.SUCCEEDED}
    assert not engines.workers.leader().is_valid
    assert engines.worker_state(engine.worker.identity.id) is WorkerState.GONE


def test_run_until_idle_refuses_while_another_process_leads(engines: Engines) -> None:
    engine = engines.start()
    wait_until(lambda: engine.lease.term is not None, "it leads")
    with pytest.raises(Conflict, match="another process leads"):
        run_until_idle(engines.create(), stop=threading.Event())
