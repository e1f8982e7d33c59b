"""An executor of isolated functions, and modules for it."""

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.isolated_calls import IsolatedCall, IsolatedExecutions, isolated_executor
from tsuzuki.engine.executors.isolated.executor import IsolatedExecutor

Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a module that functions are imported from."""

    def write(source: str, name: str = "work") -> None:
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(source))

    return write


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[IsolatedExecutor]:
    with isolated_executor(tmp_path) as executor:
        yield executor


@pytest.fixture
def executions(executor: IsolatedExecutor) -> IsolatedExecutions:
    return IsolatedExecutions(executor)


@pytest.fixture
def call(executor: IsolatedExecutor) -> IsolatedCall:
    def call(function: str, **changes: object) -> object:
        executions = IsolatedExecutions(executor)
        executions.begin(function, **changes)
        return executions.outcome(), executions.run_io

    return call  # type: ignore[return-value] -- as the type says
