"""A worker does not wait for a run whose row another transaction holds: a handler's, or one of a host that died."""

from random import Random

import pytest

from support.dialects import only_on_postgresql
from support.factories import read_run, run_in_state, take_lead
from support.moving_clock import MovingClock
from support.scripted_executors import ScriptedExecutor
from support.threads import in_background
from support.worker_fixture import WorkerFixture
from tsuzuki.engine.outcome import StopCause, Succeeded
from tsuzuki.engine.process import Engine
from tsuzuki.engine.role import ProcessRole
from tsuzuki.engine.worker.step import WorkerStep
from tsuzuki.engine.worker.steps import FLUSH_SECONDS
from tsuzuki.model.states import RunState
from tsuzuki.store.runs import moves
from tsuzuki.store.sql.database import Database

pytestmark = only_on_postgresql
RUNNING, SUCCEEDED = RunState.RUNNING, RunState.SUCCEEDED


def tick(fixture: WorkerFixture, *, poll: bool = False) -> WorkerStep:
    return in_background(lambda: fixture.worker.tick(poll=poll)).result(30)


def test_while_one_run_is_locked_another_ends_and_a_third_is_stopped(
    fixture: WorkerFixture,
) -> None:
    job_id = fixture.job("short", timeout_seconds=60)
    held, other = fixture.start(2)
    (overdue,) = fixture.start(job_id=job_id)
    with fixture.worker.run_io.transaction(held.task):
        held.progress(1, 2)
        other.succeed()
        fixture.clock.advance(60)
        assert [task.run.id for task, _ in tick(fixture).ended] == [other.task.run.id]
        assert overdue.stops == [(StopCause.TIMEOUT, False)]
    assert fixture.run(held.task.run.id).progress_processed == 1


def test_an_end_whose_run_is_locked_keeps_its_slot_and_is_stored_later(
    fixture: WorkerFixture,
) -> None:
    held, *_ = fixture.start(3)
    run_id = held.task.run.id
    with fixture.worker.run_io.transaction(held.task):
        held.succeed()
        step = tick(fixture, poll=True)
        assert (step.ended, step.refused, step.lost) == ([], [], [])
        assert (fixture.worker.running, fixture.worker.free) == (3, 0)
        assert fixture.run(run_id).state is RUNNING
        assert fixture.worker.locked_ends == {run_id}
        assert not fixture.worker.has_outcomes()
    assert [task.run.id for task, _ in tick(fixture).ended] == [run_id]
    assert not fixture.worker.locked_ends
    assert (fixture.worker.running, fixture.run(run_id).state) == (2, SUCCEEDED)


def test_nothing_is_started_in_the_slot_of_an_end_whose_run_is_locked(
    fixture: WorkerFixture,
) -> None:
    held, *_ = fixture.start(3)
    (waiting,) = fixture.assign()
    with fixture.worker.run_io.transaction(held.task):
        held.succeed()
        assert tick(fixture, poll=True).started == []
    assert [task.run.id for task in tick(fixture).started] == [waiting]


def test_an_end_whose_run_was_locked_by_a_cancel_is_refused(fixture: WorkerFixture) -> None:
    (execution,) = fixture.start()
    run_id = execution.task.run.id
    execution.succeed()
    with fixture.database.write() as connection:
        assert moves.cancel(connection, operator="me", runs=[fixture.run(run_id).ref])
        assert tick(fixture).refused == []
    assert [task.run.id for task in tick(fixture).refused] == [run_id]
    assert fixture.worker.running == 0


def test_progress_of_a_locked_run_is_kept_and_stored_before_its_end(fixture: WorkerFixture) -> None:
    (held,) = fixture.start()
    run_id = held.task.run.id
    with fixture.database.write() as connection:
        connection.exec_driver_sql(f"SELECT 1 FROM tsuzuki_job_runs WHERE id = {run_id} FOR UPDATE")
        held.progress(5, 5)
        held.succeed()
        assert tick(fixture).ended == []
    assert len(tick(fixture).ended) == 1
    run = fixture.run(run_id)
    assert (run.state, run.progress_processed) == (SUCCEEDED, 5)


def test_lines_of_a_locked_run_are_kept_in_order_and_stored_before_its_end(
    fixture: WorkerFixture,
) -> None:
    held, other = fixture.start(2)
    run_id = held.task.run.id
    with fixture.database.write() as connection:
        connection.exec_driver_sql(f"SELECT 1 FROM tsuzuki_job_runs WHERE id = {run_id} FOR UPDATE")
        held.log("one")
        other.log("other")
        tick(fixture)
        held.log("two")
        held.succeed()
        assert tick(fixture).ended == []
    assert fixture.lines(other.task.run.id) == ["other"]
    assert fixture.lines(run_id) == []
    assert len(tick(fixture).ended) == 1
    assert (fixture.run(run_id).state, fixture.lines(run_id)) == (SUCCEEDED, ["one", "two"])


def test_lines_of_a_run_that_was_canceled_meanwhile_are_dropped(fixture: WorkerFixture) -> None:
    (canceled,) = fixture.start()
    run_id = canceled.task.run.id
    with fixture.database.write() as connection:
        assert moves.cancel(connection, operator="me", runs=[fixture.run(run_id).ref])
        canceled.log("one")
        tick(fixture)
        assert fixture.worker.output
    tick(fixture)
    assert not fixture.worker.output
    assert fixture.lines(run_id) == []


def test_lines_are_stored_while_the_handler_has_a_transaction_open(fixture: WorkerFixture) -> None:
    (held,) = fixture.start()
    with fixture.worker.run_io.transaction(held.task):
        held.log("one")
        tick(fixture)
        lines = in_background(lambda: fixture.lines(held.task.run.id)).result(30)
        assert (lines, bool(fixture.worker.output)) == (["one"], False)


def test_progress_that_could_not_be_stored_does_not_replace_what_the_handler_stored_since(
    fixture: WorkerFixture,
) -> None:
    (held,) = fixture.start()
    run_id = held.task.run.id
    held.progress(1, 9)
    with fixture.worker.run_io.transaction(held.task):
        taken = fixture.worker.output.take()
        held.progress(2, 9)
    fixture.worker.output.put_back(taken)
    tick(fixture)
    assert fixture.run(run_id).progress_processed == 2


def test_progress_of_a_run_that_is_not_ours_any_more_is_dropped(fixture: WorkerFixture) -> None:
    (canceled,) = fixture.start()
    fixture.cancel(canceled.task.run.id)
    canceled.progress(1, 2)
    tick(fixture)
    assert not fixture.worker.output


def test_a_locked_end_is_tried_again_after_a_while_and_not_at_once(
    database: Database, clock: MovingClock
) -> None:
    engine = Engine(
        database=database,
        executor=ScriptedExecutor(),
        clock=clock,
        random=Random(1),
        role=ProcessRole(lead=False, capacity=3),
        software_version="test",
    )
    engine.worker_steps.register()
    me, term = engine.worker.identity.id, take_lead(database, lease_seconds=1_000_000)
    run = run_in_state(database, RunState.ASSIGNED, term, worker_id=me)
    engine.worker.tick()
    (task,) = engine.worker._slots.tasks()
    with engine.worker.run_io.transaction(task):
        engine.worker.on_outcome(task, Succeeded(result=None))
        in_background(engine.worker_steps.work_step).result(30)  # woken by the outcome
        before = clock.monotonic()
        in_background(engine.worker_steps.work_step).result(30)
        assert clock.monotonic() - before == pytest.approx(FLUSH_SECONDS)
    engine.worker_steps.work_step()
    assert read_run(database, run.id).state is SUCCEEDED
