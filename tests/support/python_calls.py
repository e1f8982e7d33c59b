"""Python functions, called through a real executor."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.executions import TIMEOUT_SECONDS, Executions, RecordingRunIO, a_task
from tsuzuki.engine.executors.python.executor import PythonExecutor
from tsuzuki.engine.outcome import Outcome
from tsuzuki.engine.run_context import RunContext
from tsuzuki.model.clock import SystemClock

Function = Callable[..., Any]
Call = Callable[..., tuple[Outcome, RecordingRunIO]]
HANGING = a_task("python", {"function": "hanging"})


@contextmanager
def python_executor(
    base_folder: Path, functions: dict[str, Function], *, program: str | None = None
) -> Iterator[PythonExecutor]:
    """Afterwards the import path and the imported modules are what they were."""
    path, modules = list(sys.path), set(sys.modules)
    executor = PythonExecutor(
        functions=functions,
        base_folder=base_folder,
        max_threads=4,
        kill_grace_seconds=lambda: 0.2,
        clock=SystemClock(),
        program=program,
    )
    yield executor
    executor.close()
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def calls_of(executor: PythonExecutor, functions: dict[str, Function]) -> Call:
    """Calls a function, or the one of that name, as a run of its own. Answers its outcome and output."""

    def call(
        function: Function | str, *, program: str | None = None, **changes: Any
    ) -> tuple[Outcome, RecordingRunIO]:
        name = function if isinstance(function, str) else "handed-in"
        if not isinstance(function, str):
            functions[name] = function
        executions = Executions(executor)
        executions.start(a_task("python", {"function": name, "program": program}, **changes))
        return executions.outcome(), executions.run_io

    return call


class Hanging:
    """A function that hangs until the test releases it."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self.may_go = threading.Event()
        self.context: RunContext | None = None

    def __call__(self, run: RunContext) -> str:
        self.context = run
        self.started.set()
        self.may_go.wait(TIMEOUT_SECONDS)
        return "too late"

    def wait_until_started(self) -> RunContext:
        assert self.started.wait(TIMEOUT_SECONDS)
        assert self.context is not None
        return self.context
