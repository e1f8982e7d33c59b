"""Stopping Python functions. Cancellation is cooperative: some stop when asked, others are abandoned and fenced."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from support.executions import TIMEOUT_SECONDS, Executions, a_task, eventually
from support.python_calls import HANGING, Function, Hanging
from tsuzuki.engine.executors.python.executor import PythonExecutor
from tsuzuki.engine.outcome import Failed, StopCause, Stopped, Succeeded
from tsuzuki.engine.run_context import RunContext
from tsuzuki.model.clock import SystemClock
from tsuzuki.model.states import Reason


def test_a_function_that_stops_when_asked_is_stopped(
    executor: PythonExecutor, functions: dict[str, Function]
) -> None:
    started = threading.Event()

    def waits(run: RunContext) -> None:
        started.set()
        assert run.wait(TIMEOUT_SECONDS)
        run.raise_if_cancelled()

    functions["waits"] = waits
    executions = Executions(executor)
    execution = executions.start(a_task("python", {"function": "waits"}))
    assert started.wait(TIMEOUT_SECONDS)
    execution.stop(StopCause.SHUTDOWN)
    assert executions.outcome() == Stopped(cause=StopCause.SHUTDOWN)
    assert executions.run_io.lines == []
    assert executor.abandoned_threads == 0


def test_what_is_returned_after_being_asked_to_stop_does_not_count(
    executor: PythonExecutor, hanging: Hanging
) -> None:
    executions = Executions(executor)
    execution = executions.start(HANGING)
    context = hanging.wait_until_started()
    assert not context.cancelled
    execution.stop(StopCause.FENCED)
    assert context.cancelled
    hanging.may_go.set()
    assert executions.outcome() == Stopped(cause=StopCause.FENCED)


@pytest.mark.parametrize("at_once", [False, True])
def test_a_function_that_does_not_stop_is_abandoned_and_fenced(
    executor: PythonExecutor, hanging: Hanging, at_once: bool
) -> None:
    executions = Executions(executor)
    execution = executions.start(HANGING)
    context = hanging.wait_until_started()
    execution.stop(StopCause.TIMEOUT, at_once=at_once)
    assert executions.outcome() == Stopped(cause=StopCause.TIMEOUT)
    assert executor.abandoned_threads == 1

    context.log("still here")
    context.progress(5)
    with pytest.raises(Exception, match="run 1 has ended, so it can write nothing more"):
        context.transaction()
    assert (executions.run_io.lines, executions.run_io.reports, executions.run_io.transactions) == (
        [],
        [],
        0,
    )

    hanging.may_go.set()
    eventually(lambda: executor.abandoned_threads == 0)
    assert len(executions.outcomes) == 1


def test_a_harsher_stop_does_not_wait_for_the_grace_of_the_first(
    tmp_path: Path, hanging: Hanging
) -> None:
    executor = PythonExecutor(
        functions={"hanging": hanging},
        base_folder=tmp_path,
        max_threads=1,
        kill_grace_seconds=lambda: 3600.0,
        clock=SystemClock(),
    )
    executions = Executions(executor)
    execution = executions.start(HANGING)
    hanging.wait_until_started()
    execution.stop(StopCause.SHUTDOWN)
    execution.stop(StopCause.SHUTDOWN)
    assert executions.outcomes == []
    execution.stop(StopCause.FENCED, at_once=True)
    assert executions.outcome() == Stopped(cause=StopCause.SHUTDOWN)
    executor.close()


def test_an_async_function_is_cancelled_and_may_clean_up(
    executor: PythonExecutor, functions: dict[str, Function]
) -> None:
    started = threading.Event()

    async def waits(run: RunContext) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            run.log("cleaned up")

    functions["waits"] = waits
    executions = Executions(executor)
    execution = executions.start(a_task("python", {"function": "waits"}))
    assert started.wait(TIMEOUT_SECONDS)
    execution.stop(StopCause.FENCED)
    assert executions.outcome() == Stopped(cause=StopCause.FENCED)
    assert executions.run_io.lines == [("log", "cleaned up")]


@pytest.mark.parametrize("at_once", [False, True])
def test_an_async_function_that_does_not_stop_is_abandoned(
    executor: PythonExecutor, functions: dict[str, Function], at_once: bool
) -> None:
    started = threading.Event()
    let_go: list[Callable[[], object]] = []

    async def refuses(run: RunContext) -> None:
        loop, gate = asyncio.get_running_loop(), asyncio.Event()
        let_go.append(lambda: loop.call_soon_threadsafe(gate.set))
        started.set()
        while not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:
                run.log("no")

    functions["refuses"] = refuses
    executions = Executions(executor)
    execution = executions.start(a_task("python", {"function": "refuses"}))
    assert started.wait(TIMEOUT_SECONDS)
    execution.stop(StopCause.TIMEOUT, at_once=at_once)
    assert executions.outcome() == Stopped(cause=StopCause.TIMEOUT)
    let_go[0]()


def test_a_function_that_blocks_the_event_loop_can_still_be_abandoned(
    executor: PythonExecutor, functions: dict[str, Function]
) -> None:
    started, gate = threading.Event(), threading.Event()

    async def blocks() -> None:
        started.set()
        gate.wait(TIMEOUT_SECONDS)

    functions["blocks"] = blocks
    executions = Executions(executor)
    execution = executions.start(a_task("python", {"function": "blocks"}))
    assert started.wait(TIMEOUT_SECONDS)
    execution.stop(StopCause.TIMEOUT)
    assert executions.outcome() == Stopped(cause=StopCause.TIMEOUT)
    gate.set()


def test_a_function_that_says_it_was_stopped_when_it_was_not_has_failed(
    executor: PythonExecutor, functions: dict[str, Function]
) -> None:
    async def cancels_itself() -> None:
        raise asyncio.CancelledError

    functions["cancels_itself"] = cancels_itself
    executions = Executions(executor)
    executions.start(a_task("python", {"function": "cancels_itself"}))
    assert executions.outcome() == Failed(reason=Reason.HANDLER_FAILED, error="CancelledError")


def test_a_stop_after_the_end_changes_nothing(
    executor: PythonExecutor, functions: dict[str, Function]
) -> None:
    functions["quick"] = lambda: "done"
    executions = Executions(executor)
    execution = executions.start(a_task("python", {"function": "quick"}))
    assert executions.outcome() == Succeeded(result="done")
    execution.stop(StopCause.FENCED)
    execution.stop(StopCause.FENCED, at_once=True)
    assert executions.outcome() == Succeeded(result="done")


def test_closing_abandons_what_runs(executor: PythonExecutor, hanging: Hanging) -> None:
    executions = Executions(executor)
    executions.start(HANGING)
    hanging.wait_until_started()
    executor.close()
    assert executions.outcomes == [(1, Stopped(cause=StopCause.SHUTDOWN))]
    executor.close()


def test_a_function_ends_exactly_once_however_many_stop_it_and_whenever(
    executor: PythonExecutor, functions: dict[str, Function]
) -> None:
    async def asynchronous() -> None:
        await asyncio.sleep(0)  # a turn for the others, not a time

    functions.update(sync=lambda: None, asynchronous=asynchronous)
    functions["waits"] = lambda run: run.wait(TIMEOUT_SECONDS)
    names = ("sync", "asynchronous", "waits")
    executions = Executions(executor)
    stopping = threading.Event()

    def stop_everything(at_once: bool) -> None:
        while not stopping.is_set():
            for execution in list(executions.started):
                execution.stop(StopCause.FENCED, at_once=at_once)

    stoppers = [threading.Thread(target=stop_everything, args=(flag,)) for flag in (True, False)]
    for stopper in stoppers:
        stopper.start()
    for n in range(300):
        executions.start(a_task("python", {"function": names[n % 3]}, run_id=n))
    outcomes = executions.wait_for_all()
    stopping.set()
    for stopper in stoppers:
        stopper.join()
    assert len(outcomes) == 300
