"""Counts of ended runs: by outcome, by duration, and the total of their durations."""

from collections import Counter
from dataclasses import dataclass, field

from tsuzuki.model.durations import DURATIONS_MIN, NEVER_STARTED, percentile
from tsuzuki.model.states import Outcome
from tsuzuki.store.rollups import HourCount


@dataclass(kw_only=True)
class Outcomes:
    """How many runs ended how, and how long they took. Those that are kept for many answers are only read."""

    runs: Counter[Outcome] = field(default_factory=Counter)
    buckets: Counter[int] = field(default_factory=Counter)
    seconds: float = 0.0
    _durations: dict[float, float | None] = field(default_factory=dict, repr=False, compare=False)

    def add(self, count: HourCount) -> None:
        self.runs[count.outcome] += count.runs
        self.buckets[count.bucket] += count.runs
        self.seconds += count.seconds
        self._durations.clear()

    def merge(self, other: "Outcomes") -> None:
        self.runs.update(other.runs)
        self.buckets.update(other.buckets)
        self.seconds += other.seconds
        self._durations.clear()

    def duration(self, share: float) -> float | None:
        """The seconds that `share` of the started runs did not exceed, to within a factor of two; None if fewer than
        `DURATIONS_MIN` were started."""
        if share not in self._durations:
            started = self.buckets.total() - self.buckets[NEVER_STARTED]
            is_known = started >= DURATIONS_MIN
            self._durations[share] = percentile(self.buckets, share) if is_known else None
        return self._durations[share]
