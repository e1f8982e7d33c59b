"""Stopping isolated functions: each is asked first and killed then, with every process that it has started."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.executions import eventually, watching
from support.isolated_calls import GRACE_SECONDS, IsolatedExecutions
from support.stubborn import STUBBORN, descendants, stubborn_module
from tsuzuki.engine.executors.isolated.executor import IsolatedExecutor
from tsuzuki.engine.outcome import Failed, StopCause, Stopped, Succeeded
from tsuzuki.model.states import Reason

Write = Callable[..., None]


def write_stubborn(write: Write, name: str) -> None:
    write(stubborn_module(name))


@pytest.mark.parametrize("name", STUBBORN)
def test_what_does_not_stop_when_asked_is_killed_within_the_grace_and_a_second(
    write: Write, executions: IsolatedExecutions, name: str
) -> None:
    write_stubborn(write, name)
    execution = executions.begin("work:stubborn")
    child, supervisor = map(int, executions.run_io.wait_for(2, "log"))
    with watching(child) as process:
        asked_at = time.monotonic()
        execution.stop(StopCause.TIMEOUT)
        assert executions.outcome() == Stopped(cause=StopCause.TIMEOUT)
        assert time.monotonic() - asked_at < GRACE_SECONDS + 1
        assert process.has_ended(within_seconds=0)
        assert descendants(supervisor) == set()


def test_a_function_that_stops_when_asked_keeps_its_process(
    write: Write, executions: IsolatedExecutions
) -> None:
    write("""
        import asyncio, os
        def waits(run):
            run.log(str(os.getpid()))
            assert run.wait(600)
            run.log("cleaned up")
            run.raise_if_cancelled()
        async def awaits(run):
            run.log(str(os.getpid()))
            try:
                await asyncio.sleep(600)
            finally:
                run.log("cleaned up")
    """)
    for number, name in enumerate(("waits", "awaits"), 1):
        execution = executions.begin(f"work:{name}", run_id=number)
        executions.run_io.wait_for(number * 2 - 1, "log")
        execution.stop(StopCause.CANCELED)
        executions.wait_for_all()
    assert {outcome for _, outcome in executions.outcomes} == {Stopped(cause=StopCause.CANCELED)}
    first, *_, last = pids = [line for line in executions.run_io.of("log") if line.isdecimal()]
    assert len(pids) == 2
    assert first == last
    assert executions.run_io.of("log").count("cleaned up") == 2
    assert executions.run_io.of("stderr") == []


def test_a_harsher_stop_does_not_wait_for_the_grace(
    write: Write, executions: IsolatedExecutions
) -> None:
    write_stubborn(write, "endless loop")
    execution = executions.begin("work:stubborn")
    executions.run_io.wait_for(2, "log")
    execution.stop(StopCause.FENCED, at_once=True)
    assert executions.outcome() == Stopped(cause=StopCause.FENCED)


def test_what_is_stopped_before_it_began_does_not_begin(
    write: Write, executions: IsolatedExecutions, executor: IsolatedExecutor
) -> None:
    write("def begins(run): run.log('begun')")
    execution = executions.begin("work:begins")
    execution.stop(StopCause.FENCED, at_once=True)
    assert executions.outcome() == Stopped(cause=StopCause.FENCED)


def test_closing_kills_what_runs(
    write: Write, executions: IsolatedExecutions, executor: IsolatedExecutor
) -> None:
    write_stubborn(write, "holds the GIL")
    executions.begin("work:stubborn")
    child, _ = map(int, executions.run_io.wait_for(2, "log"))
    with watching(child) as process:
        executor.close()
        assert process.has_ended(within_seconds=0)
    assert executions.outcome() == Stopped(cause=StopCause.SHUTDOWN)


def test_the_passed_deadline_of_a_paused_worker_ends_the_function(
    write: Write, executions: IsolatedExecutions, executor: IsolatedExecutor
) -> None:
    write_stubborn(write, "endless loop")
    executions.begin("work:stubborn")
    executions.run_io.wait_for(2, "log")
    executor.renew_deadline(time.clock_gettime(time.CLOCK_BOOTTIME) + 0.1)
    assert executions.outcome() == Stopped(cause=StopCause.NOT_CONFIRMED)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_killed_process_is_a_crash_of_its_run_alone(
    write: Write, executions: IsolatedExecutions, number: int
) -> None:
    write_stubborn(write, "endless loop")
    executions.begin("work:stubborn", run_id=1)
    child, _ = map(int, executions.run_io.wait_for(2, "log"))
    executions.begin("work:neighbour", run_id=2)
    executions.run_io.wait_for(3, "log")
    os.kill(child, number)
    outcomes = dict(executions.wait_for_all())
    assert isinstance(outcomes[1], Failed)
    assert outcomes[1].reason is Reason.CRASHED
    assert outcomes[2] == Succeeded(result=False)


def test_a_function_ends_with_its_supervisor(write: Write, executions: IsolatedExecutions) -> None:
    write_stubborn(write, "leaves daemons")
    executions.begin("work:stubborn")
    child, supervisor = map(int, executions.run_io.wait_for(2, "log"))
    eventually(lambda: len(descendants(supervisor)) >= 4)
    pids = descendants(supervisor)
    os.kill(supervisor, signal.SIGKILL)
    outcome = executions.outcome()
    assert isinstance(outcome, Failed)
    assert outcome.reason is Reason.CRASHED
    eventually(lambda: not any(is_alive(pid) for pid in {child, *pids}))


def is_alive(pid: int) -> bool:
    try:
        return b") Z " not in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False


def test_a_program_that_a_function_leaves_behind_is_ended_with_its_run(
    write: Write, executions: IsolatedExecutions
) -> None:
    write("""
        import subprocess
        def leaves(run):
            left = subprocess.Popen(["setsid", "sleep", "600"])
            run.log(str(left.pid))
            return "done"
    """)
    executions.begin("work:leaves")
    assert executions.outcome() == Succeeded(result="done")
    (left,) = map(int, executions.run_io.of("log"))
    assert not is_alive(left)


def test_more_memory_than_allowed_ends_the_run_with_a_reason_of_its_own(
    write: Write, executions: IsolatedExecutions
) -> None:
    write("""
        import subprocess, sys, time
        def grows(run):
            kept = []
            while True:
                kept.append(b"x" * 10_000_000)
                time.sleep(0.01)
        def starts_one_that_grows(run):
            code = "import time; kept = b'x' * 200_000_000; time.sleep(600)"
            subprocess.run([sys.executable, "-c", code])
        def small(run):
            return "unharmed"
    """)
    limit = 120 * 1024 * 1024
    executions.begin("work:grows", run_id=1, memory=limit)
    executions.begin("work:starts_one_that_grows", run_id=2, memory=limit)
    executions.begin("work:small", run_id=3, memory=limit)
    outcomes = dict(executions.wait_for_all())
    for run_id in (1, 2):
        outcome = outcomes[run_id]
        assert isinstance(outcome, Failed)
        assert outcome.reason is Reason.MEMORY_LIMIT
    assert outcomes[3] == Succeeded(result="unharmed")


def test_a_limit_of_memory_is_that_of_one_run(write: Write, executions: IsolatedExecutions) -> None:
    write("""
        import os, time
        def pid(): return os.getpid()
        def grows():
            kept = b"x" * 200_000_000
            time.sleep(0.5)
            return os.getpid()
    """)
    executions.begin("work:pid", run_id=1, memory=100 * 1024 * 1024)
    executions.wait_for_all()
    executions.begin("work:grows", run_id=2)
    first, second = (outcome for _, outcome in executions.wait_for_all())
    assert first == second
