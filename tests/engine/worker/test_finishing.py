"""The end of a run: each outcome is one move; a run that is not ours any more is not ended by us."""

from dataclasses import replace

from support.moving_clock import NOON
from support.statement_recorder import recorded
from support.worker_fixture import ME, WorkerFixture
from tsuzuki.engine.outcome import Failed, Outcome, StopCause, Stopped, Succeeded
from tsuzuki.engine.worker.finishing import error_line
from tsuzuki.engine.worker.step import WorkerStep
from tsuzuki.model.run import StartedRun
from tsuzuki.model.secrets import SecretMask
from tsuzuki.model.states import Reason, RunState
from tsuzuki.store.runs.moves import RunEnd

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
        "ran longer than 60.0 s",
    ),
    (
        Stopped(cause=StopCause.SHUTDOWN),
        RunState.FAILED,
        Reason.WORKER_SHUTDOWN,
        "the worker was shut down",
    ),
    (
        Stopped(cause=StopCause.NOT_CONFIRMED),
        RunState.FAILED,
        Reason.NOT_CONFIRMED,
        "the worker did not get the leader's confirmation in time",
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


def test_an_end_by_a_shutdown_counts_in_no_metric(fixture: WorkerFixture) -> None:
    first, second = fixture.start(2)
    first.end(Stopped(cause=StopCause.SHUTDOWN))
    second.end(Succeeded())
    step = fixture.worker.tick()
    assert len(step.ended) == 2
    assert [(state, count) for (_, state), count in step.ends.items()] == [(RunState.SUCCEEDED, 1)]


def test_a_run_that_is_not_ours_any_more_is_not_ended_by_us(fixture: WorkerFixture) -> None:
    (execution,) = fixture.start()
    execution.end(Stopped(cause=StopCause.FENCED))
    with recorded(fixture.database) as sent:
        step = fixture.worker.tick(poll=False)
    assert (step, fixture.worker.running) == (WorkerStep(polled=True), 0)
    assert [text for text in sent if "UPDATE tsuzuki_job_runs" in text] == []
    assert fixture.run(execution.task.run.id).state is RunState.RUNNING


def test_the_first_line_of_an_error_is_short_and_harmless_and_without_secrets() -> None:
    def line(error: str | None) -> str | None:
        end = RunEnd(run=StartedRun(id=1, version=1, epoch=1), state=RunState.FAILED, error=error)
        return error_line(end, SecretMask(lambda: ["hunter22"]).text)

    assert line(None) is None
    assert line("\n") is None
    assert line("it broke\nand more") == "it broke"
    assert line("\x1b[31mred\x1b[0m") == r"\x1b[31mred\x1b[0m"
    assert line("no hunter22 at https://me:pass@host") == "no *** at https://me:***@host"
    assert len(line("x" * 1000) or "") == 200
