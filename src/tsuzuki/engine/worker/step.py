"""What one step of a worker did, for metrics and logs."""

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

from tsuzuki.engine.local_start import NOT_REFILLED, Refilled
from tsuzuki.engine.outcome import StopCause
from tsuzuki.engine.task import Task
from tsuzuki.engine.worker.output_buffer import BufferedOutput
from tsuzuki.model.states import NOT_COUNTED_REASONS, RunState
from tsuzuki.store.runs.moves import RunEnd


@dataclass(kw_only=True)
class WorkerStep:
    """`ended` and `refused` are ends that the database accepted and refused; `started` now execute here;
    `stopped` execute here, and are to be stopped for a cause; of those `locked` another transaction held
    the row, so that lines, progress or an end was not written yet; `unwritten` are such lines and progress; `polled`
    says that ownership was checked, `refilled` what was assigned in the same transaction. Of the runs in
    `stacks_wanted` somebody wants to see where they are. `problem` is an error after
    which as much as possible was stored, and `replaced` counts what the database refused: see `storing_singly`."""

    ended: list[tuple[Task, RunEnd]] = field(default_factory=list)
    refused: list[Task] = field(default_factory=list)
    started: list[Task] = field(default_factory=list)
    stopped: list[tuple[Task, StopCause]] = field(default_factory=list)
    stacks_wanted: list[int] = field(default_factory=list)
    locked: frozenset[int] = frozenset()
    unwritten: BufferedOutput = field(default_factory=BufferedOutput)
    retries: int = 0
    polled: bool = False
    refilled: Refilled = NOT_REFILLED
    problem: Exception | None = None
    replaced: int = 0

    def add(self, other: "WorkerStep") -> None:
        """What another transaction of the same step has stored."""
        self.ended += other.ended
        self.refused += other.refused
        self.locked |= other.locked
        self.unwritten.add(other.unwritten)
        self.retries += other.retries

    @cached_property
    def ends(self) -> Counter[tuple[str, RunState]]:
        """How many runs of which job ended how, without those that a shutdown of the worker ended: they are repeated.
        Most succeed; those are counted by name alone."""
        good = [task.spec.name for task, end in self.ended if end.state is RunState.SUCCEEDED]
        ends = Counter({(job, RunState.SUCCEEDED): n for job, n in Counter(good).items()})
        if len(good) < len(self.ended):
            bad = [one for one in self.ended if one[1].state is not RunState.SUCCEEDED]
            ends.update(
                (task.spec.name, end.state)
                for task, end in bad
                if end.reason not in NOT_COUNTED_REASONS
            )
        return ends

    @property
    def lost(self) -> list[Task]:
        """They execute here, but this worker does not own them any more."""
        return [task for task, cause in self.stopped if cause is StopCause.FENCED]

    @property
    def did_something(self) -> bool:
        return bool(self.ended or self.started or self.refused or self.lost)
