"""A worker starts the runs that are assigned to it, within its capacity, by its own thread, and nothing else."""

import threading
from dataclasses import replace
from typing import Any

import pytest

from support.engines import FREE, Engines, succeed
from support.factories import WORKER, add_job, add_worker, create_run, ref
from support.moving_clock import NOON
from support.scripted_executors import ThreadExecution, ThreadExecutor
from support.worker_fixture import WorkerFixture
from tsuzuki.engine.leader.event_intake import EventIntake
from tsuzuki.engine.task import OnOutcome, RunIO, Task
from tsuzuki.engine.worker.step import WorkerStep
from tsuzuki.model.states import RunState
from tsuzuki.model.worker import WorkerState
from tsuzuki.services.events import Events
from tsuzuki.store import jobs, workers
from tsuzuki.store.runs import moves, queue


def test_what_is_assigned_to_it_starts_and_nothing_else(fixture: WorkerFixture) -> None:
    (mine,) = fixture.assign()
    pending = create_run(fixture.database, fixture.run(mine).job_definition_id).id
    add_worker(fixture.database, "other")
    theirs = create_run(fixture.database, fixture.run(mine).job_definition_id)
    with fixture.database.write() as connection:
        assignment = moves.Assignment(run=theirs, worker_id="other")
        moves.assign(connection, term=fixture.term, assignments=[assignment])
    step = fixture.worker.tick()
    assert [task.run.id for task in step.started] == [mine]
    assert [e.task.run.id for e in fixture.executor.started] == [mine]
    run = fixture.run(mine)
    assert (run.state, run.started_at, run.leader_epoch) == (RunState.RUNNING, NOON, 1)
    assert fixture.run(pending).state is RunState.PENDING
    assert fixture.run(theirs.id).state is RunState.ASSIGNED


def test_it_never_executes_more_than_its_capacity_and_the_most_urgent_first(
    fixture: WorkerFixture,
) -> None:
    later = fixture.assign(2)
    urgent = fixture.assign(2, priority=5)
    fixture.worker.tick()
    assert [e.task.run.id for e in fixture.executor.started] == [*urgent, later[0]]
    assert (fixture.worker.running, fixture.worker.free) == (3, 0)
    fixture.worker.tick()
    assert len(fixture.executor.started) == 3
    fixture.executor.of(urgent[0]).succeed()
    fixture.worker.tick()
    assert fixture.executor.last.task.run.id == later[1]


def test_a_run_starts_with_the_definition_as_it_is_then(fixture: WorkerFixture) -> None:
    job_id = fixture.job(timeout_seconds=5)
    fixture.start(job_id=job_id)
    with fixture.database.write() as connection:
        job = jobs.get(connection, job_id)
        assert job is not None
        jobs.change(connection, job=job, spec=replace(job.spec, timeout_seconds=50))
    (execution,) = fixture.start(job_id=job_id)
    assert execution.task.spec.timeout_seconds == 50


def test_the_payload_of_the_event_reaches_the_task(fixture: WorkerFixture) -> None:
    job_id = fixture.job(on_event="pushed")
    Events(database=fixture.database).emit("pushed", {"branch": "main", "commits": [1, 2]})
    EventIntake(database=fixture.database).tick(fixture.term)
    with fixture.database.write() as connection:
        (due,) = queue.due_runs(connection, limit=10)
        assignment = moves.Assignment(run=due.ref, worker_id=WORKER)
        moves.assign(connection, term=fixture.term, assignments=[assignment])
    fixture.worker.tick()
    task = fixture.executor.last.task
    assert task.run.job_definition_id == job_id
    assert task.event == {"branch": "main", "commits": [1, 2]}
    (plain,) = fixture.start(job_id=job_id)
    assert plain.task.event is None


def test_a_run_taken_from_it_before_it_started_is_not_started(fixture: WorkerFixture) -> None:
    canceled, handed_back = fixture.assign(2)
    fixture.cancel(canceled)
    with fixture.database.write() as connection:
        moves.hand_back(connection, worker_id=WORKER, runs=[ref(fixture.database, handed_back)])
    assert fixture.worker.tick().started == []
    assert fixture.executor.started == []


@pytest.mark.parametrize("state", [WorkerState.DETACHED, WorkerState.GONE])
def test_a_detached_worker_starts_nothing(fixture: WorkerFixture, state: WorkerState) -> None:
    (run_id,) = fixture.assign()
    with fixture.database.write() as connection:
        if state is WorkerState.DETACHED:
            workers.detach(connection, [WORKER])
        else:
            workers.deregister(connection, WORKER)
    assert fixture.worker.tick() == WorkerStep(polled=True)
    assert fixture.run(run_id).state is RunState.ASSIGNED


# --- by which thread ------------------------------------------------------------------------------


class ThreadRecordingExecutor(ThreadExecutor):
    """Records the threads that start handlers."""

    def __init__(self) -> None:
        super().__init__(succeed)
        self.threads: set[int] = set()

    def start(self, task: Task, run_io: RunIO, done: OnOutcome) -> ThreadExecution:
        self.threads.add(threading.get_ident())
        return super().start(task, run_io, done)


@pytest.mark.parametrize("leads_too", [True, False], ids=["one process", "two processes"])
def test_a_handler_is_started_only_by_the_workers_own_thread(
    engines: Engines, monkeypatch: pytest.MonkeyPatch, leads_too: bool
) -> None:
    """Also for runs that the leader of the same process has assigned and started in the database."""
    add_job(engines.database, FREE)
    executor = ThreadRecordingExecutor()
    engine = engines.create(executor=executor, lead=leads_too)
    tick, assign_and_start = engine.worker.tick, moves.assign_and_start
    worker_threads: set[int] = set()
    started_by_leader: list[int] = []

    def recorded_tick(*, poll: bool = True) -> WorkerStep:
        worker_threads.add(threading.get_ident())
        return tick(poll=poll)

    def recorded_start(*arguments: Any, **options: Any) -> Any:
        orders = assign_and_start(*arguments, **options)
        started_by_leader.extend(orders)
        return orders

    monkeypatch.setattr(engine.worker, "tick", recorded_tick)
    monkeypatch.setattr(moves, "assign_and_start", recorded_start)
    if not leads_too:
        engines.start(work=False)
    engines.run(engine)
    for run_id in [*engines.submit(20), *(engines.submit()[0] for _ in range(5))]:
        engines.wait(run_id)
    assert len(executor.threads) == 1
    assert executor.threads == worker_threads
    assert bool(started_by_leader) == leads_too
