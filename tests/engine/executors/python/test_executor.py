"""Python functions as handlers: how they are found and called, and what becomes of what they do."""

import asyncio
import contextvars
import functools
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.executions import NOON, TIMEOUT_SECONDS, Executions, RecordingRunIO, a_task
from tsuzuki.engine.executors.python.executor import PythonExecutor
from tsuzuki.engine.outcome import Failed, Outcome, Succeeded
from tsuzuki.engine.run_context import RunContext
from tsuzuki.model.clock import SystemClock
from tsuzuki.model.errors import Unreachable
from tsuzuki.model.states import Reason

Function = Callable[..., Any]
Call = Callable[..., tuple[Outcome, RecordingRunIO]]


@pytest.fixture
def functions() -> dict[str, Function]:
    return {}


@pytest.fixture
def executor(tmp_path: Path, functions: dict[str, Function]) -> Iterator[PythonExecutor]:
    path, modules = list(sys.path), set(sys.modules)
    executor = PythonExecutor(
        functions=functions,
        base_folder=tmp_path,
        max_threads=4,
        kill_grace_seconds=lambda: 0.2,
        clock=SystemClock(),
    )
    yield executor
    executor.close()
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


@pytest.fixture
def call(executor: PythonExecutor, functions: dict[str, Function]) -> Call:
    def call(function: Function | str, **changes: Any) -> tuple[Outcome, RecordingRunIO]:
        name = function if isinstance(function, str) else "handed-in"
        if not isinstance(function, str):
            functions[name] = function
        executions = Executions(executor)
        executions.start(a_task("python", {"function": name}, **changes))
        return executions.outcome(), executions.run_io

    return call


def failed(error: str, reason: Reason = Reason.HANDLER_FAILED) -> Failed:
    return Failed(reason=reason, error=error)


# --- forms ----------------------------------------------------------------------------------------


async def asynchronous(run: RunContext, *, x: int, y: int = 1) -> list[int]:
    await asyncio.sleep(0)
    return [run.id, x, y]


class Instance:
    def __call__(self, x: int) -> int:
        return x

    def method(self, x: int) -> int:
        return -x


class AsyncInstance:
    async def __call__(self, x: int) -> int:
        return x


@pytest.mark.parametrize(
    ("function", "arguments", "result"),
    [
        (lambda: "none", {}, "none"),
        (lambda run: [run.id, dict(run.arguments)], {"x": 5}, [1, {"x": 5}]),
        (lambda x, y=1: [x, y], {"x": 5}, [5, 1]),
        (lambda x, y=1: [x, y], {"x": 5, "y": 6}, [5, 6]),
        (lambda run, *, x, y=1: [run.id, x, y], {"x": 5}, [1, 5, 1]),
        (lambda x, run: [run.id, x], {"x": 5}, [1, 5]),
        (asynchronous, {"x": 5}, [1, 5, 1]),
        (functools.partial(lambda x, y: [x, y], y=2), {"x": 5}, [5, 2]),
        (Instance(), {"x": 5}, 5),
        (Instance().method, {"x": 5}, -5),
        (AsyncInstance(), {"x": 5}, 5),
    ],
)
def test_a_function_is_called_in_its_own_form(
    call: Call, function: Function, arguments: dict[str, Any], result: Any
) -> None:
    assert call(function, arguments=arguments)[0] == Succeeded(result=result)


def test_a_parameter_of_any_name_gets_the_context_if_it_is_annotated(call: Call) -> None:
    def evaluated(context: RunContext) -> int:
        return context.id

    def not_evaluated(context: Any) -> int:
        return int(context.id)

    assert call(evaluated)[0] == Succeeded(result=1)
    not_evaluated.__annotations__["context"] = "tsuzuki.RunContext"
    assert call(not_evaluated, run_id=2)[0] == Succeeded(result=2)


def test_a_function_that_was_replaced_is_not_called_again(call: Call) -> None:
    assert call(lambda: "old")[0] == Succeeded(result="old")
    assert call(lambda: "new")[0] == Succeeded(result="new")


@pytest.mark.parametrize(
    ("function", "arguments", "error"),
    [
        (lambda x, z: 0, {}, "is missing `x`, `z`; it takes `x`, `z`"),
        (lambda x, y=1: 0, {"x": 1, "q": 2}, "does not take `q`; it takes `x`, `y`"),
        (lambda run, x: 0, {"q": 2}, "is missing `x` and does not take `q`; it takes `x`"),
        (lambda: 0, {"x": 1}, "does not take `x`; it takes no arguments"),
        (asynchronous, {}, "is missing `x`; it takes `x`, `y`"),
    ],
)
def test_arguments_that_do_not_fit_are_named(
    call: Call, function: Function, arguments: dict[str, Any], error: str
) -> None:
    outcome, _ = call(function, arguments=arguments)
    assert outcome == failed(f"handed-in {error}", Reason.ARGUMENTS_INVALID)


@pytest.mark.parametrize(
    "function", [lambda *words: 0, lambda **named: 0, lambda x, /: 0], ids=["args", "kwargs", "pos"]
)
def test_parameters_that_cannot_be_filled_by_name_are_refused(
    call: Call, function: Function
) -> None:
    outcome, _ = call(function)
    assert isinstance(outcome, Failed)
    assert outcome.reason is Reason.HANDLER_UNKNOWN
    assert "cannot be filled by name" in outcome.error


# --- finding --------------------------------------------------------------------------------------


def test_a_function_is_imported_from_the_workspace(call: Call, tmp_path: Path) -> None:
    (tmp_path / "jobs_here.py").write_text(
        "class Group:\n    @staticmethod\n    def inner(x): return x + 1\n"
        "async def later(): return 'later'\n"
    )
    assert call("jobs_here:Group.inner", arguments={"x": 1})[0] == Succeeded(result=2)
    assert call("jobs_here:later")[0] == Succeeded(result="later")
    assert call("jobs_here:later", run_id=2)[0] == Succeeded(result="later")


def test_a_file_in_the_workspace_cannot_take_the_place_of_a_module(
    executor: PythonExecutor, tmp_path: Path
) -> None:
    assert sys.path[-1] == str(tmp_path)
    assert sys.path.count(str(tmp_path)) == 1


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("nothing", "'nothing' does not name a function: write package.module:function"),
        ("", "'' does not name a function: write package.module:function"),
        (
            "no_such_module:f",
            "'no_such_module' could not be imported: "
            "ModuleNotFoundError: No module named 'no_such_module'",
        ),
        ("os.path:missing", "there is no 'missing' in the module 'os.path'"),
        ("os:sep", "'os:sep' is not a function"),
        ("exits:f", "'exits' could not be imported: SystemExit: 3"),
    ],
)
def test_a_function_that_cannot_be_found_is_an_unknown_handler(
    call: Call, tmp_path: Path, name: str, error: str
) -> None:
    (tmp_path / "exits.py").write_text("raise SystemExit(3)")
    assert call(name)[0] == failed(error, Reason.HANDLER_UNKNOWN)


def test_a_module_that_breaks_shows_where_and_is_tried_again_when_mended(
    call: Call, tmp_path: Path
) -> None:
    module = tmp_path / "breaking.py"
    module.write_text("def f(): return 'mended'\nraise ValueError('half way')\n")
    outcome, run_io = call("breaking:f")
    assert outcome == failed(
        "'breaking' could not be imported: ValueError: half way", Reason.HANDLER_UNKNOWN
    )
    assert any(f'"{module}", line 2' in line for line in run_io.of("stderr"))
    module.write_text("def f(): return 'mended'\n")
    assert call("breaking:f")[0] == Succeeded(result="mended")


# --- what it returns and raises -------------------------------------------------------------------


def test_what_is_returned_is_kept_as_json(call: Call) -> None:
    assert call(lambda: {"numbers": (1, 2)})[0] == Succeeded(result={"numbers": [1, 2]})
    assert call(lambda: {3: None})[0] == Succeeded(result={"3": None})
    assert call(lambda: None)[0] == Succeeded(result=None)


@pytest.mark.parametrize("value", [object(), {1, 2}, float("nan"), b"bytes", "\ud800"])
def test_what_json_cannot_hold_is_a_failure(call: Call, value: object) -> None:
    outcome, _ = call(lambda: value)
    assert isinstance(outcome, Failed)
    assert outcome.reason is Reason.HANDLER_FAILED
    assert outcome.error.startswith("the function's result cannot be stored: this value cannot")


def test_an_exception_is_the_error_and_its_own_frames_are_logged(call: Call) -> None:
    def outer() -> None:
        raise ValueError("no such book")

    outcome, run_io = call(outer)
    assert outcome == failed("ValueError: no such book")
    log = run_io.of("stderr")
    assert log[0] == "Traceback (most recent call last):"
    assert log[-1] == "ValueError: no such book"
    assert len([line for line in log if line.lstrip().startswith("File ")]) == 1
    assert "in outer" in log[1]


def test_an_exception_of_an_async_function_is_reported_the_same_way(call: Call) -> None:
    async def outer() -> None:
        await asyncio.sleep(0)
        raise ValueError("no such book")

    outcome, run_io = call(outer)
    assert outcome == failed("ValueError: no such book")
    assert "in outer" in run_io.of("stderr")[1]


def test_an_error_of_ours_keeps_its_code_its_hint_and_its_retry_after(call: Call) -> None:
    def busy() -> None:
        raise Unreachable("the library is closed", hint="Come back.", retry_after_seconds=90.0)

    outcome, run_io = call(busy)
    assert outcome == Failed(
        reason=Reason.HANDLER_FAILED,
        error="unreachable: the library is closed (Come back.)",
        retry_after_seconds=90.0,
    )
    assert run_io.lines == []


def test_what_the_database_did_not_confirm_is_not_the_functions_fault(call: Call) -> None:
    def store() -> None:
        raise Unreachable("the database does not answer", code="database", retry_after_seconds=1.0)

    outcome, _ = call(store)
    assert outcome == Failed(
        reason=Reason.NOT_CONFIRMED,
        error="database: the database does not answer",
        retry_after_seconds=1.0,
    )


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_a_function_cannot_end_the_worker(call: Call, kind: type[BaseException]) -> None:
    def synchronous() -> None:
        raise kind("3")

    async def asynchronous() -> None:
        await asyncio.sleep(0)
        raise kind("3")

    assert call(synchronous)[0] == failed(f"{kind.__name__}: 3")
    assert call(asynchronous)[0] == failed(f"{kind.__name__}: 3")
    assert call(lambda: "alive")[0] == Succeeded(result="alive")


def test_a_task_that_exits_does_not_end_the_loop_of_the_others(
    executor: PythonExecutor, functions: dict[str, Function]
) -> None:
    async def leaves() -> None:
        raise SystemExit(3)

    async def starts_one() -> str:
        task = asyncio.get_running_loop().create_task(leaves())
        await asyncio.wait([task])
        return str(type(task.exception()).__name__)

    functions["starts_one"] = starts_one
    executions = Executions(executor)
    executions.start(*(a_task("python", {"function": "starts_one"}, run_id=n) for n in range(3)))
    assert {outcome for _, outcome in executions.wait_for_all()} == {Succeeded(result="SystemExit")}


def test_an_exception_that_cannot_be_printed_is_a_failure_all_the_same(call: Call) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def fails() -> None:
        raise Mute

    assert call(fails)[0] == failed("Mute: (its message cannot be printed)")


def test_endless_recursion_is_a_failure_with_a_short_log(call: Call) -> None:
    def deeper() -> int:
        return deeper()

    outcome, run_io = call(deeper)
    assert isinstance(outcome, Failed)
    assert outcome.error.startswith("RecursionError: ")
    assert len(run_io.of("stderr")) < 70


# --- the context ----------------------------------------------------------------------------------


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


def test_the_thread_of_a_run_is_named_after_it(call: Call) -> None:
    name = call(lambda: threading.current_thread().name, run_id=8)[0]
    assert name == Succeeded(result="run-8 hello")
    assert "run-8 hello" not in {thread.name for thread in threading.enumerate()}


def test_what_a_function_binds_does_not_reach_the_next_one(call: Call) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="clean")

    def bind() -> str:
        before = variable.get()
        variable.set("dirty")
        return before

    async def bind_async() -> str:
        return bind()

    for function in (bind, bind_async):
        assert [call(function)[0] for _ in range(3)] == [Succeeded(result="clean")] * 3


# --- many -----------------------------------------------------------------------------------------


def test_five_hundred_at_once_all_end_once(
    executor: PythonExecutor, functions: dict[str, Function]
) -> None:
    async def asynchronous(run: RunContext) -> int:
        await asyncio.sleep(0)  # a turn for the others, not a time
        return run.id

    functions.update(sync=lambda run: run.id, asynchronous=asynchronous)
    executions = Executions(executor)
    executions.start(
        *(
            a_task("python", {"function": ("sync", "asynchronous")[n % 2]}, run_id=n)
            for n in range(500)
        )
    )
    assert dict(executions.wait_for_all()) == {n: Succeeded(result=n) for n in range(500)}


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
