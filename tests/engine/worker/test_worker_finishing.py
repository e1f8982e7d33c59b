"""A worker says exactly once how a run has ended, in time, and writes nothing else."""

from dataclasses import replace

import pytest

from support.factories import depose_and_take
from support.moving_clock import NOON
from support.scripted_executors import ScriptedExecution
from support.statement_recorder import recorded
from support.worker_bench import ME, Bench, away
from tsuzuki.engine.outcome import Failed, Outcome, StopCause, Stopped, Succeeded
from tsuzuki.engine.worker import worker as worker_module
from tsuzuki.engine.worker.step import WorkerStep
from tsuzuki.model.retry import RetryPolicy
from tsuzuki.model.states import Reason, RunState

# --- ending: one outcome, one move ----------------------------------------------------------------

ENDINGS: list[tuple[Outcome, RunState, Reason | None, str | None]] = [
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


def test_each_outcome_is_one_end(bench: Bench) -> None:
    bench.worker.identity = replace(ME, capacity=len(ENDINGS))
    executions = bench.begin(len(ENDINGS), job_id=bench.job(timeout_seconds=60))
    for execution, (outcome, *_) in zip(executions, ENDINGS, strict=True):
        execution.end(outcome)
    worked = bench.worker.tick()
    assert len(worked.ended) == len(ENDINGS)
    for execution, (outcome, state, reason, error) in zip(executions, ENDINGS, strict=True):
        run = bench.run(execution.task.run.id)
        assert (run.state, run.reason, run.error) == (state, reason, error)
        assert run.finished_at == NOON
        assert run.result == (outcome.result if isinstance(outcome, Succeeded) else None)
    assert bench.worker.running == 0
    assert bench.worker.tick(poll=False) == WorkerStep()


@pytest.mark.parametrize("cause", [StopCause.CANCELED, StopCause.FENCED])
def test_a_run_that_is_not_ours_any_more_is_not_ended_by_us(bench: Bench, cause: StopCause) -> None:
    (execution,) = bench.begin()
    execution.end(Stopped(cause=cause))
    with recorded(bench.truth) as sent:
        worked = bench.worker.tick(poll=False)
    assert (worked, sent, bench.worker.running) == (WorkerStep(), [], 0)
    assert bench.run(execution.task.run.id).state is RunState.RUNNING


def test_a_slot_is_free_only_after_the_database_accepted_the_end(bench: Bench) -> None:
    executions = bench.begin(3)
    (next_id,) = bench.give()
    executions[0].succeed()
    with away(bench):
        bench.worker.tick()
    assert (bench.worker.running, bench.worker.free) == (3, 0)
    assert bench.worker.has_outcomes()
    assert len(bench.executor.begun) == 3
    worked = bench.worker.tick()
    assert [task.run.id for task, _ in worked.ended] == [executions[0].task.run.id]
    assert [task.run.id for task in worked.started] == [next_id]
    assert bench.worker.running == 3
    assert not bench.worker.has_outcomes()


def test_many_ends_are_written_in_bounded_batches(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "RUN_ENDS_MAX", 2)
    for execution in bench.begin(3):
        execution.succeed()
    assert [len(bench.worker.tick().ended) for _ in range(3)] == [2, 1, 0]


def test_a_run_ends_under_the_epoch_it_began_under_whoever_leads_by_then(bench: Bench) -> None:
    (execution,) = bench.begin()
    bench.term = depose_and_take(bench.truth)
    execution.succeed()
    assert len(bench.worker.tick().ended) == 1
    (later,) = bench.begin()
    assert later.task.started.epoch == bench.term.epoch == 2
    later.succeed()
    assert len(bench.worker.tick().ended) == 1


# --- time -----------------------------------------------------------------------------------------


def test_a_run_that_takes_too_long_is_stopped_once_and_ends_as_timed_out(bench: Bench) -> None:
    job_id = bench.job(timeout_seconds=30.0, retry=RetryPolicy(max_retries=1, jitter=0))
    (execution,) = bench.begin(job_id=job_id)
    assert bench.worker.seconds_to_next_deadline() == 30.0
    bench.clock.advance(29.999)
    bench.worker.tick()
    assert execution.stops == []
    bench.clock.advance(0.001)
    bench.worker.tick()
    bench.worker.tick()
    assert execution.stops == [(StopCause.TIMEOUT, False)]
    assert bench.worker.seconds_to_next_deadline() is None
    execution.obey()
    assert bench.worker.tick().retries == 1
    run = bench.run(execution.task.run.id)
    assert (run.state, run.reason) == (RunState.TIMED_OUT, Reason.TIMEOUT)


def test_a_run_whose_time_is_up_before_it_has_begun_is_stopped_when_it_has(bench: Bench) -> None:
    """It may be begun by one thread while another looks for what takes too long."""

    def look_meanwhile(_execution: ScriptedExecution) -> None:
        bench.clock.advance(6)
        bench.worker._slots.stop_overdue()

    bench.executor.on_begin = look_meanwhile
    (execution,) = bench.begin(job_id=bench.job(timeout_seconds=5))
    bench.worker.tick()
    bench.worker.tick()
    assert execution.stops == [(StopCause.TIMEOUT, False)]


def test_a_step_of_the_wall_clock_is_not_time_that_a_run_has_taken(bench: Bench) -> None:
    (execution,) = bench.begin(job_id=bench.job(timeout_seconds=30.0))
    bench.clock.step(3600)
    bench.worker.tick()
    assert execution.stops == []
    bench.clock.step(-7200)
    bench.clock.advance(30)
    bench.worker.tick()
    assert execution.stops == [(StopCause.TIMEOUT, False)]


def test_a_run_is_stopped_in_time_though_the_database_is_away(bench: Bench) -> None:
    (execution,) = bench.begin(job_id=bench.job(timeout_seconds=30.0))
    bench.clock.advance(30)
    with away(bench):
        bench.worker.tick()
    assert execution.stops == [(StopCause.TIMEOUT, False)]


def test_a_run_that_ended_by_itself_before_it_could_be_stopped_has_ended_so(bench: Bench) -> None:
    (execution,) = bench.begin(job_id=bench.job(timeout_seconds=30.0))
    bench.clock.advance(30)
    bench.worker.tick()
    execution.succeed("just made it")
    bench.worker.tick()
    assert bench.run(execution.task.run.id).result == "just made it"
