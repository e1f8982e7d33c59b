"""What one step of a worker did, for metrics and logs."""

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

from tsuzuki.engine.task import Task
from tsuzuki.engine.worker.local_leader import NOT_REFILLED, Refilled
from tsuzuki.model.states import RunState
from tsuzuki.store.runs.moves import RunEnd


@dataclass(kw_only=True)
class WorkerStep:
    """`ended` and `refused` are ends that the database accepted and refused; `started` now execute here;
    `lost` execute here, but this worker does not own them any more; of those `locked` another transaction held
    the row, so that progress or an end was not written yet; `polled` says that ownership was checked, `refilled`
    what was assigned in the same transaction."""

    ended: list[tuple[Task, RunEnd]] = field(default_factory=list)
    refused: list[Task] = field(default_factory=list)
    started: list[Task] = field(default_factory=list)
    lost: list[Task] = field(default_factory=list)
    locked: frozenset[int] = frozenset()
    retries: int = 0
    polled: bool = False
    refilled: Refilled = NOT_REFILLED

    @cached_property
    def ends(self) -> Counter[tuple[str, RunState]]:
        """How many runs of which job ended how. Most succeed; those are counted by name alone."""
        good = [task.spec.name for task, end in self.ended if end.state is RunState.SUCCEEDED]
        ends = Counter({(job, RunState.SUCCEEDED): n for job, n in Counter(good).items()})
        if len(good) < len(self.ended):
            bad = [one for one in self.ended if one[1].state is not RunState.SUCCEEDED]
            ends.update((task.spec.name, end.state) for task, end in bad)
        return ends

    @property
    def did_something(self) -> bool:
        return bool(self.ended or self.started or self.refused or self.lost)
