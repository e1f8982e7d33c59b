"""The thread pool of handlers: bounded, named, and no thread of it keeps the process alive."""

import os
import subprocess
import sys
import threading
from pathlib import Path

from support.executions import TIMEOUT_SECONDS, Executions, a_task
from support.python_calls import Call, Function, Hanging
from tsuzuki.engine.executors.python.executor import PythonExecutor
from tsuzuki.engine.outcome import StopCause, Stopped, Succeeded


def test_the_thread_of_a_run_is_named_after_it(call: Call) -> None:
    name = call(lambda: threading.current_thread().name, run_id=8)[0]
    assert name == Succeeded(result="run-8 hello")
    assert "run-8 hello" not in {thread.name for thread in threading.enumerate()}


def test_no_more_threads_than_allowed_are_used(
    executor: PythonExecutor, functions: dict[str, Function]
) -> None:
    together = threading.Barrier(4)
    busy: list[int] = []
    lock = threading.Lock()

    def meet() -> int:
        with lock:
            busy.append(1)
            most = len(busy)
        together.wait(TIMEOUT_SECONDS)
        with lock:
            busy.pop()
        return most

    functions["meet"] = meet
    executions = Executions(executor)
    executions.start(*(a_task("python", {"function": "meet"}, run_id=n) for n in range(12)))
    results = [outcome.result for _, outcome in executions.wait_for_all()]  # type: ignore[union-attr]
    assert max(results) <= 4


def test_a_hung_function_does_not_keep_the_process_from_ending(tmp_path: Path) -> None:
    (tmp_path / "hanging.py").write_text("import threading\ndef f(): threading.Event().wait()\n")
    script = f"""
import threading
from pathlib import Path
from support.executions import Executions, a_task
from tsuzuki.engine.executors.python.executor import PythonExecutor
from tsuzuki.engine.outcome import StopCause
from tsuzuki.model.clock import SystemClock
executor = PythonExecutor(functions={{}}, base_folder=Path({str(tmp_path)!r}), max_threads=1,
                          kill_grace_seconds=lambda: 0.0, clock=SystemClock())
executions = Executions(executor)
executions.start(a_task("python", {{"function": "hanging:f"}})).stop(StopCause.TIMEOUT)
print(executions.outcome())
"""
    ended = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        check=True,
    )
    assert "TIMEOUT" in ended.stdout


def test_abandoned_threads_do_not_count_against_the_limit(
    executor: PythonExecutor, functions: dict[str, Function]
) -> None:
    functions["hanging"] = hanging = Hanging()
    functions["quick"] = lambda: "done"
    stuck = Executions(executor)
    stuck.start(*(a_task("python", {"function": "hanging"}, run_id=n) for n in range(4)))
    waiting = Executions(executor)
    waiting.start(*(a_task("python", {"function": "quick"}, run_id=n) for n in range(3)))
    hanging.wait_until_started()
    for execution in stuck.started:
        execution.stop(StopCause.TIMEOUT)
    stuck.wait_for_all()
    assert {outcome for _, outcome in waiting.wait_for_all()} == {Succeeded(result="done")}
    hanging.may_go.set()


def test_a_run_that_still_waits_for_a_thread_is_stopped_at_once_and_never_called(
    executor: PythonExecutor, functions: dict[str, Function], hanging: Hanging
) -> None:
    called = threading.Event()
    functions["late"] = called.set
    stuck = Executions(executor)
    stuck.start(*(a_task("python", {"function": "hanging"}, run_id=n) for n in range(4)))
    late = Executions(executor)
    late.start(a_task("python", {"function": "late"}, run_id=9)).stop(StopCause.FENCED)
    assert late.outcome() == Stopped(cause=StopCause.FENCED)
    hanging.may_go.set()
    stuck.wait_for_all()
    assert not called.is_set()
