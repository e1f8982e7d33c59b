"""Where a function is right now, and the function that blocks the event loop of others."""

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from support.executions import Executions, a_task
from support.python_calls import Function
from tsuzuki.engine.executors.python.executor import PythonExecutor
from tsuzuki.engine.run_context import RunContext

MAY_GO = threading.Event()
IS_THERE = threading.Event()


@pytest.fixture(autouse=True)
def _closed_gates() -> None:
    MAY_GO.clear()
    IS_THERE.clear()


def innermost() -> None:
    IS_THERE.set()
    MAY_GO.wait()


def in_thread() -> None:
    innermost()


async def waiting() -> None:
    IS_THERE.set()
    while not MAY_GO.is_set():
        await asyncio.sleep(0.01)


async def on_shared_loop() -> None:
    await waiting()


async def on_own_loop(run: RunContext) -> None:
    await asyncio.gather(waiting(), waiting())


async def blocks() -> None:
    innermost()


def names_in(stack: str) -> list[str]:
    return [
        line.rpartition(" in ")[2]
        for line in stack.splitlines()
        if line.lstrip().startswith("File ") and __file__ in line
    ]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (in_thread, ["in_thread", "innermost"]),
        (on_shared_loop, ["on_shared_loop", "waiting"]),
        (on_own_loop, ["on_own_loop", "waiting", "waiting"]),
    ],
)
def test_the_stack_is_that_of_the_function_alone(
    executor: PythonExecutor,
    functions: dict[str, Function],
    function: Callable[..., Awaitable[None] | None],
    expected: list[str],
) -> None:
    functions["stays"] = function
    executions = Executions(executor)
    execution = executions.start(a_task("python", {"function": "stays"}))
    assert IS_THERE.wait(20)
    stacks: list[str] = []
    execution.dump_stack(stacks.append)
    MAY_GO.set()
    executions.wait_for_all()
    (stack,) = stacks
    assert sorted(names_in(stack)) == sorted(expected)
    assert "executors" not in stack.replace(__file__, "")


def test_what_has_ended_has_no_stack(
    executor: PythonExecutor, functions: dict[str, Function]
) -> None:
    MAY_GO.set()
    functions["stays"] = in_thread
    executions = Executions(executor)
    execution = executions.start(a_task("python", {"function": "stays"}))
    executions.wait_for_all()
    stacks: list[str] = []
    execution.dump_stack(stacks.append)
    assert stacks == []


def test_a_function_that_blocks_the_shared_loop_is_named_in_its_log_with_its_stack(
    executor: PythonExecutor, functions: dict[str, Function], caplog: pytest.LogCaptureFixture
) -> None:
    functions["stays"] = on_shared_loop
    functions["blocks"] = blocks
    executions = Executions(executor)
    executions.start(
        a_task("python", {"function": "stays"}, run_id=1),
        a_task("python", {"function": "blocks"}, run_id=2),
    )
    with caplog.at_level("WARNING", "tsuzuki"):
        lines = executions.run_io.wait_for(3, "stderr")
    MAY_GO.set()
    executions.wait_for_all()
    assert names_in("\n".join(executions.run_io.of("stderr"))) == ["blocks", "innermost"]
    assert "event loop" in lines[0]
    (record,) = caplog.records
    assert record.tsuzuki_fields["task"] == "run-2 hello"  # type: ignore[attr-defined] -- a field of ours
