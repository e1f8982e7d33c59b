"""Python functions: synchronous ones in threads, asynchronous ones together on one event loop.

A function can only be asked to stop. A thread that does not heed it is left behind: its run ends all
the same, and whatever it still does through its context has no effect. What a function prints goes
where the worker prints; only `run.log` reaches the log of the run.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tsuzuki.engine.executors.crew import Crew
from tsuzuki.engine.executors.functions import Functions
from tsuzuki.engine.executors.loop_thread import LoopThread
from tsuzuki.engine.executors.python_execution import PythonExecution, Stage
from tsuzuki.engine.outcome import StopCause
from tsuzuki.engine.task import Done, Execution, Surroundings, Task
from tsuzuki.model.clock import Clock


class PythonExecutor:
    """Calls `options["function"]`: one of `functions`, or else `package.module:function`. For any
    other handler than `python` it calls the one of `functions` that has the handler's name."""

    def __init__(
        self,
        *,
        functions: Mapping[str, Callable[..., Any]],
        base_folder: Path,
        max_threads: int,
        kill_grace_seconds: Callable[[], float],
        clock: Clock,
    ) -> None:
        self._stage = Stage(
            functions=Functions(functions, base_folder=base_folder),
            crew=Crew(threads_max=max_threads),
            loop=LoopThread(name="tsuzuki-async-handlers"),
            alarm=LoopThread(name="tsuzuki-handler-alarm"),
            kill_grace_seconds=kill_grace_seconds,
            clock=clock,
        )

    @property
    def abandoned_threads(self) -> int:
        """How many threads are still busy with a run that was ended without them."""
        return self._stage.crew.left_behind

    def begin(self, task: Task, surroundings: Surroundings, done: Done) -> Execution:
        """Start the function. `done` is never called from within."""
        execution = PythonExecution(task, surroundings, self._stage, done)
        self._stage.live.add(execution)
        execution.begin()
        return execution

    def begins_at_once(self, handler: str) -> bool:  # noqa: ARG002 -- a thread is posted to, whatever it is
        return True

    def close(self) -> None:
        """Give up what still runs, and begin nothing more."""
        for execution in list(self._stage.live):
            execution.stop(StopCause.SHUTDOWN, at_once=True)
        self._stage.crew.close()
        self._stage.loop.close()
        self._stage.alarm.close()
