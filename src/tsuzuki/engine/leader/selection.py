"""The runs that one round assigns: placed in the order of the queue, each once, up to the number of free slots."""

from collections.abc import Sequence

from tsuzuki.engine.leader.placement import Placement
from tsuzuki.store.runs.moves import Assignment
from tsuzuki.store.runs.queue import DueRun


class Selection:
    """Runs may be offered again by a later query of the round: each is placed once."""

    def __init__(self, placement: Placement, *, wanted_max: int) -> None:
        self.placement = placement
        self.free_slots = placement.free_slots()
        self.assignments: list[Assignment] = []
        self._wanted = min(self.free_slots, wanted_max)
        self._seen: set[int] = set()

    @property
    def wants_more(self) -> bool:
        return len(self.assignments) < self._wanted

    def place(self, found: Sequence[DueRun]) -> None:
        seen = self._seen
        for run in found:
            if not self.wants_more:
                return
            if run.ref.id in seen:
                continue
            seen.add(run.ref.id)
            worker_id = self.placement.place(run)
            if worker_id is not None:
                self.assignments.append(Assignment(run.ref, worker_id))
