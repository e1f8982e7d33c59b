"""The search of the queue by groups, for a queue whose front is blocked.

Runs without a concurrency key are searched anew each time: that takes one step per job. Runs with one take a step per
key, and keys may be as many as runs: what was found is kept for later rounds, and at most a quarter of the time is
spent on searching anew. A kept run may have been assigned or canceled since; the statement that assigns checks that.
"""

from collections.abc import Collection
from heapq import merge
from itertools import islice

from tsuzuki.engine.leader.placement import OpenJobs
from tsuzuki.model.clock import Clock
from tsuzuki.store.runs import queue_groups
from tsuzuki.store.runs.queue import DueRun
from tsuzuki.store.runs.queue_groups import GroupedRun
from tsuzuki.store.sql.database import Connection

KEPT_MAX = 2000
"""So many runs with a key are found by one search, or more if a round asks for more."""

PAUSE_FACTOR = 3.0
"""After a search for runs with a key there is none for this many times as long as it took,"""

PAUSE_MAX_SECONDS = 1.0
"""and for this long at most. Unless it found more runs than it kept: then the next one finds more."""


class GroupSearch:
    """Not thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: list[GroupedRun] = []
        self._is_complete = False
        self._pause_until = 0.0
        self.is_postponed = False
        """Whether the last answer lacks runs that may have got room since the search that it comes from."""

    @property
    def seconds_left(self) -> float | None:
        """If the search is postponed: for how long."""
        left = self._pause_until - self._clock.monotonic()
        return max(left, 0.0) if self.is_postponed else None

    def find(self, connection: Connection, jobs_open: OpenJobs, *, limit: int) -> list[DueRun]:
        """The first due runs of jobs that have room, in the order of the queue; fewer than `limit` if there are no
        more."""
        without_key = queue_groups.due_runs_without_key(
            connection,
            limited_jobs=jobs_open.limited,
            unlimited_jobs=jobs_open.unlimited,
            limit=limit,
            per_limited_job=jobs_open.slots_max,
        )
        with_key = self._with_key(connection, jobs_open, limit)
        return [run for _, run in islice(merge(without_key, with_key), limit)]

    def forget(self, run_ids: Collection[int]) -> None:
        """These runs were assigned, or could not be: they are not offered again from what is kept."""
        self._kept = [one for one in self._kept if one.run.ref.id not in run_ids]

    def _with_key(
        self, connection: Connection, jobs_open: OpenJobs, limit: int
    ) -> list[GroupedRun]:
        now = self._clock.monotonic()
        is_enough = self._is_complete or len(self._kept) >= limit
        self.is_postponed = now < self._pause_until and is_enough
        if not self.is_postponed:
            asked = max(limit, KEPT_MAX)
            self._kept = queue_groups.due_runs_with_key(
                connection,
                jobs=[*jobs_open.limited, *jobs_open.unlimited],
                limit=asked,
                per_key=jobs_open.per_key_max or asked,
            )
            self._is_complete = len(self._kept) < asked
            ended_at = self._clock.monotonic()
            pause = min((ended_at - now) * PAUSE_FACTOR, PAUSE_MAX_SECONDS)
            self._pause_until = ended_at + pause
        return self._kept
