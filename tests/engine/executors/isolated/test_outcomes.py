"""Isolated functions: what becomes of what they return and raise."""

from collections.abc import Callable
from queue import SimpleQueue

import pytest

from support.isolated_calls import IsolatedCall, IsolatedExecutions, isolated_task
from tsuzuki.engine.outcome import Failed, StopCause, Stopped, Succeeded
from tsuzuki.model.run_limits import RESULT_BYTES_MAX
from tsuzuki.model.states import Reason

Write = Callable[..., None]


def failed(error: str, reason: Reason = Reason.HANDLER_FAILED) -> Failed:
    return Failed(reason=reason, error=error)


def test_arguments_and_result_are_what_they_are_in_a_thread(
    write: Write, call: IsolatedCall
) -> None:
    write("""
        def add(run, *, left, right=1):
            return {"sum": left + right, "text": run.arguments["text"]} if False else {"sum": left + right}
        def context(run):
            return [run.id, run.job_name, run.attempt, run.event, run.scheduled_for.isoformat(),
                    run.idempotency_key, dict(run.arguments), run.cancelled]
        async def later(run):
            return run.id
        async def plain():
            return "é\\x00\\udcff"
    """)
    assert call("work:add", arguments={"left": 2})[0] == Succeeded(result={"sum": 3})
    outcome, _ = call("work:context", run_id=7, event={"a": [1]}, arguments={"é": None}, attempt=2)
    assert outcome == Succeeded(
        result=[
            7,
            "hello",
            2,
            {"a": [1]},
            "2026-03-01T12:00:00+00:00",
            "run-7",
            {"é": None},
            False,
        ]
    )
    assert call("work:later", run_id=9)[0] == Succeeded(result=9)
    assert call("work:plain")[0] == Succeeded(result="é\x00\ufffd")


def test_a_child_executes_one_function_after_the_other(write: Write, call: IsolatedCall) -> None:
    write("""
        import os
        def who():
            return os.getpid()
        def moves():
            os.chdir("/")
            os.close(1)
            return os.getpid()
    """)
    pids = {call(name)[0] for name in ("work:who", "work:moves", "work:who")}
    assert len(pids) == 1


def test_what_a_function_raises_is_the_error_and_only_its_own_frames_are_logged(
    write: Write, call: IsolatedCall
) -> None:
    write("""
        def outer():
            raise ValueError("no such book")
        def leaves():
            raise SystemExit(3)
    """)
    outcome, run_io = call("work:outer")
    assert outcome == failed("ValueError: no such book")
    log = run_io.of("stderr")
    assert log[0] == "Traceback (most recent call last):"
    assert "in outer" in log[1]
    assert log[-1] == "ValueError: no such book"
    assert len([line for line in log if line.lstrip().startswith("File ")]) == 1
    assert call("work:leaves")[0] == failed("SystemExit: 3")


def test_a_module_that_cannot_be_imported_is_shown_without_our_frames(
    write: Write, call: IsolatedCall
) -> None:
    write("""
        def broken():
            return 1 / 0
        broken()
    """)
    outcome, run_io = call("work:anything")
    assert isinstance(outcome, Failed)
    assert outcome.reason is Reason.HANDLER_UNKNOWN
    assert "ZeroDivisionError" in outcome.error
    files = [line for line in run_io.of("stderr") if line.lstrip().startswith("File ")]
    assert len(files) == 2
    assert all("work.py" in line for line in files)


def test_a_function_that_is_not_there_is_unknown(write: Write, call: IsolatedCall) -> None:
    write("x = 1")
    assert call("work:nothing")[0] == failed(
        "there is no 'nothing' in module 'work'", Reason.HANDLER_UNKNOWN
    )


def test_a_result_may_have_a_mebibyte_and_no_more(write: Write, call: IsolatedCall) -> None:
    write("""
        def returns(size):
            return "x" * size
    """)
    fits = RESULT_BYTES_MAX - len('""')
    assert call("work:returns", arguments={"size": fits})[0] == Succeeded(result="x" * fits)
    outcome, _ = call("work:returns", arguments={"size": 50_000_000})
    assert isinstance(outcome, Failed)
    assert "result_too_large: " in outcome.error


def test_large_arguments_arrive(write: Write, call: IsolatedCall) -> None:
    write("def size(text): return len(text)")
    assert call("work:size", arguments={"text": "x" * 3_000_000})[0] == Succeeded(result=3_000_000)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("os._exit(0)", "the function's process exited with code 0"),
        ("os._exit(3)", "the function's process exited with code 3"),
        ("os.kill(os.getpid(), 15)", "the function's process was ended by signal SIGTERM"),
        ("os.closerange(3, 200); run.log('x')", None),
        ("ctypes.string_at(0)", "the function's process was ended by signal SIGSEGV"),
    ],
)
def test_a_crash_is_the_outcome_of_its_run_alone(
    write: Write, executions: IsolatedExecutions, body: str, error: str | None
) -> None:
    write(f"""
        import ctypes, os
        def crash(run):
            {body}
        def neighbour(run):
            run.wait(0.2)
            return "unharmed"
    """)
    executions.start(
        isolated_task("work:neighbour", run_id=1),
        isolated_task("work:crash", run_id=2),
        isolated_task("work:neighbour", run_id=3),
    )
    outcomes = dict(executions.wait_for_all())
    assert outcomes[1] == outcomes[3] == Succeeded(result="unharmed")
    crashed = outcomes[2]
    assert isinstance(crashed, Failed)
    assert crashed.reason is Reason.CRASHED or error is None
    assert error in (None, crashed.error)


def test_a_segfault_leaves_its_last_lines_in_the_log(write: Write, call: IsolatedCall) -> None:
    write("""
        import ctypes
        def crash():
            print("before")
            ctypes.string_at(0)
    """)
    _, run_io = call("work:crash")
    log = run_io.of("stdout")
    assert log[0] == "before"
    assert "Segmentation fault" in log[1]
    assert any("in crash" in line for line in log)


def test_the_live_stack_is_that_of_the_function_and_of_the_threads_it_has_started(
    write: Write, executions: IsolatedExecutions
) -> None:
    write("""
        import threading
        def inner(run):
            run.log("there")
            run.wait(600)
        def outer(run):
            threading.Thread(target=beside, args=(run,), name="beside").start()
            inner(run)
        def beside(run):
            run.wait(600)
    """)
    execution = executions.begin("work:outer")
    executions.run_io.wait_for(1, "log")
    stacks: SimpleQueue[str] = SimpleQueue()
    execution.dump_stack(stacks.put)
    stack = stacks.get(timeout=20)
    execution.stop(StopCause.CANCELED)
    executions.wait_for_all()
    of_function, of_thread = stack.split("Thread beside:")
    functions = [
        line.rpartition(" in ")[2] for line in of_function.splitlines() if "work.py" in line
    ]
    assert functions == ["outer", "inner"]
    assert "in beside" in of_thread


def test_a_function_that_lets_no_other_thread_run_tells_no_stack_and_is_still_killed(
    write: Write, executions: IsolatedExecutions
) -> None:
    write("""
        import itertools
        def holds(run):
            run.log("there")
            sum(itertools.repeat(1))
    """)
    execution = executions.begin("work:holds")
    executions.run_io.wait_for(1, "log")
    stacks: list[str] = []
    execution.dump_stack(stacks.append)
    execution.stop(StopCause.CANCELED)
    assert executions.outcome() == Stopped(cause=StopCause.CANCELED)
    assert stacks == []
