"""Executes Python functions: synchronous ones in threads, asynchronous ones together on one event loop. An asynchronous
one that takes the context, and so may open transactions, has a thread with a loop of its own.

Cancellation is cooperative: a function can only be asked to stop. A thread that does not stop is abandoned:
its run ends all the same, and the context is fenced, so that nothing the function still does through it has
any effect. What a function prints goes where the worker prints; only `run.log` reaches the log of the run.
"""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from tsuzuki.engine.executors.event_loop_thread import EventLoopThread
from tsuzuki.engine.executors.python.execution import PythonExecution, PythonRuntime
from tsuzuki.engine.executors.python.functions import Functions
from tsuzuki.engine.executors.python.thread_pool import HandlerThreadPool
from tsuzuki.engine.outcome import StopCause
from tsuzuki.engine.task import Execution, OnOutcome, RunIO, Task
from tsuzuki.model.clock import Clock


class PythonExecutor:
    """Calls `options["function"]`: one of `functions`, or else `package.module:function`. For any
    other handler than `python` it calls the one of `functions` that has the handler's name. A function of `__main__`
    is called only for jobs that this `program` defined."""

    def __init__(
        self,
        *,
        functions: Mapping[str, Callable[..., Any]],
        base_folder: Path,
        max_threads: int,
        kill_grace_seconds: Callable[[], float],
        clock: Clock,
        program: str | None = None,
    ) -> None:
        self._runtime = PythonRuntime(
            functions=Functions(functions, base_folder=base_folder, clock=clock),
            program=program,
            threads=HandlerThreadPool(threads_max=max_threads),
            loop=EventLoopThread(name="tsuzuki-async-handlers"),
            timer=EventLoopThread(name="tsuzuki-handler-timer"),
            kill_grace_seconds=kill_grace_seconds,
            clock=clock,
        )

    @property
    def abandoned_threads(self) -> int:
        """How many threads still execute a function whose run has ended."""
        return self._runtime.threads.abandoned

    def importable(self, packages: Collection[str]) -> frozenset[str]:
        """Those of the top-level packages, and of the registered functions', that could be imported here."""
        return self._runtime.functions.importable(packages)

    def note_missing(self, name: str) -> None:
        """A function could not be loaded in an isolated process."""
        self._runtime.functions.note_missing(name)

    def missing(self) -> frozenset[str]:
        """The functions that could not be loaded lately."""
        return self._runtime.functions.missing()

    def start(self, task: Task, run_io: RunIO, on_outcome: OnOutcome) -> Execution:
        """Start the function. `on_outcome` is never called from within."""
        execution = PythonExecution(task, run_io, self._runtime, on_outcome)
        self._runtime.live.add(execution)
        execution.start()
        return execution

    def close(self) -> None:
        """Abandon what still runs, and start nothing more."""
        for execution in list(self._runtime.live):
            execution.stop(StopCause.SHUTDOWN, at_once=True)
        self._runtime.threads.close()
        self._runtime.loop.close()
        self._runtime.timer.close()
