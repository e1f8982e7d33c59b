"""A worker that goes away hands back, and one that was cut off comes back under another name."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select

from support.factories import WORKER
from support.moving_clock import NOON
from support.worker_bench import ME, Bench, away, lost
from tsuzuki.engine.outcome import StopCause, Stopped
from tsuzuki.model.clock import ManualClock
from tsuzuki.model.states import Reason, RunState
from tsuzuki.model.worker import WorkerState
from tsuzuki.store import workers
from tsuzuki.store.schema.tables import job_runs
from tsuzuki.store.schema.tables import workers as table_of_workers


def test_a_worker_that_stops_taking_hands_back_what_has_not_begun_and_finishes_the_rest(
    bench: Bench,
) -> None:
    (running,) = bench.begin()
    waiting = bench.give(2)
    bench.worker.drain()
    for run_id in waiting:
        run = bench.run(run_id)
        assert (run.state, run.reason) == (RunState.ORPHANED, Reason.WORKER_SHUTDOWN)
    assert bench.worker.tick().started == []
    running.succeed()
    assert len(bench.worker.tick().ended) == 1
    with bench.truth.read() as connection:
        worker = workers.get(connection, WORKER)
    assert worker is not None
    assert worker.state is WorkerState.DRAINING


def test_handing_back_that_did_not_get_through_is_done_with_the_next_look(bench: Bench) -> None:
    """Otherwise what was given to it waits until all that it runs has ended."""
    bench.begin()
    (waiting,) = bench.give()
    with away(bench):
        bench.worker.drain()
    assert bench.run(waiting).state is RunState.ASSIGNED
    assert bench.worker.tick().started == []
    assert bench.run(waiting).state is RunState.ORPHANED
    with bench.truth.read() as connection:
        (worker,) = workers.find(connection)
    assert worker.state is WorkerState.DRAINING


def test_a_worker_that_leaves_hands_back_and_is_gone(bench: Bench) -> None:
    (waiting,) = bench.give()
    bench.worker.leave()
    assert bench.run(waiting).state is RunState.ORPHANED
    with bench.truth.read() as connection:
        assert workers.find(connection) == []


def test_what_is_stopped_for_the_shutdown_is_repeated_at_once(bench: Bench) -> None:
    executions = bench.begin(2)
    bench.worker.drain()
    bench.worker.stop_all(StopCause.SHUTDOWN)
    for execution in executions:
        assert execution.stops == [(StopCause.SHUTDOWN, False)]
        execution.obey()
    assert bench.worker.tick().retries == 2
    for execution in executions:
        retry = bench.retry_of(execution.task.run.id)
        assert retry is not None
        assert (retry.scheduled_for, retry.retries_used, retry.attempt) == (NOON, 0, 2)


def test_a_worker_that_was_cut_off_is_not_one_that_leaves(bench: Bench) -> None:
    """Marked as leaving it would be sent away by its own mark, and not come back."""
    (waiting,) = bench.give()
    bench.worker.on_detached()
    assert bench.worker.tick().started == []
    assert bench.run(waiting).state is RunState.ORPHANED
    with bench.truth.read() as connection:
        (worker,) = workers.find(connection)
    assert worker.state is WorkerState.ATTACHED


def test_a_new_name_that_did_not_get_through_is_not_taken(bench: Bench) -> None:
    bench.worker.on_detached()
    with away(bench):
        bench.worker.reregister(replace(ME, id="new"))
    assert (bench.worker.identity.id, bench.worker.accepting) == (WORKER, False)
    assert bench.worker.reregister(replace(ME, id="newer"))
    assert (bench.worker.identity.id, bench.worker.accepting) == ("newer", True)


def test_a_worker_that_was_drained_before_it_was_cut_off_leaves_under_its_new_name_too(
    bench: Bench,
) -> None:
    with bench.truth.write() as connection:
        workers.drain(connection, [WORKER])
    bench.worker.on_detached()
    assert bench.worker.reregister(replace(ME, id="new"))
    assert not bench.worker.accepting
    bench.worker.tick()
    with bench.truth.read() as connection:
        worker = workers.get(connection, "new")
    assert worker is not None
    assert worker.state is WorkerState.DRAINING


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_a_former_name_that_somebody_holds_keeps_nobody_from_a_new_one(bench: Bench) -> None:
    bench.worker.on_detached()
    with bench.truth.engine.connect() as holder:
        holder.execute(select(table_of_workers.c.id).with_for_update())
        assert bench.worker.reregister(replace(ME, id="new"))
    with bench.truth.read() as connection:
        assert {worker.id for worker in workers.find(connection)} == {WORKER, "new"}


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_to_hand_back_nobody_waits_for_what_somebody_holds(bench: Bench) -> None:
    held, other = bench.give(2)
    with bench.truth.engine.connect() as holder:
        holder.execute(select(job_runs.c.id).where(job_runs.c.id == held).with_for_update())
        assert bench.worker.drain() == {other}
    bench.worker.tick()
    assert bench.run(held).state is RunState.ORPHANED


def test_a_worker_becomes_another_only_when_nothing_of_it_runs(bench: Bench) -> None:
    (execution,) = bench.begin()
    bench.worker.on_detached()
    assert execution.stops == [(StopCause.NOT_CONFIRMED, True)]
    assert not bench.worker.reregister(replace(ME, id="new"))
    assert (bench.worker.identity.id, bench.worker.accepting) == (WORKER, False)
    (left_over,) = bench.give()
    execution.obey()
    bench.worker.tick()
    assert bench.worker.reregister(replace(ME, id="new"))
    assert (bench.worker.identity.id, bench.worker.accepting) == ("new", True)
    assert bench.worker.tick().started == []
    assert bench.run(left_over).state is RunState.ORPHANED
    with bench.truth.read() as connection:
        assert [worker.id for worker in workers.find(connection)] == ["new"]
    (later,) = bench.begin()
    assert bench.run(later.task.run.id).assigned_worker_id == "new"
    later.succeed()
    assert len(bench.worker.tick().ended) == 1


def test_an_end_that_waited_for_the_database_is_written_under_the_old_name(bench: Bench) -> None:
    (execution,) = bench.begin()
    bench.worker.stop_all(StopCause.NOT_CONFIRMED, at_once=True)
    execution.obey()
    with away(bench):
        bench.worker.tick()
    bench.worker.tick()
    run = bench.run(execution.task.run.id)
    assert (run.state, run.reason) == (RunState.FAILED, Reason.NOT_CONFIRMED)
    assert bench.worker.running == 0


def test_a_name_taken_without_an_answer_is_left_behind_and_another_one_serves(
    bench: Bench,
) -> None:
    with lost(bench):
        bench.worker.reregister(replace(ME, id="lost"))
    bench.worker.reregister(replace(ME, id="found"))
    (execution,) = bench.begin()
    assert bench.run(execution.task.run.id).assigned_worker_id == "found"


def test_retries_are_due_by_the_databases_clock_not_by_this_machines(bench: Bench) -> None:
    ahead = ManualClock(NOON + timedelta(hours=1))
    bench.worker = bench.a_worker(ahead, replace(ME, id="ahead"))
    bench.worker.register()
    (execution,) = bench.begin()
    execution.end(Stopped(cause=StopCause.SHUTDOWN))
    bench.worker.tick()
    retry = bench.retry_of(execution.task.run.id)
    assert retry is not None
    assert retry.scheduled_for == NOON
