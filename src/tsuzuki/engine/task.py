"""A run that is ours to execute, with all that its execution needs."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from tsuzuki.engine.outcome import Outcome, StopCause
from tsuzuki.model.job import JobSpec
from tsuzuki.model.run import Started, WorkOrder


class Task(NamedTuple):
    """`run` is as it was read; `started` is what every write must name."""

    run: WorkOrder
    started: Started
    spec: JobSpec
    event: Any = None

    @property
    def job_name(self) -> str:
        return self.spec.name

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt at the same piece of work: what an outward act is keyed by."""
        return f"run-{self.run.origin_id or self.run.id}"


class Surroundings(Protocol):
    """What an execution may do to the world of the engine. The worker provides it."""

    def log(self, task: Task, stream: str, text: str) -> None:
        """Append a line. Never blocks for long, never raises; what exceeds the cap is dropped."""

    def progress(self, task: Task, processed: int, total: int | None) -> None:
        """Show how far the run is. Cheap: written with the next batch."""

    def transaction(self, task: Task) -> AbstractContextManager[Any]:
        """A database transaction in which the run is known to be ours; raises `Fenced` if not."""


class Execution(Protocol):
    """One execution under way."""

    def stop(self, cause: StopCause, *, at_once: bool = False) -> None:
        """End it: politely first, then by force after the grace; or by force at once. Answers
        immediately; the outcome still comes through `done`, exactly once."""


Done = Callable[[Task, Outcome], None]


class Executor(Protocol):
    """One kind of work."""

    def begin(self, task: Task, surroundings: Surroundings, done: Done) -> Execution:
        """Start executing. `done` is called once, from any thread, when it has ended."""

    def begins_at_once(self, handler: str) -> bool:
        """Whether `begin` only passes its tasks on, and so may be called by whoever must not wait."""

    def close(self) -> None:
        """Give up whatever still runs, and begin nothing more."""
