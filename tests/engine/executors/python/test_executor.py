"""Python functions as handlers: what becomes of what they return and raise, and many at once."""

import asyncio
import contextvars

import pytest

from support.executions import Executions, a_task
from support.python_calls import Call, Function
from tsuzuki.engine.executors.python.executor import PythonExecutor
from tsuzuki.engine.outcome import Failed, Succeeded
from tsuzuki.engine.run_context import RunContext
from tsuzuki.model.errors import Unreachable, UsageError
from tsuzuki.model.run_limits import RESULT_BYTES_MAX
from tsuzuki.model.states import Reason


def failed(error: str, reason: Reason = Reason.HANDLER_FAILED) -> Failed:
    return Failed(reason=reason, error=error)


# --- what it returns and raises -------------------------------------------------------------------


def test_what_is_returned_is_kept_as_json(call: Call) -> None:
    assert call(lambda: {"numbers": (1, 2)})[0] == Succeeded(result={"numbers": [1, 2]})
    assert call(lambda: {3: None})[0] == Succeeded(result={"3": None})
    assert call(lambda: None)[0] == Succeeded(result=None)


@pytest.mark.parametrize("value", [object(), {1, 2}, float("nan"), b"bytes"])
def test_what_json_cannot_hold_is_a_failure(call: Call, value: object) -> None:
    outcome, _ = call(lambda: value)
    assert isinstance(outcome, Failed)
    assert outcome.reason is Reason.HANDLER_FAILED
    assert "not_json: " in outcome.error


def test_a_result_may_have_a_mebibyte_and_no_more(call: Call) -> None:
    fits = "x" * (RESULT_BYTES_MAX - len('""'))
    assert call(lambda: fits)[0] == Succeeded(result=fits)
    for too_large in (fits + "x", "é" * (RESULT_BYTES_MAX // 2)):
        outcome, _ = call(lambda value=too_large: value)
        assert isinstance(outcome, Failed)
        assert "result_too_large: " in outcome.error
        assert len(outcome.error) < 500


def test_half_of_a_surrogate_pair_in_a_result_is_replaced(call: Call) -> None:
    assert call(lambda: {"file": "a\udcff", "nul": "\x00"})[0] == Succeeded(
        result={"file": "a\ufffd", "nul": "\x00"}
    )


def test_a_failure_says_that_its_result_was_not_stored(call: Call) -> None:
    def fail() -> None:
        problem = UsageError("no such book", code="book")
        problem.result = "x" * RESULT_BYTES_MAX  # type: ignore[attr-defined]
        raise problem

    outcome, _ = call(fail)
    assert isinstance(outcome, Failed)
    assert outcome.result is None
    assert outcome.error.startswith("book: no such book")
    assert "result_too_large: " in outcome.error


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


# --- each by itself -------------------------------------------------------------------------------


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
