"""Slots: one way in; a run is stopped at its timeout, or by order, also while it starts."""

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from support.scripted_executors import ScriptedExecution
from support.worker_fixture import ME, WorkerFixture, unreachable
from tsuzuki.engine.outcome import StopCause
from tsuzuki.model.retry import RetryPolicy
from tsuzuki.model.states import Reason, RunState

SOURCE = Path(__file__).parents[3] / "src" / "tsuzuki"


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


def test_an_executor_that_cannot_start_a_run_fails_it_and_starts_the_others(
    fixture: WorkerFixture,
) -> None:
    first, second, third = fixture.assign(3)

    def refuse(execution: ScriptedExecution) -> None:
        if execution.task.run.id == second:
            raise OSError("can't start new thread")

    fixture.executor.on_start = refuse
    fixture.worker.tick()
    assert fixture.worker.running == 3
    step = fixture.worker.tick()
    assert [task.run.id for task, _ in step.ended] == [second]
    failed = fixture.run(second)
    assert (failed.state, failed.reason) == (RunState.FAILED, Reason.HANDLER_FAILED)
    assert "can't start new thread" in (failed.error or "")
    for run_id in (first, third):
        fixture.executor.of(run_id).succeed()
    fixture.worker.tick()
    assert fixture.worker.running == 0


def test_a_worker_that_is_told_to_stop_everything_also_stops_what_is_just_starting(
    fixture: WorkerFixture,
) -> None:
    """A race: the order comes from the heartbeat's thread, at any moment of a tick."""
    during_start, after_commit = fixture.assign(2)
    order = {"cause": StopCause.NOT_CONFIRMED, "at_once": True}

    def stop_between(execution: ScriptedExecution) -> None:
        if execution.task.run.id == during_start:
            fixture.worker.stop_all(**order)  # type: ignore[arg-type]

    fixture.executor.on_start = stop_between
    fixture.worker.tick()
    for run_id in (during_start, after_commit):
        assert (StopCause.NOT_CONFIRMED, True) in fixture.executor.of(run_id).stops


def test_under_a_new_id_the_old_order_to_stop_does_not_count(fixture: WorkerFixture) -> None:
    fixture.worker.stop_all(StopCause.NOT_CONFIRMED, at_once=True)
    fixture.worker.reregister(replace(ME, id="new"))
    (execution,) = fixture.start()
    assert execution.stops == []


# --- one way into the slots -----------------------------------------------------------------------


def callers_of_start(module: Path) -> Iterator[str]:
    """The functions of a module that call `start` on slots, once for each call."""
    for function in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Attribute) and node.attr == "start":
                    owner = ast.unparse(node.value).rpartition(".")[2].lower()
                    if owner.endswith("slots"):
                        yield f"{module.relative_to(SOURCE)}: {function.name}"


def imports_slots(module: Path) -> bool:
    return any(
        isinstance(node, ast.ImportFrom) and node.module == "tsuzuki.engine.worker.slots"
        for node in ast.walk(ast.parse(module.read_text("utf-8")))
    )


def test_runs_enter_the_slots_at_one_place_in_the_source() -> None:
    modules = sorted(SOURCE.rglob("*.py"))
    callers = [caller for module in modules for caller in callers_of_start(module)]
    assert callers == ["engine/worker/worker.py: _adopt"]
    importers = [str(module.relative_to(SOURCE)) for module in modules if imports_slots(module)]
    assert importers == ["engine/worker/worker.py"]
