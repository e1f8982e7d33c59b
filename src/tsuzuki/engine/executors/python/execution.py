"""The execution of one Python function: started in a thread or on the shared event loop, ended exactly once."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from tsuzuki.engine.executors.event_loop_thread import EventLoopThread
from tsuzuki.engine.executors.python.call import FunctionCall
from tsuzuki.engine.executors.python.functions import Function, Functions
from tsuzuki.engine.executors.python.loop_watch import LoopWatch
from tsuzuki.engine.executors.python.stacks import stack_of, stack_of_task
from tsuzuki.engine.executors.python.thread_pool import HandlerThreadPool
from tsuzuki.engine.log import log
from tsuzuki.engine.outcome import Failed, Outcome, StopCause, Stopped
from tsuzuki.engine.run_context import StopSignal
from tsuzuki.engine.task import OnOutcome, RunIO, Task
from tsuzuki.model.abilities import MAIN_MODULE
from tsuzuki.model.clock import Clock
from tsuzuki.model.states import Reason


@dataclass(frozen=True, kw_only=True)
class PythonRuntime:
    """Where functions are called; `loop` is shared by async ones that take no context. `timer` runs no handlers, so
    that none can block it; `live` are the executions that have not ended, and `loop_watch` looks whether one of them
    blocks the loop."""

    functions: Functions
    threads: HandlerThreadPool
    loop: EventLoopThread
    timer: EventLoopThread
    kill_grace_seconds: Callable[[], float]
    clock: Clock
    program: str | None = None
    live: "set[PythonExecution]" = field(default_factory=set)
    loop_watch: LoopWatch = field(init=False)

    def __post_init__(self) -> None:
        watch = LoopWatch(
            watched=self.loop,
            timer=self.timer,
            clock=self.clock,
            is_needed=lambda: any(one.is_on_loop for one in [*self.live]),
            on_blocked=self._on_blocked,
        )
        object.__setattr__(self, "loop_watch", watch)

    def _on_blocked(self, task: "asyncio.Task[Any]", stack: str) -> None:
        by_name = {one.name: one for one in [*self.live]}
        blocking = by_name.get(task.get_name())
        log.warning("an async function blocks the event loop", task=task.get_name(), stack=stack)
        if blocking is not None:
            blocking.tell_blocked(stack)


class _Phase(Enum):
    WAITING = auto()
    IN_THREAD = auto()
    ON_LOOP = auto()
    ENDED = auto()


class PythonExecution:
    """Three may race to end it: the function, a caller of `stop`, the timer. The first one does."""

    __slots__ = (
        "_call",
        "_cause",
        "_lock",
        "_on_outcome",
        "_phase",
        "_run_io",
        "_running",
        "_runtime",
        "_stop_signal",
        "_task",
        "_thread_id",
    )

    def __init__(
        self, task: Task, run_io: RunIO, runtime: PythonRuntime, on_outcome: OnOutcome
    ) -> None:
        self._task = task
        self._run_io = run_io
        self._runtime = runtime
        self._on_outcome = on_outcome
        self._stop_signal = StopSignal()
        self._lock = threading.Lock()
        self._phase = _Phase.WAITING
        self._cause: StopCause | None = None
        self._running: asyncio.Task[None] | None = None
        self._thread_id: int | None = None
        self._call = FunctionCall(
            task,
            run_io=run_io,
            functions=runtime.functions,
            clock=runtime.clock,
            stop_signal=self._stop_signal,
        )

    @property
    def name(self) -> str:
        """Of the thread or task that executes it."""
        return f"run-{self._task.run.id} {self._task.job_name}"

    @property
    def is_on_loop(self) -> bool:
        return self._phase is _Phase.ON_LOOP

    def dump_stack(self, tell: Callable[[str], None]) -> None:
        """Tell where the function is now; nothing if it is not being executed."""
        running = self._running
        if self._phase is _Phase.IN_THREAD:
            tell(stack_of(self._thread_id, self._call.running_loop))
        elif self._phase is _Phase.ON_LOOP and running is not None:
            tell(stack_of_task(running))

    def tell_blocked(self, stack: str) -> None:
        """It blocks the event loop: say so in the run's log."""
        lines = [
            "this function blocks the event loop that it shares with others for more than a second, at:",
            *stack.splitlines(),
        ]
        for line in lines:
            self._stop_signal.unless_fenced(self._run_io.log, self._task, "stderr", line)

    def start(self) -> None:
        """Start the call: on the shared loop if the function is known to be for it, else in a thread, which first
        looks the function up."""
        function = self._runtime.functions.known(self._call.name)
        if function is not None and _shares_loop(function) and not self._is_other_program:
            self._runtime.loop.post(self._enter_loop, function)
        else:
            self._runtime.threads.do(self._enter_thread)

    def stop(self, cause: StopCause, *, at_once: bool = False) -> None:
        with self._lock:
            if self._phase is _Phase.ENDED:
                return
            is_first = self._cause is None
            self._cause = cause = self._cause or cause
            phase = self._phase
            if phase is _Phase.WAITING:
                self._phase = _Phase.ENDED
        self._stop_signal.set()
        # Delivered by the timer's thread, to avoid a deadlock: the caller may hold a lock that `on_outcome` needs.
        if phase is _Phase.WAITING:
            self._runtime.timer.post(self._deliver, Stopped(cause=cause))
            return
        if phase is _Phase.ON_LOOP:
            self._runtime.loop.post(self._cancel)
        else:
            self._call.cancel_own_loop()
        if at_once:
            self._runtime.timer.post(self._abandon, cause)
        elif is_first:
            self._runtime.timer.later(self._runtime.kill_grace_seconds(), self._abandon, cause)

    # --- in a thread ----------------------------------------------------------------------------

    def _enter_thread(self) -> None:
        if not self._move(_Phase.IN_THREAD):
            return
        thread = threading.current_thread()
        self._thread_id = thread.ident
        idle_name, thread.name = thread.name, self.name
        if not self._perform():
            self._runtime.threads.reclaim()
        thread.name = idle_name

    def _perform(self) -> bool:
        """Look the function up, and call it or pass it to the loop; false if the run was abandoned before."""
        if self._is_other_program:
            program = self._task.spec.options.get("program")
            error = f"{self._call.name!r} belongs to another program: {program}"
            return self._end(Failed(reason=Reason.HANDLER_UNKNOWN, error=error))
        function = self._call.find()
        if isinstance(function, Failed):
            return self._end(function)
        if not function.is_async:
            return self._end(self._call.outcome(function))
        if not _shares_loop(function):
            return self._end(self._call.outcome_on_own_loop(function))
        if not self._move(_Phase.WAITING):
            return False
        self._runtime.loop.post(self._enter_loop, function)
        return True

    # --- on the shared loop ---------------------------------------------------------------------

    def _enter_loop(self, function: Function) -> None:
        if self._cause is not None:  # asked to stop while the function was looked up
            self._abandon(self._cause)
            return
        coroutine = self._await(function)
        self._running = asyncio.get_running_loop().create_task(coroutine, name=self.name)
        # ON_LOOP only now, so that `stop` cancels the task after its first step: a task that is cancelled
        # before that never runs, and so would deliver no outcome.
        if self._move(_Phase.ON_LOOP):
            self._runtime.loop_watch.begin()
        else:
            self._running.cancel()

    async def _await(self, function: Function) -> None:
        self._end(await self._call.outcome_of_awaiting(function))

    def _cancel(self) -> None:
        if self._running is not None:
            self._running.cancel()

    # --- the end --------------------------------------------------------------------------------

    def _move(self, phase: _Phase) -> bool:
        """Go on to the next phase; false if it has ended meanwhile."""
        with self._lock:
            if self._phase is _Phase.ENDED:
                return False
            self._phase = phase
            return True

    def _end(self, outcome: Outcome) -> bool:
        """The function has ended with this outcome; false if the run was abandoned before."""
        if not self._move(_Phase.ENDED):
            return False
        self._deliver(outcome)
        return True

    def _abandon(self, cause: StopCause) -> None:
        """End the run although the function has not ended."""
        with self._lock:
            if self._phase is _Phase.ENDED:
                return
            if self._phase is _Phase.IN_THREAD:
                self._runtime.threads.abandon()
            self._phase = _Phase.ENDED
        self._deliver(Stopped(cause=cause))

    def _deliver(self, outcome: Outcome) -> None:
        # Once it was asked to stop, its own outcome does not count: it may have left work undone.
        self._stop_signal.fence()
        self._runtime.live.discard(self)
        self._on_outcome(self._task, outcome if self._cause is None else Stopped(cause=self._cause))

    @property
    def _is_other_program(self) -> bool:
        """Its function would be found by name here, but is another one. The leader assigns no such run, unless its
        job was changed at that moment."""
        if not self._call.name.startswith(f"{MAIN_MODULE}:"):
            return False
        return self._task.spec.options.get("program") != self._runtime.program


def _shares_loop(function: Function) -> bool:
    """Whether it is async and takes no context, and so cannot open a transaction that would block the loop."""
    return function.is_async and not function.contexts
