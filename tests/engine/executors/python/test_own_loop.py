"""Async functions that take the context do not get into each other's way: each run has an event loop of its own."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.engines import TIMEOUT_SECONDS, Engines
from support.factories import add_job, spec
from support.python_calls import Call, python_executor
from support.worker_fixture import note
from tsuzuki.engine.executors.python.executor import PythonExecutor
from tsuzuki.engine.outcome import Succeeded
from tsuzuki.engine.run_context import RunContext
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.states import RunState
from tsuzuki.store import audit

Start = Callable[..., list[int]]


@pytest.fixture
def start(engines: Engines, tmp_path: Path) -> Iterator[Start]:
    """Starts a run of each function, executed by one engine. Answers the runs."""
    functions: dict[str, Callable[..., Any]] = {}

    def start_all(*handlers: Callable[..., Any]) -> list[int]:
        for handler in handlers:
            functions[handler.__name__] = handler
            options = {"function": handler.__name__}
            changes = {"concurrency_policy": ConcurrencyPolicy.ALLOW}
            add_job(
                engines.database,
                spec(handler.__name__, handler="python", options=options, **changes),
            )
        return [run_id for one in handlers for run_id in engines.submit(1, one.__name__)]

    with python_executor(tmp_path, functions) as executor:
        engines.start(executor=executor)
        yield start_all


def notes(engines: Engines) -> int:
    with engines.database.read() as connection:
        return len(audit.find(connection, object_type="handler"))


async def wait_for(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, TIMEOUT_SECONDS)


def test_two_async_functions_may_await_inside_their_transactions(
    engines: Engines, start: Start
) -> None:
    both_run, inside, wanted = threading.Event(), threading.Event(), threading.Event()

    async def holds(run: RunContext) -> None:
        await wait_for(both_run)
        with run.transaction() as connection:
            note(connection)
            inside.set()
            await wait_for(wanted)
            note(connection)

    async def follows(run: RunContext) -> None:
        both_run.set()
        await wait_for(inside)
        wanted.set()
        with run.transaction() as connection:
            note(connection)
            await asyncio.sleep(0)
            note(connection)

    found = [engines.wait(run_id) for run_id in start(holds, follows)]
    assert [run.state for run in found] == [RunState.SUCCEEDED] * 2, [run.error for run in found]
    assert notes(engines) == 4


def test_a_second_transaction_at_once_in_one_run_is_an_error_and_no_deadlock(
    engines: Engines, start: Start
) -> None:
    async def doubles(run: RunContext) -> None:
        inside = asyncio.Event()

        async def one() -> None:
            with run.transaction():
                inside.set()
                await asyncio.sleep(0)

        async def two() -> None:
            await inside.wait()
            with run.transaction():
                pass

        await asyncio.gather(one(), two())

    (run_id,) = start(doubles)
    run = engines.wait(run_id)
    assert (run.state, "transaction_deadlock" in (run.error or "")) == (RunState.FAILED, True)


def test_what_a_function_leaves_running_is_cancelled_with_its_run(call: Call) -> None:
    cancelled = threading.Event()

    async def leaves(run: RunContext) -> int:
        async def lingers() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        left.append(asyncio.create_task(lingers()))
        await asyncio.sleep(0)
        return run.id

    left: list[asyncio.Task[None]] = []
    outcome, _ = call(leaves, run_id=7)
    assert outcome == Succeeded(result=7)
    assert cancelled.is_set()


def test_a_task_that_exits_does_not_end_the_run(executor: PythonExecutor, call: Call) -> None:
    async def exits() -> None:
        raise SystemExit(3)

    async def starts_one(run: RunContext) -> str:
        task = asyncio.create_task(exits())
        await asyncio.wait([task])
        return f"{run.id}: {type(task.exception()).__name__}"

    assert call(starts_one, run_id=7)[0] == Succeeded(result="7: SystemExit")
    assert executor.abandoned_threads == 0
