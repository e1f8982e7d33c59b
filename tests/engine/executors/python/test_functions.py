"""Functions as handlers: how they are found by name, and how their parameters are filled."""

import asyncio
import functools
import sys
from pathlib import Path
from typing import Any

import pytest

from support.moving_clock import NOON, MovingClock
from support.python_calls import Call, Function, calls_of, python_executor
from tsuzuki.engine.executors.python.executor import PythonExecutor
from tsuzuki.engine.executors.python.functions import MISSING_SECONDS, Functions
from tsuzuki.engine.outcome import Failed, Succeeded
from tsuzuki.engine.run_context import RunContext
from tsuzuki.model.errors import NotFound
from tsuzuki.model.states import Reason


def failed(error: str, reason: Reason = Reason.HANDLER_FAILED) -> Failed:
    return Failed(reason=reason, error=error)


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
        (lambda x, z: 0, {}, "requires `x`, `z`; its arguments are: `x`, `z`"),
        (lambda x, y=1: 0, {"x": 1, "q": 2}, "does not accept `q`; its arguments are: `x`, `y`"),
        (
            lambda run, x: 0,
            {"q": 2},
            "requires `x` and does not accept `q`; its arguments are: `x`",
        ),
        (lambda: 0, {"x": 1}, "does not accept `x`; its arguments are: none"),
        (asynchronous, {}, "requires `x`; its arguments are: `x`, `y`"),
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
    assert "cannot be passed by name" in outcome.error


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
        ("nothing", "'nothing' is not a function path; write package.module:function"),
        ("", "'' is not a function path; write package.module:function"),
        (
            "no_such_module:f",
            "cannot import 'no_such_module': ModuleNotFoundError: No module named 'no_such_module'",
        ),
        ("os.path:missing", "there is no 'missing' in module 'os.path'"),
        ("os:sep", "'os:sep' is not a function"),
        ("exits:f", "cannot import 'exits': SystemExit: 3"),
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
        "cannot import 'breaking': ValueError: half way", Reason.HANDLER_UNKNOWN
    )
    assert any(f'"{module}", line 2' in line for line in run_io.of("stderr"))
    module.write_text("def f(): return 'mended'\n")
    assert call("breaking:f")[0] == Succeeded(result="mended")


def test_packages_are_found_without_being_imported(
    executor: PythonExecutor, tmp_path: Path
) -> None:
    (tmp_path / "breaking.py").write_text("raise ValueError('imported')\n")
    named = {"breaking", "no_such_package", "tsuzuki", "__main__"}
    assert executor.importable(named) >= {"breaking", "tsuzuki"}
    assert not executor.importable(named) & {"no_such_package", "__main__"}
    assert "breaking" not in sys.modules


def test_a_package_in_a_folder_that_is_made_later_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as one of a volume that is mounted after the start of the worker."""
    clock, folder = MovingClock(NOON), tmp_path / "later"
    monkeypatch.setattr(sys, "path", [*sys.path, str(folder)])
    functions = Functions({}, base_folder=tmp_path, clock=clock)
    assert functions.importable({"comes_later"}) == frozenset()
    folder.mkdir()
    (folder / "comes_later.py").touch()
    clock.advance(MISSING_SECONDS)
    assert functions.importable({"comes_later"}) == {"comes_later"}


def test_packages_of_registered_functions_count_as_found(tmp_path: Path) -> None:
    functions: dict[str, Function] = {"made.up:f": lambda: 0, "books": lambda: 0}
    with python_executor(tmp_path, functions) as executor:
        assert executor.importable(()) == {"made"}


def test_a_function_that_could_not_be_loaded_is_missing_for_a_while(tmp_path: Path) -> None:
    clock = MovingClock(NOON)
    functions = Functions({}, base_folder=tmp_path, clock=clock)
    with pytest.raises(NotFound):
        functions.find("os.path:missing")
    assert functions.missing() == {"os.path:missing"}
    clock.advance(MISSING_SECONDS)
    assert functions.missing() == frozenset()


@pytest.mark.parametrize("of_program", ["/another.py", None])
def test_a_function_in_the_main_module_of_another_program_is_not_called(
    tmp_path: Path, of_program: str | None
) -> None:
    functions: dict[str, Function] = {"__main__:work": lambda: "ours"}
    with python_executor(tmp_path, functions, program="/ours.py") as executor:
        call = calls_of(executor, functions)
        outcome, _ = call("__main__:work", program=of_program)
        assert isinstance(outcome, Failed)
        assert outcome.reason is Reason.HANDLER_UNKNOWN
        assert call("__main__:work", program="/ours.py")[0] == Succeeded(result="ours")
