"""Placement: which worker gets a run, within the limits of jobs and keys; the least loaded one that may."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

from tsuzuki.model.abilities import Needs
from tsuzuki.model.job import Job, JobSpec
from tsuzuki.store.runs.capacity import Capacity, WorkerCapacity
from tsuzuki.store.runs.moves import Assignment
from tsuzuki.store.runs.queue import DueRun


@dataclass(kw_only=True)
class _JobLimits:
    """What a job may hold at once, and how much of it is taken."""

    limit: int | None
    key_limit: int | None
    workers: "_LeastLoaded"
    taken: int


class _LeastLoaded:
    """The workers that may have certain runs, as a heap by load."""

    def __init__(self, workers: Sequence[WorkerCapacity], held_by_worker: dict[str, int]) -> None:
        self._workers = workers
        self._held = held_by_worker
        self._heap = [
            (held_by_worker.get(worker.id, 0) / worker.capacity, index)
            for index, worker in enumerate(workers)
        ]
        heapify(self._heap)

    def has_free(self) -> bool:
        """Whether any of them has a free slot."""
        heap, held = self._heap, self._held
        while heap:
            worker = self._workers[heap[0][1]]
            if held.get(worker.id, 0) < worker.capacity:
                return True
            heappop(heap)
        return False

    def take(self) -> str | None:
        """A slot at the least loaded worker; None if all are full. Other heaps share the same workers, so
        a load that has grown meanwhile is corrected when it comes to the front."""
        heap, held = self._heap, self._held
        while heap:
            load, index = heap[0]
            worker_id, capacity, *_ = self._workers[index]
            has = held.get(worker_id, 0)
            if has >= capacity:
                heappop(heap)
            elif has / capacity > load:
                heapreplace(heap, (has / capacity, index))
            else:
                held[worker_id] = has + 1
                heapreplace(heap, ((has + 1) / capacity, index))
                return worker_id
        return None


class OpenJobs(NamedTuple):
    """Jobs that are not blocked: those with a limit and those without. `slots_max` is the most that any with a limit
    may still hold, `per_key_max` the highest limit of a key; None if a job has none."""

    limited: list[int]
    unlimited: list[int]
    slots_max: int
    per_key_max: int | None


class Placement:
    """Free slots and limits, kept up to date while runs are placed. Blocked jobs are remembered, so that they
    are left out of the next query."""

    def __init__(self, capacity: Capacity, *, jobs: Mapping[int, Job]) -> None:
        self.blocked_jobs: set[int] = set()
        self._workers = capacity.workers
        self._shared = [worker for worker in capacity.workers if worker.only_run is None]
        self._of_one_run: dict[int, list[WorkerCapacity]] = {}
        for worker in capacity.workers:
            if worker.only_run is not None:
                self._of_one_run.setdefault(worker.only_run, []).append(worker)
        self._held = capacity.held
        self._jobs = jobs
        self._has_only_job = any(worker.only_job for worker in capacity.workers)
        self._limits: dict[int, _JobLimits] = {}
        self._counted_keys = set(capacity.held.by_key)
        self._able: dict[tuple[Needs, frozenset[str], str | None], _LeastLoaded] = {}

    def free_slots(self) -> int:
        held = self._held.by_worker
        return sum(max(w.capacity - held.get(w.id, 0), 0) for w in self._workers)

    @property
    def only_runs(self) -> list[int]:
        """The runs that workers were started for. They are placed first: what no other worker takes blocks its job."""
        return list(self._of_one_run)

    def uncounted_keys(self, found: Iterable[DueRun]) -> set[tuple[int, str]]:
        """The jobs and keys of these runs that have a limit and are not counted yet; to be counted before `place`."""
        asked = {
            (run.job_id, run.concurrency_key) for run in found if run.concurrency_key is not None
        }
        return {
            one
            for one in asked - self._counted_keys
            if self._jobs[one[0]].spec.max_concurrent_per_key is not None
        }

    def count_keys(
        self, asked: Collection[tuple[int, str]], held: Mapping[tuple[int, str], int]
    ) -> None:
        """How many runs of each key that was asked for are held."""
        self._counted_keys.update(asked)
        self._held.by_key.update({one: held.get(one, 0) for one in asked})

    def place(self, run: DueRun) -> str | None:
        """The worker for a run; None if it cannot be assigned now."""
        job_id, key = run.job_id, run.concurrency_key
        if job_id in self.blocked_jobs:
            return None
        limits = self._limits.get(job_id) or self._limits_of(job_id)
        if limits.limit is not None and limits.taken >= limits.limit:
            self.blocked_jobs.add(job_id)
            return None
        if key is not None and self._at_key_limit(job_id, key, limits):
            return None
        worker_id = self._started_for(run) or limits.workers.take()
        if worker_id is None:
            self.blocked_jobs.add(job_id)
            return None
        limits.taken += 1
        if key is not None:
            self._held.by_key[job_id, key] = self._held.by_key.get((job_id, key), 0) + 1
        return worker_id

    def open_jobs(self, job_ids: Iterable[int]) -> OpenJobs:
        """Those of the jobs that have room and a worker that may have them."""
        limited: dict[int, int] = {}
        unlimited: list[int] = []
        key_limits: list[int] = []
        is_key_limited = True
        for job_id in job_ids:
            if job_id in self.blocked_jobs:
                continue
            limits = self._limits.get(job_id) or self._limits_of(job_id)
            if not limits.workers.has_free():
                continue
            if limits.limit is None:
                unlimited.append(job_id)
            elif limits.taken < limits.limit:
                limited[job_id] = limits.limit - limits.taken
            else:
                continue
            is_key_limited = is_key_limited and limits.key_limit is not None
            key_limits.append(limits.key_limit or 0)
        return OpenJobs(
            limited=list(limited),
            unlimited=unlimited,
            slots_max=max(limited.values(), default=0),
            per_key_max=max(key_limits, default=0) if is_key_limited else None,
        )

    def _started_for(self, run: DueRun) -> str | None:
        """A worker that was started for this run, if it may have it and is free."""
        workers = self._of_one_run.get(run.ref.id)
        if workers is None:
            return None
        spec = self._jobs[run.job_id].spec
        able = [worker for worker in workers if _may_have(worker, spec, spec.needs)]
        return _LeastLoaded(able, self._held.by_worker).take()

    def _at_key_limit(self, job_id: int, key: str, limits: _JobLimits) -> bool:
        limit = limits.key_limit
        return limit is not None and self._held.by_key.get((job_id, key), 0) >= limit

    def _limits_of(self, job_id: int) -> _JobLimits:
        spec = self._jobs[job_id].spec
        needs = spec.needs
        alike = needs, spec.tags, spec.name if self._has_only_job else None
        workers = self._able.get(alike)
        if workers is None:
            able = [worker for worker in self._shared if _may_have(worker, spec, needs)]
            workers = self._able[alike] = _LeastLoaded(able, self._held.by_worker)
        limits = self._limits[job_id] = _JobLimits(
            limit=spec.concurrency_limit,
            key_limit=spec.max_concurrent_per_key,
            workers=workers,
            taken=self._held.by_job.get(job_id, 0),
        )
        return limits


def _may_have(worker: WorkerCapacity, spec: JobSpec, needs: Needs) -> bool:
    """What the worker registered for decides, whichever process leads."""
    if worker.abilities is not None and worker.abilities.lack(needs) is not None:
        return False
    return worker.only_job in (None, spec.name) and spec.tags <= worker.tags


class RunSelection:
    """The runs that one round assigns: placed in the order of the queue, up to the number of free slots. A run may be
    offered again by a later query of the round: each is placed once."""

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
