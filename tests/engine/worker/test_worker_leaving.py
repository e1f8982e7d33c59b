"""A worker that drains or leaves hands back; one that was detached registers under a new id."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select

from support.dialects import only_on_postgresql
from support.factories import WORKER
from support.moving_clock import NOON
from support.threads import in_background
from support.worker_fixture import ME, WorkerFixture, reply_lost, unreachable
from tsuzuki.engine.outcome import StopCause, Stopped
from tsuzuki.model.clock import ManualClock
from tsuzuki.model.errors import Unreachable
from tsuzuki.model.states import Reason, RunState
from tsuzuki.model.worker import WorkerState
from tsuzuki.store import workers
from tsuzuki.store.schema.tables import job_runs
from tsuzuki.store.schema.tables import workers as table_of_workers


def test_a_draining_worker_hands_back_what_has_not_started_and_finishes_the_rest(
    fixture: WorkerFixture,
) -> None:
    (running,) = fixture.start()
    waiting = fixture.assign(2)
    fixture.worker.drain()
    for run_id in waiting:
        run = fixture.run(run_id)
        assert (run.state, run.reason) == (RunState.ORPHANED, Reason.WORKER_SHUTDOWN)
    assert fixture.worker.tick().started == []
    running.succeed()
    assert len(fixture.worker.tick().ended) == 1
    with fixture.database.read() as connection:
        worker = workers.get(connection, WORKER)
    assert worker is not None
    assert worker.state is WorkerState.DRAINING


def test_handing_back_that_failed_is_done_with_the_next_poll(
    fixture: WorkerFixture,
) -> None:
    """Otherwise what is assigned to it waits until all that it runs has ended."""
    fixture.start()
    (waiting,) = fixture.assign()
    with unreachable(fixture):
        fixture.worker.drain()
    assert fixture.run(waiting).state is RunState.ASSIGNED
    assert fixture.worker.tick().started == []
    assert fixture.run(waiting).state is RunState.ORPHANED
    with fixture.database.read() as connection:
        (worker,) = workers.find(connection)
    assert worker.state is WorkerState.DRAINING


@only_on_postgresql
def test_a_drain_counts_a_run_whose_start_is_being_committed(fixture: WorkerFixture) -> None:
    """It cannot be handed back any more, so the process must not end before it has."""
    (run_id,) = fixture.assign()
    seen: list[tuple[frozenset[int], int]] = []

    def drain() -> None:
        handed_back = in_background(fixture.worker.drain).result(30)
        seen.append((handed_back, fixture.worker.running))

    fixture.faulty_database.before_commit.append(drain)
    assert [task.run.id for task in fixture.worker.tick().started] == [run_id]
    assert seen == [(frozenset(), 1)]
    assert fixture.worker.running == 1


def test_a_start_that_failed_does_not_count_as_running(fixture: WorkerFixture) -> None:
    fixture.assign()
    fixture.faulty_database.crash_before_commit = True
    with pytest.raises(Unreachable):
        fixture.worker.tick()
    assert fixture.worker.running == 0


def test_a_worker_that_leaves_hands_back_and_is_gone(fixture: WorkerFixture) -> None:
    (waiting,) = fixture.assign()
    fixture.worker.leave()
    assert fixture.run(waiting).state is RunState.ORPHANED
    with fixture.database.read() as connection:
        assert workers.find(connection) == []


def test_what_is_stopped_for_the_shutdown_is_retried_at_once(fixture: WorkerFixture) -> None:
    executions = fixture.start(2)
    fixture.worker.drain()
    fixture.worker.stop_all(StopCause.SHUTDOWN)
    for execution in executions:
        assert execution.stops == [(StopCause.SHUTDOWN, False)]
        execution.obey()
    assert fixture.worker.tick().retries == 2
    for execution in executions:
        retry = fixture.retry_of(execution.task.run.id)
        assert retry is not None
        assert (retry.scheduled_for, retry.retries_used, retry.attempt) == (NOON, 0, 2)


def test_a_detached_worker_is_not_marked_as_draining(fixture: WorkerFixture) -> None:
    """Marked so, its own mark would keep it from coming back."""
    (waiting,) = fixture.assign()
    fixture.worker.on_detached()
    assert fixture.worker.tick().started == []
    assert fixture.run(waiting).state is RunState.ORPHANED
    with fixture.database.read() as connection:
        (worker,) = workers.find(connection)
    assert worker.state is WorkerState.ATTACHED


def test_a_new_id_whose_registration_failed_is_not_used(fixture: WorkerFixture) -> None:
    fixture.worker.on_detached()
    with unreachable(fixture):
        fixture.worker.reregister(replace(ME, id="new"))
    assert (fixture.worker.identity.id, fixture.worker.accepting) == (WORKER, False)
    assert fixture.worker.reregister(replace(ME, id="newer"))
    assert (fixture.worker.identity.id, fixture.worker.accepting) == ("newer", True)


@pytest.mark.parametrize("declared_lost", [False, True])
def test_a_worker_drained_before_it_was_detached_drains_under_its_new_id_too(
    fixture: WorkerFixture, declared_lost: bool
) -> None:
    with fixture.database.write() as connection:
        workers.drain(connection, [WORKER])
        if declared_lost:
            assert workers.deregister(connection, WORKER)
    fixture.worker.on_detached()
    assert fixture.worker.reregister(replace(ME, id="new"))
    assert not fixture.worker.accepting
    fixture.worker.tick()
    with fixture.database.read() as connection:
        worker = workers.get(connection, "new")
    assert worker is not None
    assert worker.state is WorkerState.DRAINING


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_a_locked_row_of_the_former_id_does_not_delay_the_new_one(
    fixture: WorkerFixture,
) -> None:
    fixture.worker.on_detached()
    with fixture.database.engine.connect() as holder:
        holder.execute(select(table_of_workers.c.id).with_for_update())
        assert fixture.worker.reregister(replace(ME, id="new"))
    with fixture.database.read() as connection:
        assert {worker.id for worker in workers.find(connection)} == {WORKER, "new"}


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_handing_back_does_not_wait_for_locked_rows(fixture: WorkerFixture) -> None:
    locked, other = fixture.assign(2)
    with fixture.database.engine.connect() as holder:
        holder.execute(select(job_runs.c.id).where(job_runs.c.id == locked).with_for_update())
        assert fixture.worker.drain() == {other}
    fixture.worker.tick()
    assert fixture.run(locked).state is RunState.ORPHANED


def test_a_worker_registers_anew_only_when_nothing_of_it_runs(fixture: WorkerFixture) -> None:
    (execution,) = fixture.start()
    fixture.worker.on_detached()
    assert execution.stops == [(StopCause.NOT_CONFIRMED, True)]
    assert not fixture.worker.reregister(replace(ME, id="new"))
    assert (fixture.worker.identity.id, fixture.worker.accepting) == (WORKER, False)
    (left_over,) = fixture.assign()
    execution.obey()
    fixture.worker.tick()
    assert fixture.worker.reregister(replace(ME, id="new"))
    assert (fixture.worker.identity.id, fixture.worker.accepting) == ("new", True)
    assert fixture.worker.tick().started == []
    assert fixture.run(left_over).state is RunState.ORPHANED
    with fixture.database.read() as connection:
        assert [worker.id for worker in workers.find(connection)] == ["new"]
    (later,) = fixture.start()
    assert fixture.run(later.task.run.id).assigned_worker_id == "new"
    later.succeed()
    assert len(fixture.worker.tick().ended) == 1


def test_an_end_that_waited_for_the_database_is_written_under_the_old_id(
    fixture: WorkerFixture,
) -> None:
    (execution,) = fixture.start()
    fixture.worker.stop_all(StopCause.NOT_CONFIRMED, at_once=True)
    execution.obey()
    with unreachable(fixture):
        fixture.worker.tick()
    fixture.worker.tick()
    run = fixture.run(execution.task.run.id)
    assert (run.state, run.reason) == (RunState.FAILED, Reason.NOT_CONFIRMED)
    assert fixture.worker.running == 0


def test_after_a_registration_whose_reply_was_lost_another_id_is_used(
    fixture: WorkerFixture,
) -> None:
    with reply_lost(fixture):
        fixture.worker.reregister(replace(ME, id="lost"))
    fixture.worker.reregister(replace(ME, id="found"))
    (execution,) = fixture.start()
    assert fixture.run(execution.task.run.id).assigned_worker_id == "found"


def test_under_clock_skew_retries_are_due_by_the_databases_clock(
    fixture: WorkerFixture,
) -> None:
    ahead = ManualClock(NOON + timedelta(hours=1))
    fixture.worker = fixture.a_worker(ahead, replace(ME, id="ahead"))
    fixture.worker.register()
    (execution,) = fixture.start()
    execution.end(Stopped(cause=StopCause.SHUTDOWN))
    fixture.worker.tick()
    retry = fixture.retry_of(execution.task.run.id)
    assert retry is not None
    assert retry.scheduled_for == NOON


def test_what_was_assigned_to_the_former_id_is_handed_back_with_the_new_one(
    fixture: WorkerFixture,
) -> None:
    (run_id,) = fixture.assign()
    fixture.worker.on_detached()
    assert fixture.worker.reregister(replace(ME, id="new"))
    run = fixture.run(run_id)
    assert (run.state, run.orphan_count - run.orphans_free) == (RunState.ORPHANED, 0)
