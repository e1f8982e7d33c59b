"""A worker writes exactly once how a run has ended, stops it at its timeout, and writes nothing else."""

from dataclasses import replace

import pytest

from support.factories import depose_and_take
from support.moving_clock import NOON
from support.scripted_executors import ScriptedExecution
from support.statement_recorder import recorded
from support.worker_fixture import ME, WorkerFixture, unreachable
from tsuzuki.engine.outcome import Failed, Outcome, StopCause, Stopped, Succeeded
from tsuzuki.engine.worker import worker as worker_module
from tsuzuki.engine.worker.step import WorkerStep
from tsuzuki.model.retry import RetryPolicy
from tsuzuki.model.states import Reason, RunState

# --- one outcome, one move ------------------------------------------------------------------------

RUN_ENDS: list[tuple[Outcome, RunState, Reason | None, str | None]] = [
    (Succeeded(result={"n": 1}), RunState.SUCCEEDED, None, None),
    (Succeeded(), RunState.SUCCEEDED, None, None),
    *(
        (Failed(reason=reason, error="why"), RunState.FAILED, reason, "why")
        for reason in (Reason.HANDLER_FAILED, Reason.HANDLER_UNKNOWN, Reason.ARGUMENTS_INVALID)
    ),
    (
        Stopped(cause=StopCause.TIMEOUT),
        RunState.TIMED_OUT,
        Reason.TIMEOUT,
        "it ran longer than 60.0 s",
    ),
    (
        Stopped(cause=StopCause.SHUTDOWN),
        RunState.FAILED,
        Reason.WORKER_SHUTDOWN,
        "its worker was shut down",
    ),
    (
        Stopped(cause=StopCause.NOT_CONFIRMED),
        RunState.FAILED,
        Reason.NOT_CONFIRMED,
        "its worker could not confirm in time that it may go on",
    ),
]


def test_each_outcome_is_one_end(fixture: WorkerFixture) -> None:
    fixture.worker.identity = replace(ME, capacity=len(RUN_ENDS))
    executions = fixture.start(len(RUN_ENDS), job_id=fixture.job(timeout_seconds=60))
    for execution, (outcome, *_) in zip(executions, RUN_ENDS, strict=True):
        execution.end(outcome)
    step = fixture.worker.tick()
    assert len(step.ended) == len(RUN_ENDS)
    for execution, (outcome, state, reason, error) in zip(executions, RUN_ENDS, strict=True):
        run = fixture.run(execution.task.run.id)
        assert (run.state, run.reason, run.error) == (state, reason, error)
        assert run.finished_at == NOON
        assert run.result == (outcome.result if isinstance(outcome, Succeeded) else None)
    assert fixture.worker.running == 0
    assert fixture.worker.tick(poll=False) == WorkerStep()


@pytest.mark.parametrize("cause", [StopCause.CANCELED, StopCause.FENCED])
def test_a_run_that_is_not_ours_any_more_is_not_ended_by_us(
    fixture: WorkerFixture, cause: StopCause
) -> None:
    (execution,) = fixture.start()
    execution.end(Stopped(cause=cause))
    with recorded(fixture.database) as sent:
        step = fixture.worker.tick(poll=False)
    assert (step, sent, fixture.worker.running) == (WorkerStep(), [], 0)
    assert fixture.run(execution.task.run.id).state is RunState.RUNNING


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


# --- time -----------------------------------------------------------------------------------------


def test_a_run_that_takes_too_long_is_stopped_once_and_ends_as_timed_out(
    fixture: WorkerFixture,
) -> None:
    job_id = fixture.job(timeout_seconds=30.0, retry=RetryPolicy(max_retries=1, jitter=0))
    (execution,) = fixture.start(job_id=job_id)
    assert fixture.worker.seconds_to_next_deadline() == 30.0
    fixture.clock.advance(29.999)
    fixture.worker.tick()
    assert execution.stops == []
    fixture.clock.advance(0.001)
    fixture.worker.tick()
    fixture.worker.tick()
    assert execution.stops == [(StopCause.TIMEOUT, False)]
    assert fixture.worker.seconds_to_next_deadline() is None
    execution.obey()
    assert fixture.worker.tick().retries == 1
    run = fixture.run(execution.task.run.id)
    assert (run.state, run.reason) == (RunState.TIMED_OUT, Reason.TIMEOUT)


def test_a_run_that_times_out_while_it_starts_is_stopped_when_it_has_started(
    fixture: WorkerFixture,
) -> None:
    """A race: it may be started by one thread while another looks for overdue runs."""

    def look_meanwhile(_execution: ScriptedExecution) -> None:
        fixture.clock.advance(6)
        fixture.worker._slots.stop_overdue()

    fixture.executor.on_start = look_meanwhile
    (execution,) = fixture.start(job_id=fixture.job(timeout_seconds=5))
    fixture.worker.tick()
    fixture.worker.tick()
    assert execution.stops == [(StopCause.TIMEOUT, False)]


def test_a_step_of_the_wall_clock_is_not_time_that_a_run_has_taken(fixture: WorkerFixture) -> None:
    (execution,) = fixture.start(job_id=fixture.job(timeout_seconds=30.0))
    fixture.clock.step(3600)
    fixture.worker.tick()
    assert execution.stops == []
    fixture.clock.step(-7200)
    fixture.clock.advance(30)
    fixture.worker.tick()
    assert execution.stops == [(StopCause.TIMEOUT, False)]


def test_a_run_is_stopped_in_time_though_the_database_is_away(fixture: WorkerFixture) -> None:
    (execution,) = fixture.start(job_id=fixture.job(timeout_seconds=30.0))
    fixture.clock.advance(30)
    with unreachable(fixture):
        fixture.worker.tick()
    assert execution.stops == [(StopCause.TIMEOUT, False)]


def test_a_run_that_ended_by_itself_before_it_could_be_stopped_has_ended_so(
    fixture: WorkerFixture,
) -> None:
    (execution,) = fixture.start(job_id=fixture.job(timeout_seconds=30.0))
    fixture.clock.advance(30)
    fixture.worker.tick()
    execution.succeed("just made it")
    fixture.worker.tick()
    assert fixture.run(execution.task.run.id).result == "just made it"
