"""The context of a run, as its Python handler sees it: what it reads, what it writes, and the fence."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.executions import NOON, Executions, a_task, eventually
from support.python_calls import Call, Function, calls_of, python_executor
from tsuzuki.engine.outcome import StopCause, Stopped, Succeeded
from tsuzuki.engine.run_context import RunContext


@pytest.fixture
def call(tmp_path: Path) -> Iterator[Call]:
    functions: dict[str, Function] = {}
    with python_executor(tmp_path, functions) as executor:
        yield calls_of(executor, functions)


def test_a_function_can_see_its_run(call: Call) -> None:
    def look(run: RunContext) -> list[Any]:
        return [
            *(run.id, run.job_name, run.attempt, run.idempotency_key, run.event),
            *(run.scheduled_for == NOON, run.cancelled),
        ]

    outcome, _ = call(look, run_id=7, origin_id=4, attempt=2, event={"a": 1})
    assert outcome == Succeeded(result=[7, "hello", 2, "run-4", {"a": 1}, True, False])


def test_a_function_can_log_progress_and_write(call: Call) -> None:
    def work(run: RunContext) -> str:
        run.log("half way")
        run.progress(1)
        run.progress(2, 4)
        with run.transaction() as connection:
            return str(connection)

    outcome, run_io = call(work)
    assert outcome == Succeeded(result="connection")
    assert run_io.lines == [("log", "half way")]
    assert run_io.reports == [(1, None), (2, 4)]
    assert run_io.transactions == 1


def test_the_context_of_a_run_that_has_ended_is_refused(call: Call) -> None:
    kept: list[RunContext] = []

    def keep(run: RunContext) -> None:
        kept.append(run)

    _, run_io = call(keep)
    kept[0].log("from beyond")
    assert run_io.lines == []
    assert kept[0].cancelled


def test_a_function_waits_while_there_is_no_space_for_its_lines(tmp_path: Path) -> None:
    def write(run: RunContext) -> None:
        run.log("line")

    with python_executor(tmp_path, {"write": write}) as executor:
        executions = Executions(executor)
        executions.run_io.is_full = True
        executions.start(a_task("python", {"function": "write"}))
        eventually(lambda: executions.run_io.refusals > 3)
        assert executions.run_io.lines == []
        executions.run_io.make_space()
        assert executions.outcome() == Succeeded()
    assert executions.run_io.lines == [("log", "line")]


def test_a_function_that_is_stopped_waits_no_longer(tmp_path: Path) -> None:
    """It is abandoned after the grace, and its thread ends."""
    ended = threading.Event()

    async def write(run: RunContext) -> None:
        run.log("line")
        ended.set()

    with python_executor(tmp_path, {"write": write}) as executor:
        executions = Executions(executor)
        executions.run_io.is_full = True
        execution = executions.start(a_task("python", {"function": "write"}))
        eventually(lambda: executions.run_io.refusals > 0)
        execution.stop(StopCause.FENCED)
        assert executions.outcome() == Stopped(cause=StopCause.FENCED)
        assert ended.wait(20.0)
    assert executions.run_io.lines == []
