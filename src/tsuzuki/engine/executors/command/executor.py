"""Executes commands: programs of any kind, each in a session of its own; their output is the run's log.

A command that has ended leaves no process behind, and no command outlives its worker: see `supervisor`. One
thread of the worker serves them all.
"""

import errno
import os
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path

from tsuzuki.engine.executors.command.environment import Expand, WorkerEnvironment
from tsuzuki.engine.executors.command.execution import CommandExecution
from tsuzuki.engine.executors.command.output import CommandOutput
from tsuzuki.engine.executors.command.spec import CommandSpec, command_spec_for
from tsuzuki.engine.executors.command.supervisor_client import ProcessLock, no_process_lock
from tsuzuki.engine.executors.command.supervisor_pool import SupervisedCommand, SupervisorPool
from tsuzuki.engine.executors.event_loop_thread import EventLoopThread
from tsuzuki.engine.executors.failures import failure_of
from tsuzuki.engine.outcome import Failed, StopCause
from tsuzuki.engine.task import Execution, NotStarted, OnOutcome, RunIO, Task
from tsuzuki.model.errors import ConfigurationError, TsuzukiError, UsageError
from tsuzuki.model.states import Reason

CLOSE_SECONDS_MAX = 5.0


def require_linux() -> None:
    """Raise `ConfigurationError` where commands cannot be supervised: that takes files in memory, and signals that
    do not hit a reused pid."""
    try:
        os.close(os.memfd_create("tsuzuki-check"))
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError) as problem:
        if isinstance(problem, AttributeError) or problem.errno == errno.ENOSYS:
            raise ConfigurationError(
                "executing jobs requires Linux 5.3 or newer",
                hint="Use a Linux machine, a Linux container, or WSL.",
                code="system_unfit",
            ) from problem
        raise


class CommandExecutor:
    """Runs `options["argv"]` in `options["cwd"]` (a path from `base_folder`) with the worker's
    environment, without the variables of `secret_names`, and `options["environment"]`, whose values `expand`
    expands. `more_secrets` reads the secrets that no variable holds, to mask them in the output too. `process_lock` is
    the descriptor of a file that is locked until nothing of this process is left.
    """

    def __init__(
        self,
        *,
        expand: Expand,
        base_folder: Path,
        kill_grace_seconds: Callable[[], float],
        environ: Mapping[str, str] = os.environ,
        secret_names: Collection[str] = (),
        more_secrets: Callable[[], Iterable[str]] = tuple,
        process_lock: ProcessLock = no_process_lock,
    ) -> None:
        self._expand = expand
        self._base_folder = base_folder.absolute()
        self._kill_grace_seconds = kill_grace_seconds
        self._environ = environ
        self._secret_names = frozenset(secret_names)
        self._more_secrets = more_secrets
        self._loop = EventLoopThread(name="tsuzuki-commands")
        self._supervisors = SupervisorPool(
            self._loop, self._secret_names, process_lock=process_lock
        )
        self.renew_deadline = self._supervisors.renew_deadline
        """Called with a moment of the monotonic clock: unless it is renewed, every command ends then, also
        if this process is paused."""
        self._checked: WorkerEnvironment | None = None
        self._live: set[CommandExecution] = set()
        self._changed = threading.Condition()

    def start(self, task: Task, run_io: RunIO, on_outcome: OnOutcome) -> Execution:
        """Start the command. `on_outcome` is never called from within."""
        try:
            worker = self._worker_environment()
            spec = command_spec_for(
                task,
                expand=self._expand,
                worker=worker,
                base_folder=self._base_folder,
            )
            command = self._start_command(spec)
        except UsageError as problem:
            failed = Failed(reason=Reason.ARGUMENTS_INVALID, error=problem.message)
            return self._refuse(task, on_outcome, failed)
        except TsuzukiError as problem:
            return self._refuse(task, on_outcome, failure_of(problem))
        except OSError as problem:
            sentence = f"cannot start the command: {problem.strerror}"
            failed = Failed(reason=Reason.HANDLER_FAILED, error=sentence)
            return self._refuse(task, on_outcome, failed)
        execution = CommandExecution(
            spec=spec,
            supervisor=command.supervisor,
            output=CommandOutput(
                stdout=command.stdout,
                stderr=command.stderr,
                log=partial(run_io.log, task),
                has_space=run_io.has_space,
                mask=worker.mask,
            ),
            kill_grace_seconds=self._kill_grace_seconds,
            loop=self._loop,
            supervisors=self._supervisors,
            ended=lambda execution, outcome: self._ended(
                execution, partial(on_outcome, task, outcome)
            ),
        )
        with self._changed:
            self._live.add(execution)
        self._loop.post(execution.attach)
        return execution

    def close(self) -> None:
        """Kill what still runs, and start nothing more."""
        with self._changed:
            for execution in self._live:
                execution.stop(StopCause.SHUTDOWN, at_once=True)
            self._changed.wait_for(lambda: not self._live, CLOSE_SECONDS_MAX)
        self._loop.close()
        self._supervisors.close()

    def _start_command(self, spec: CommandSpec) -> SupervisedCommand:
        try:
            return self._supervisors.start(spec)
        except OSError:
            spec.discard()
            raise

    def _worker_environment(self) -> WorkerEnvironment:
        environ = dict(self._environ)
        if self._checked is None or self._checked.environ != environ:
            self._checked = WorkerEnvironment(
                environ, secret_names=self._secret_names, more_secrets=self._more_secrets()
            )
        return self._checked

    def _refuse(self, task: Task, on_outcome: OnOutcome, failed: Failed) -> Execution:
        self._loop.post(on_outcome, task, failed)
        return NotStarted()

    def _ended(self, execution: "CommandExecution", deliver: Callable[[], None]) -> None:
        try:
            deliver()
        finally:
            with self._changed:
                self._live.discard(execution)
                self._changed.notify_all()
