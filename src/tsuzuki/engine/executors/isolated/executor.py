"""Executes Python functions in child processes, and passes those that stay in this process to another executor."""

import os
import threading
from collections.abc import Callable, Collection, Iterable
from functools import partial
from pathlib import Path

from tsuzuki.engine.executors.command.environment import WorkerEnvironment
from tsuzuki.engine.executors.command.supervisor_client import ProcessLock, no_process_lock
from tsuzuki.engine.executors.command.supervisor_pool import SupervisorPool
from tsuzuki.engine.executors.event_loop_thread import EventLoopThread
from tsuzuki.engine.executors.isolated.child_pool import ChildPool
from tsuzuki.engine.executors.isolated.execution import IsolatedExecution
from tsuzuki.engine.executors.isolated.transactions import ChildDatabase, ChildTransactions
from tsuzuki.engine.outcome import Failed, Outcome, StopCause
from tsuzuki.engine.task import Execution, Executor, OnOutcome, RunIO, Task
from tsuzuki.model.isolation import Isolation, isolation_of
from tsuzuki.model.states import Reason

CLOSE_SECONDS_MAX = 5.0


class IsolatedExecutor:
    """Functions are imported by children from `base_folder` and the import path of this process. `note_missing` is
    told those that could not be loaded."""

    def __init__(
        self,
        *,
        base_folder: Path,
        kill_grace_seconds: Callable[[], float],
        database: ChildDatabase,
        note_missing: Callable[[str], None] = lambda _name: None,
        secret_names: Collection[str] = (),
        more_secrets: Callable[[], Iterable[str]] = tuple,
        process_lock: ProcessLock = no_process_lock,
    ) -> None:
        self._kill_grace_seconds = kill_grace_seconds
        self._database = database
        self._note_missing = note_missing
        self._secret_names = frozenset(secret_names)
        self._more_secrets = more_secrets
        self._loop = EventLoopThread(name="tsuzuki-isolated-handlers")
        self._supervisors = SupervisorPool(
            self._loop, self._secret_names, process_lock=process_lock
        )
        self._children = ChildPool(self._supervisors, base_folder=base_folder.absolute())
        self.renew_deadline = self._supervisors.renew_deadline
        """As of the executor of commands."""
        self._mask: Callable[[bytes], bytes] | None = None
        self._live: set[IsolatedExecution] = set()
        self._changed = threading.Condition()

    def start(self, task: Task, run_io: RunIO, on_outcome: OnOutcome) -> Execution:
        """Start the function. `on_outcome` is never called from within."""
        execution = IsolatedExecution(
            task,
            run_io=run_io,
            children=self._children,
            transactions=ChildTransactions(self._database, task.run.id),
            mask=self._output_mask(),
            kill_grace_seconds=self._kill_grace_seconds,
            loop=self._loop,
            ended=lambda execution, outcome: self._ended(
                execution, outcome, partial(on_outcome, task, outcome)
            ),
        )
        with self._changed:
            self._live.add(execution)
        self._loop.post(execution.begin)
        return execution

    def close(self) -> None:
        """Kill what still runs, and start nothing more."""
        with self._changed:
            for execution in self._live:
                execution.stop(StopCause.SHUTDOWN, at_once=True)
            self._changed.wait_for(lambda: not self._live, CLOSE_SECONDS_MAX)
        self._loop.post(self._children.close)
        self._loop.close()
        self._supervisors.close()

    def _output_mask(self) -> Callable[[bytes], bytes]:
        if self._mask is None:
            self._mask = WorkerEnvironment(
                dict(os.environ),
                secret_names=self._secret_names,
                more_secrets=self._more_secrets(),
            ).mask
        return self._mask

    def _ended(
        self, execution: IsolatedExecution, outcome: Outcome, deliver: Callable[[], None]
    ) -> None:
        if isinstance(outcome, Failed) and outcome.reason is Reason.HANDLER_UNKNOWN:
            self._note_missing(str(execution.task.spec.options.get("function", "")))
        try:
            deliver()
        finally:
            with self._changed:
                self._live.discard(execution)
                self._changed.notify_all()


class ByIsolation:
    """Executes the runs of Python jobs where their jobs say."""

    def __init__(self, *, threads: Executor, processes: Executor) -> None:
        self._executors = {Isolation.THREAD: threads, Isolation.PROCESS: processes}

    def start(self, task: Task, run_io: RunIO, on_outcome: OnOutcome) -> Execution:
        executor = self._executors[isolation_of(task.spec.options)]
        return executor.start(task, run_io, on_outcome)

    def close(self) -> None:
        for executor in self._executors.values():
            executor.close()
