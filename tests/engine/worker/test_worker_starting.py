"""A worker executes what is its own, and nothing else."""

from dataclasses import replace

import pytest

from support.factories import WORKER, add_worker, create_run, ref
from support.moving_clock import NOON
from support.scripted_executors import ScriptedExecution
from support.worker_bench import ME, Bench
from tsuzuki.engine.leader.event_intake import EventIntake
from tsuzuki.engine.outcome import StopCause
from tsuzuki.engine.worker.step import WorkerStep
from tsuzuki.model.states import Reason, RunState
from tsuzuki.model.worker import WorkerState
from tsuzuki.services.events import Events
from tsuzuki.store import jobs, workers
from tsuzuki.store.runs import moves, queue


def test_what_was_given_to_it_begins_and_nothing_else(bench: Bench) -> None:
    (mine,) = bench.give()
    pending = create_run(bench.truth, bench.run(mine).job_definition_id).id
    add_worker(bench.truth, "other")
    theirs = create_run(bench.truth, bench.run(mine).job_definition_id)
    with bench.truth.write() as connection:
        assignment = moves.Assignment(run=theirs, worker_id="other")
        moves.assign(connection, term=bench.term, assignments=[assignment])
    worked = bench.worker.tick()
    assert [task.run.id for task in worked.started] == [mine]
    assert [e.task.run.id for e in bench.executor.begun] == [mine]
    run = bench.run(mine)
    assert (run.state, run.started_at, run.leader_epoch) == (RunState.RUNNING, NOON, 1)
    assert bench.run(pending).state is RunState.PENDING
    assert bench.run(theirs.id).state is RunState.ASSIGNED


def test_it_never_executes_more_than_its_capacity_and_the_most_urgent_first(bench: Bench) -> None:
    later = bench.give(2)
    urgent = bench.give(2, priority=5)
    bench.worker.tick()
    assert [e.task.run.id for e in bench.executor.begun] == [*urgent, later[0]]
    assert (bench.worker.running, bench.worker.free) == (3, 0)
    bench.worker.tick()
    assert len(bench.executor.begun) == 3
    bench.executor.of(urgent[0]).succeed()
    bench.worker.tick()
    assert bench.executor.last.task.run.id == later[1]


def test_a_run_begins_with_the_definition_as_it_is_then(bench: Bench) -> None:
    job_id = bench.job(timeout_seconds=5)
    bench.begin(job_id=job_id)
    with bench.truth.write() as connection:
        job = jobs.get(connection, job_id)
        assert job is not None
        jobs.change(connection, job=job, spec=replace(job.spec, timeout_seconds=50))
    (execution,) = bench.begin(job_id=job_id)
    assert execution.task.spec.timeout_seconds == 50


def test_the_payload_of_the_event_reaches_the_task(bench: Bench) -> None:
    job_id = bench.job(on_event="pushed")
    Events(database=bench.truth).emit("pushed", {"branch": "main", "commits": [1, 2]})
    EventIntake(database=bench.truth).tick(bench.term)
    with bench.truth.write() as connection:
        (due,) = queue.due_runs(connection, limit=10)
        assignment = moves.Assignment(run=due.ref, worker_id=WORKER)
        moves.assign(connection, term=bench.term, assignments=[assignment])
    bench.worker.tick()
    task = bench.executor.last.task
    assert task.run.job_definition_id == job_id
    assert task.event == {"branch": "main", "commits": [1, 2]}
    (plain,) = bench.begin(job_id=job_id)
    assert plain.task.event is None


def test_a_run_taken_from_it_before_it_began_is_not_begun(bench: Bench) -> None:
    canceled, given_back = bench.give(2)
    bench.cancel(canceled)
    with bench.truth.write() as connection:
        moves.hand_back(connection, worker_id=WORKER, runs=[ref(bench.truth, given_back)])
    assert bench.worker.tick().started == []
    assert bench.executor.begun == []


@pytest.mark.parametrize("state", [WorkerState.DETACHED, WorkerState.GONE])
def test_a_worker_that_is_cut_off_begins_nothing(bench: Bench, state: WorkerState) -> None:
    (run_id,) = bench.give()
    with bench.truth.write() as connection:
        if state is WorkerState.DETACHED:
            workers.detach(connection, [WORKER])
        else:
            workers.deregister(connection, WORKER)
    assert bench.worker.tick() == WorkerStep(polled=True)
    assert bench.run(run_id).state is RunState.ASSIGNED


def test_an_executor_that_cannot_begin_fails_that_run_and_begins_the_others(bench: Bench) -> None:
    first, second, third = bench.give(3)

    def refuse(execution: ScriptedExecution) -> None:
        if execution.task.run.id == second:
            raise OSError("can't start new thread")

    bench.executor.on_begin = refuse
    bench.worker.tick()
    assert bench.worker.running == 3
    worked = bench.worker.tick()
    assert [task.run.id for task, _ in worked.ended] == [second]
    failed = bench.run(second)
    assert (failed.state, failed.reason) == (RunState.FAILED, Reason.HANDLER_FAILED)
    assert "can't start new thread" in (failed.error or "")
    for run_id in (first, third):
        bench.executor.of(run_id).succeed()
    bench.worker.tick()
    assert bench.worker.running == 0


def test_a_worker_that_was_told_to_stop_everything_stops_also_what_it_is_just_beginning(
    bench: Bench,
) -> None:
    """The order comes from the heartbeat's thread, at any moment of a tick."""
    during_begin, after_commit = bench.give(2)
    order = {"cause": StopCause.NOT_CONFIRMED, "at_once": True}

    def stop_between(execution: ScriptedExecution) -> None:
        if execution.task.run.id == during_begin:
            bench.worker.stop_all(**order)  # type: ignore[arg-type]

    bench.executor.on_begin = stop_between
    bench.worker.tick()
    for run_id in (during_begin, after_commit):
        assert (StopCause.NOT_CONFIRMED, True) in bench.executor.of(run_id).stops


def test_after_becoming_another_the_old_order_to_stop_is_forgotten(bench: Bench) -> None:
    bench.worker.stop_all(StopCause.NOT_CONFIRMED, at_once=True)
    bench.worker.reregister(replace(ME, id="new"))
    (execution,) = bench.begin()
    assert execution.stops == []
