"""An executor of Python functions, and functions to call with it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.python_calls import Call, Function, Hanging, calls_of, python_executor
from tsuzuki.engine.executors.python.executor import PythonExecutor


@pytest.fixture
def functions() -> dict[str, Function]:
    return {}


@pytest.fixture
def executor(tmp_path: Path, functions: dict[str, Function]) -> Iterator[PythonExecutor]:
    with python_executor(tmp_path, functions) as executor:
        yield executor


@pytest.fixture
def call(executor: PythonExecutor, functions: dict[str, Function]) -> Call:
    return calls_of(executor, functions)


@pytest.fixture
def hanging(functions: dict[str, Function]) -> Iterator[Hanging]:
    functions["hanging"] = hanging = Hanging()
    yield hanging
    hanging.may_go.set()
