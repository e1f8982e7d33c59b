"""The life of a worker in a whole engine: it drains and leaves, or is detached and registers under a new id."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import pytest
from sqlalchemy import select

from support.dialects import only_on_postgresql
from support.engines import FREE, TIMEOUT_SECONDS, Engines, Gate, expecting
from support.factories import add_job
from support.unreliable_database import UnreliableDatabase
from support.waiting import wait_until
from tsuzuki.engine.outcome import Outcome, Succeeded
from tsuzuki.engine.task import Task
from tsuzuki.model.states import Reason, RunState
from tsuzuki.model.worker import WorkerState
from tsuzuki.store import workers
from tsuzuki.store.schema.tables import job_runs
from tsuzuki.store.sql.database import Database
from tsuzuki.store.sql.prepared import AutocommitConnection


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


@only_on_postgresql
def test_an_end_whose_row_is_free_before_the_process_ends_is_stored(
    engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_job(engines.database, FREE)
    gate = Gate()
    engine = engines.start(gate)
    (run_id,) = engines.submit()
    gate.wait_for(1)
    with engines.database.engine.connect() as connection:
        connection.execute(select(job_runs.c.id).where(job_runs.c.id == run_id).with_for_update())
        gate.open.set()
        wait_until(lambda: engine.worker.locked_ends == {run_id}, "the end waits for the row")
        monkeypatch.setattr(engine.worker_steps, "_wait_until_idle", lambda *_, **__: None)
        (work,) = (loop for loop in engine._loops if loop.name == "work")
        join = work.join

        def join_then_free_row(seconds: float) -> bool:
            has_ended = join(seconds)
            connection.rollback()
            return has_ended

        monkeypatch.setattr(work, "join", join_then_free_row)
        engine.shut_down()
    assert engines.runs.get(run_id).run.state is RunState.SUCCEEDED


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
