"""Executors under the control of a test: one whose executions the test ends, one with real threads."""

import threading
from collections.abc import Callable

from tsuzuki.engine.outcome import Failed, Outcome, StopCause, Stopped, Succeeded
from tsuzuki.engine.task import OnOutcome, RunIO, Task
from tsuzuki.model.states import Reason


class ScriptedExecution:
    """An execution that continues until the test ends it."""

    def __init__(self, task: Task, run_io: RunIO, done: OnOutcome) -> None:
        self.task = task
        self.run_io = run_io
        self.stops: list[tuple[StopCause, bool]] = []
        self._done = done

    def stop(self, cause: StopCause, *, at_once: bool = False) -> None:
        self.stops.append((cause, at_once))

    def succeed(self, result: object = None) -> None:
        self.end(Succeeded(result=result))

    def fail(
        self,
        reason: Reason = Reason.HANDLER_FAILED,
        error: str = "it broke",
        retry_after_seconds: float | None = None,
    ) -> None:
        self.end(Failed(reason=reason, error=error, retry_after_seconds=retry_after_seconds))

    def obey(self) -> None:
        """End as the first stop request demands."""
        self.end(Stopped(cause=self.stops[0][0]))

    def end(self, outcome: Outcome) -> None:
        self._done(self.task, outcome)

    def log(self, text: str, stream: str = "log") -> None:
        self.run_io.log(self.task, stream, text)

    def progress(self, processed: int, total: int | None = None) -> None:
        self.run_io.progress(self.task, processed, total)


class ScriptedExecutor:
    """Records its executions in order."""

    def __init__(self) -> None:
        self.started: list[ScriptedExecution] = []
        self.on_start: Callable[[ScriptedExecution], None] = lambda _execution: None

    def close(self) -> None:
        """Holds no resources."""

    def start(self, task: Task, run_io: RunIO, done: OnOutcome) -> ScriptedExecution:
        execution = ScriptedExecution(task, run_io, done)
        self.started.append(execution)
        self.on_start(execution)
        return execution

    @property
    def last(self) -> ScriptedExecution:
        return self.started[-1]

    def of(self, run_id: int) -> ScriptedExecution:
        """The only execution of a run."""
        (execution,) = [e for e in self.started if e.task.run.id == run_id]
        return execution


Handler = Callable[[Task, threading.Event], Outcome]


class ThreadExecutor:
    """Runs a function of the test in a thread per task. `handler` gets an event that is set when
    it must stop; its result is ignored then."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    def close(self) -> None:
        """Holds no resources."""

    def start(self, task: Task, run_io: RunIO, done: OnOutcome) -> "ThreadExecution":
        return ThreadExecution(task, self._handler, done)


class ThreadExecution:
    def __init__(self, task: Task, handler: Handler, done: OnOutcome) -> None:
        self._task = task
        self._handler = handler
        self._done = done
        self._cause: StopCause | None = None
        self._stopping = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def stop(self, cause: StopCause, *, at_once: bool = False) -> None:
        self._cause = self._cause or cause
        self._stopping.set()

    def _run(self) -> None:
        outcome = self._handler(self._task, self._stopping)
        self._done(self._task, outcome if self._cause is None else Stopped(cause=self._cause))
