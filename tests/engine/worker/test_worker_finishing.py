"""A worker writes exactly once how a run has ended, in bounded batches, and frees its slot only then."""

import pytest

from support.factories import depose_and_take
from support.worker_fixture import WorkerFixture, unreachable
from tsuzuki.engine.worker import worker as worker_module


def test_a_slot_is_free_only_after_the_database_accepted_the_end(fixture: WorkerFixture) -> None:
    executions = fixture.start(3)
    (next_id,) = fixture.assign()
    executions[0].succeed()
    with unreachable(fixture):
        fixture.worker.tick()
    assert (fixture.worker.running, fixture.worker.free) == (3, 0)
    assert fixture.worker.has_outcomes()
    assert len(fixture.executor.started) == 3
    step = fixture.worker.tick()
    assert [task.run.id for task, _ in step.ended] == [executions[0].task.run.id]
    assert [task.run.id for task in step.started] == [next_id]
    assert fixture.worker.running == 3
    assert not fixture.worker.has_outcomes()


def test_many_ends_are_written_in_bounded_batches(
    fixture: WorkerFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "RUN_ENDS_MAX", 2)
    for execution in fixture.start(3):
        execution.succeed()
    assert [len(fixture.worker.tick().ended) for _ in range(3)] == [2, 1, 0]


def test_a_run_ends_under_the_epoch_it_started_under_also_with_a_new_leader(
    fixture: WorkerFixture,
) -> None:
    (execution,) = fixture.start()
    fixture.term = depose_and_take(fixture.database)
    execution.succeed()
    assert len(fixture.worker.tick().ended) == 1
    (later,) = fixture.start()
    assert later.task.started.epoch == fixture.term.epoch == 2
    later.succeed()
    assert len(fixture.worker.tick().ended) == 1


def test_a_busy_worker_lets_ends_gather_until_all_that_run_have_ended(
    fixture: WorkerFixture,
) -> None:
    first, second, third = fixture.start(3)
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        second.succeed()

    fixture.worker.gather_ends(wait)
    assert not waits
    first.succeed()
    fixture.worker.gather_ends(wait)
    assert len(waits) == 1
    third.succeed()
    fixture.worker.gather_ends(wait)
    assert len(waits) == 1
    assert len(fixture.worker.tick(poll=False).ended) == 3
