"""A thousand stubborn functions, and bombs: all are killed in time, and their neighbours notice nothing."""

import itertools
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.isolated_calls import GRACE_SECONDS, IsolatedExecutions, isolated_task
from support.stubborn import STUBBORN, descendants, stubborn_module
from tsuzuki.engine.executors.isolated.executor import IsolatedExecutor
from tsuzuki.engine.outcome import Failed, StopCause, Stopped, Succeeded
from tsuzuki.model.states import Reason

pytestmark = pytest.mark.full

Write = Callable[..., None]

ROUNDS = 1_000
CAUSES = (StopCause.TIMEOUT, StopCause.CANCELED, StopCause.FENCED, StopCause.SHUTDOWN)
PROCESSES_MAX = 300


@pytest.mark.timeout(1_200)
def test_a_thousand_of_a_thousand_are_gone_in_time(
    write: Write, executor: IsolatedExecutor
) -> None:
    for number, name in enumerate(STUBBORN):
        write(stubborn_module(name), f"work_{number}")
    neighbour = IsolatedExecutions(executor)
    staying = neighbour.begin("work_0:waits")
    neighbour.run_io.wait_for(1, "log")
    kinds = itertools.product(CAUSES, range(len(STUBBORN)))
    for cause, number in itertools.islice(itertools.cycle(kinds), ROUNDS):
        executions = IsolatedExecutions(executor)
        execution = executions.begin(f"work_{number}:stubborn")
        _, supervisor = map(int, executions.run_io.wait_for(2, "log"))
        asked_at = time.monotonic()
        execution.stop(cause)
        assert executions.outcome() == Stopped(cause=cause)
        assert time.monotonic() - asked_at < GRACE_SECONDS + 1
        assert descendants(supervisor) == set()
    assert neighbour.outcomes == []
    staying.stop(StopCause.TIMEOUT)
    assert neighbour.outcome() == Stopped(cause=StopCause.TIMEOUT)


def test_a_fork_bomb_is_gone_in_time(
    write: Write, executions: IsolatedExecutions, tmp_path: Path
) -> None:
    write(f"""
        import os, signal, time
        def bomb(run):
            run.log(str(os.getppid()))
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            counter = os.open({str(tmp_path / "counter")!r}, os.O_CREAT | os.O_RDWR | os.O_APPEND)
            while os.lseek(counter, 0, os.SEEK_END) < {PROCESSES_MAX}:
                os.write(counter, b".")
                if os.fork() == 0:
                    os.setsid()
            if os.lseek(counter, 0, os.SEEK_END) >= {PROCESSES_MAX}:
                time.sleep(600)
    """)
    execution = executions.begin("work:bomb")
    (supervisor,) = map(int, executions.run_io.wait_for(1, "log"))
    seen = 0
    while seen < PROCESSES_MAX // 2:
        seen = max(seen, len(descendants(supervisor)))
    asked_at = time.monotonic()
    execution.stop(StopCause.CANCELED)
    assert executions.outcome() == Stopped(cause=StopCause.CANCELED)
    assert time.monotonic() - asked_at < GRACE_SECONDS + 1
    assert descendants(supervisor) == set()


def test_a_bomb_of_memory_ends_its_own_run(write: Write, executions: IsolatedExecutions) -> None:
    write("""
        def bomb():
            kept = []
            while True:
                kept.append(bytearray(b"x") * 4_000_000)
        def neighbour(run):
            return run.wait(2)
    """)
    executions.start(
        isolated_task("work:neighbour", run_id=1),
        isolated_task("work:bomb", run_id=2, memory=128 * 1024 * 1024),
    )
    outcomes = dict(executions.wait_for_all())
    assert outcomes[1] == Succeeded(result=False)
    assert isinstance(outcomes[2], Failed)
    assert outcomes[2].reason is Reason.MEMORY_LIMIT
