"""The call of one function for a run: its arguments are filled in, and what it returns or raises becomes an outcome.

In a thread of the worker and in an isolated process alike.
"""

import asyncio
from contextvars import Context
from typing import Any

from tsuzuki.engine.executors.failures import failure_of, traceback_lines, unstorable
from tsuzuki.engine.executors.python.functions import Function, Functions
from tsuzuki.engine.executors.python.own_loop import OwnLoop
from tsuzuki.engine.outcome import SUCCEEDED, Failed, Outcome, StopCause, Stopped, Succeeded
from tsuzuki.engine.run_context import (
    RunContext,
    RunStopped,
    StopSignal,
    log_line,
    set_current_run,
)
from tsuzuki.engine.task import RunIO, Task
from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import NotFound, TsuzukiError, UsageError
from tsuzuki.model.run_limits import stored_result
from tsuzuki.model.states import Reason

STOPPED = Stopped(cause=StopCause.SHUTDOWN)
"""Of a function that stopped when it was asked to. Whoever asked knows the cause."""


class FunctionCall:
    """`own_loop` is set while an async function is executed by `outcome_on_own_loop`."""

    __slots__ = ("_clock", "_functions", "_run_io", "_stop_signal", "_task", "own_loop")

    def __init__(
        self,
        task: Task,
        *,
        run_io: RunIO,
        functions: Functions,
        clock: Clock,
        stop_signal: StopSignal,
    ) -> None:
        self._task = task
        self._run_io = run_io
        self._functions = functions
        self._clock = clock
        self._stop_signal = stop_signal
        self.own_loop: OwnLoop[Outcome] | None = None

    @property
    def name(self) -> str:
        """The name of its function."""
        spec = self._task.spec
        return str(spec.options.get("function", "")) if spec.handler == "python" else spec.handler

    def find(self) -> Function | Failed:
        """The function; may import its module, which can take any time."""
        try:
            return self._functions.find(self.name)
        except NotFound as problem:
            if problem.__cause__ is not None:
                self._log_traceback(problem.__cause__)
            return Failed(reason=Reason.HANDLER_UNKNOWN, error=problem.message)

    def outcome(self, function: Function) -> Outcome:
        """Call a function that is not async."""
        keywords = self._keywords(function)
        if isinstance(keywords, Failed):
            return keywords
        try:
            # A context of its own: its context variables must not leak into the next run of this thread.
            return _succeeded(function, Context().run(self._called, function, keywords))
        except BaseException as problem:  # noqa: BLE001 -- any exception is an outcome
            return self._outcome_of_raising(problem)

    def outcome_on_own_loop(self, function: Function) -> Outcome:
        """Call an async function on an event loop in this thread, for this call alone."""
        own_loop = self.own_loop = OwnLoop[Outcome]()
        if self._stop_signal.is_set:  # read after `own_loop` is set: `cancel` may have missed it
            own_loop.cancel()
        try:
            outcome = own_loop.run(self.outcome_of_awaiting(function))
        except BaseException as problem:  # noqa: BLE001 -- such as too many open files
            return self._outcome_of_raising(problem)
        return outcome or STOPPED

    async def outcome_of_awaiting(self, function: Function) -> Outcome:
        """Await an async function."""
        keywords = self._keywords(function)
        if isinstance(keywords, Failed):
            return keywords
        set_current_run(self._context())
        try:
            return _succeeded(function, await function.call(**keywords))
        except BaseException as problem:  # noqa: BLE001 -- any exception is an outcome
            return self._outcome_of_raising(problem)

    def cancel_own_loop(self) -> None:
        """After the stop signal is set: have an async function with a loop of its own stop."""
        if self.own_loop is not None:
            self.own_loop.cancel()

    def _called(self, function: Function, keywords: dict[str, Any]) -> Any:
        set_current_run(self._context())
        return function.call(**keywords)

    @property
    def running_loop(self) -> asyncio.AbstractEventLoop | None:
        """The loop that is for this call alone, while it runs."""
        return self.own_loop.loop if self.own_loop is not None else None

    def _keywords(self, function: Function) -> dict[str, Any] | Failed:
        try:
            return function.keywords(self._task.run.arguments, self._context)
        except UsageError as problem:
            return Failed(reason=Reason.ARGUMENTS_INVALID, error=problem.message)

    def _context(self) -> RunContext:
        return RunContext(
            task=self._task,
            run_io=self._run_io,
            clock=self._clock,
            stop_signal=self._stop_signal,
        )

    def _outcome_of_raising(self, problem: BaseException) -> Outcome:
        is_cancellation = isinstance(problem, RunStopped | asyncio.CancelledError)
        if self._stop_signal.is_set and is_cancellation:
            return STOPPED
        if not isinstance(problem, TsuzukiError):
            self._log_traceback(problem)
        return failure_of(problem)

    def _log_traceback(self, problem: BaseException) -> None:
        for line in traceback_lines(problem):
            log_line(self._run_io, self._task, self._stop_signal, "stderr", line)


def _succeeded(function: Function, value: Any) -> Outcome:
    """The value as it will be read back: a copy, because the handler may still change its own."""
    if value is None and function.conversion is None:
        return SUCCEEDED
    try:
        result = stored_result(function.result(value))
        return SUCCEEDED if result is None else Succeeded(result=result)
    except UsageError as problem:
        return unstorable(problem)
