"""A run that this process executes, and the protocols of executing it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from tsuzuki.engine.outcome import Outcome, StopCause
from tsuzuki.model.job import JobSpec
from tsuzuki.model.run import StartedRun, WorkOrder, key_of_work


class Task(NamedTuple):
    """`run` is as it was read; `started` is what every write for it must name."""

    run: WorkOrder
    started: StartedRun
    spec: JobSpec
    event: Any = None

    @property
    def job_name(self) -> str:
        return self.spec.name

    @property
    def idempotency_key(self) -> str:
        """The key for outside services, so that they can drop duplicates: the same for all attempts."""
        return key_of_work(self.run)


class RunIO(Protocol):
    """What an execution may do to the database. The worker provides it."""

    def log(self, task: Task, stream: str, content: str | bytes) -> None:
        """Append a line, or output of a process: bytes that end with a whole line, without its newline. Never
        blocks, never raises. Ask for space before: it is taken all the same."""

    def has_space(self) -> bool:
        """Whether there is space for more lines."""

    def wait_for_space(self, seconds: float) -> bool:
        """Wait for space, at most that long; whether there is."""

    def progress(self, task: Task, processed: int, total: int | None) -> None:
        """Report how far the run is. Cheap: written with the next batch."""

    def transaction(self, task: Task) -> AbstractContextManager[Any]:
        """A database transaction in which the run is locked as ours; raises `Fenced` if it is not."""


class Execution(Protocol):
    """One execution under way."""

    def stop(self, cause: StopCause, *, at_once: bool = False) -> None:
        """Stop it: gracefully first, by force after the grace period; or by force at once. Does not block;
        the outcome still comes through `on_outcome`, exactly once."""

    def dump_stack(self, tell: Callable[[str], None]) -> None:
        """Tell where its Python function is now, soon and from any thread; never if there is none, or if it does not
        let other threads run. Does not block."""


class NotStarted:
    """An execution that failed before it started: there is nothing to stop, its outcome is on its way."""

    def stop(self, cause: StopCause, *, at_once: bool = False) -> None:
        pass

    def dump_stack(self, tell: Callable[[str], None]) -> None:
        pass


OnOutcome = Callable[[Task, Outcome], None]


class Executor(Protocol):
    """Executes the runs of one kind of handler."""

    def start(self, task: Task, run_io: RunIO, on_outcome: OnOutcome) -> Execution:
        """Start executing. `on_outcome` is called once, from any thread, when it has ended."""

    def close(self) -> None:
        """Stop what still runs, and start nothing more."""
