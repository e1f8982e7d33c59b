"""What one step of a worker did, for whoever counts it or tells of it."""

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

from tsuzuki.engine.task import Task
from tsuzuki.model.states import RunState
from tsuzuki.store.moves import Ending


@dataclass(kw_only=True)
class Worked:
    """What the database has accepted, refused and given."""

    ended: list[tuple[Task, Ending]] = field(default_factory=list)
    refused: list[Task] = field(default_factory=list)
    started: list[Task] = field(default_factory=list)
    lost: list[Task] = field(default_factory=list)
    retries: int = 0

    @cached_property
    def ends(self) -> Counter[tuple[str, RunState]]:
        """How many runs of which job ended how. Most ended well; those are counted by a name alone."""
        well = [task.spec.name for task, ending in self.ended if ending.state is RunState.SUCCEEDED]
        ends = Counter({(job, RunState.SUCCEEDED): n for job, n in Counter(well).items()})
        if len(well) < len(self.ended):
            badly = [one for one in self.ended if one[1].state is not RunState.SUCCEEDED]
            ends.update((task.spec.name, ending.state) for task, ending in badly)
        return ends

    @property
    def did_something(self) -> bool:
        return bool(self.ended or self.started or self.refused or self.lost)
