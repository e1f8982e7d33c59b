"""Assigns due runs to workers: the most urgent first, each to the least loaded worker that may have it.

Runs for the worker of our own process start in the statement that assigns them: one commit less before they
execute.

A blocked run (its job off or at its limit, its key at its limit, no worker with its tags) is left out of the
next query, so that it never hides what could run. A round's assignments are one statement.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from tsuzuki.engine.coordination.protocol import Coordination, NoCoordination
from tsuzuki.engine.leader.placement import Placement
from tsuzuki.engine.worker.local_start import LocalStart
from tsuzuki.model.job import Job
from tsuzuki.model.settings import EngineSettings
from tsuzuki.store import jobs
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import capacity, moves, queue
from tsuzuki.store.runs.moves import NOTHING, Assignment
from tsuzuki.store.runs.queue import DueRun
from tsuzuki.store.sql.database import Connection, Database
from tsuzuki.store.sql.prepared import AnyConnection
from tsuzuki.store.wakeups import channels

BATCH_MAX = 500
"""Runs per query and per statement that assigns."""

WIDEN_FACTOR = 4
"""After a query that found blocked runs the next one reads this many times more."""

RESERVATION_SECONDS = 2.0
"""How long a run is reserved for its worker while it is being assigned. Longer than a round takes, and short,
because a reservation that was left behind keeps its run waiting."""

HEARTBEATS_MISSED_MAX = 2
"""A worker that was not heard for this many heartbeat intervals gets nothing new: it may be dead, and its runs would
wait until it is silent for `worker_ttl_seconds`."""


class LocalWorker(Protocol):
    """The worker of this process."""

    @property
    def worker_id(self) -> str: ...

    def local_start(self) -> AbstractContextManager[LocalStart]:
        """Around the transaction that assigns runs to it; what it starts is adopted after the commit."""


class Assigner:
    def __init__(
        self,
        *,
        database: Database,
        settings: Callable[[], EngineSettings] = EngineSettings,
        coordination: Coordination | None = None,
        local_worker: LocalWorker | None = None,
        only_job: str | None = None,
    ) -> None:
        """`only_job` is the one job that the local worker may have."""
        self._database = database
        self._settings = settings
        self._local_worker = local_worker
        self._only_job = only_job
        self._coordination = coordination or NoCoordination()
        self._jobs: dict[int, Job] = {}
        self._free_slots = 1
        """After the last round. The first query reads this many runs: with a long queue and busy workers, reading
        more of it than can be assigned would be most of the work."""
        self.is_full = False
        """Whether the last round has taken every free slot: then another one waits for the end of a run."""

    def tick(self, term: Term) -> int:
        """Assign what can be assigned. Returns how many runs were."""
        with self._database.read() as connection:
            chosen = self._choose(connection)
        chosen = self._without_reserved(chosen)
        if not chosen:
            return 0
        with self._local_start() as local, self._database.write() as connection:
            assigned = self._assign(connection, local, term, chosen)
        self._after_commit(chosen, assigned)
        return len(assigned)

    def assign_first(self, term: Term) -> int:
        """Assign the most urgent run in as few round trips as that takes, for an idle leader. Answers 1,
        or 0 if that one is blocked, or its job is not known yet."""
        with self._local_start() as local, self._database.statement() as connection:
            found = capacity.load_with_first_due(
                connection, heard_within_seconds=self._heard_within_seconds()
            )
            due = found.due
            if due is None or not self._knows(due.job_id, due.job_version):
                return 0
            placement = self._placement(found)
            self._block_disabled(placement, {due.job_id})
            worker_id = placement.place(due)
            if worker_id is None:
                return 0
            chosen = [Assignment(due.ref, worker_id)]
            assigned = self._assign(connection, local, term, chosen)
        self._after_commit(chosen, assigned)
        return len(assigned)

    def _heard_within_seconds(self) -> float:
        return self._settings().heartbeat_interval_seconds * HEARTBEATS_MISSED_MAX

    def _placement(self, found: capacity.Capacity) -> Placement:
        if self._only_job is None or self._local_worker is None:
            return Placement(found, jobs=self._jobs)
        only_job = {self._local_worker.worker_id: self._only_job}
        return Placement(found, jobs=self._jobs, only_job=only_job)

    def _local_start(self) -> AbstractContextManager[LocalStart | None]:
        return self._local_worker.local_start() if self._local_worker else nullcontext()

    def _assign(
        self,
        connection: AnyConnection,
        local: LocalStart | None,
        term: Term,
        chosen: Sequence[Assignment],
    ) -> frozenset[int]:
        ours = [run for run, worker_id in chosen if local and worker_id == local.worker_id]
        started = local.start(connection, ours, term=term, known=self._jobs) if local else NOTHING
        if len(ours) == len(chosen):
            return started
        others = [one for one in chosen if not local or one.worker_id != local.worker_id]
        assigned = moves.assign(connection, term=term, assignments=others)
        if assigned:
            workers = {worker_id for run, worker_id in others if run.id in assigned}
            channels.notify(connection, *workers)
        return started | assigned

    def _after_commit(self, chosen: Sequence[Assignment], assigned: frozenset[int]) -> None:
        self._coordination.release({run.id for run, _ in chosen} - assigned)
        own = self._local_worker.worker_id if self._local_worker else None
        workers = {worker_id for run, worker_id in chosen if run.id in assigned}
        self._coordination.wake(workers - {own})

    def _without_reserved(self, chosen: Sequence[Assignment]) -> list[Assignment]:
        """Without runs that are just being assigned to another worker. A hint that saves a lost statement:
        the database decides who gets a run."""
        elsewhere = self._coordination.reserve(
            {assignment.run.id: assignment.worker_id for assignment in chosen},
            ttl_seconds=RESERVATION_SECONDS,
        )
        return [assignment for assignment in chosen if assignment.run.id not in elsewhere]

    def _choose(self, connection: Connection) -> list[Assignment]:
        """Read and place runs until no slot is free or no run is left. That ends: every run that is read
        is either placed or blocked, and so is not read again."""
        limit = self._free_slots
        found = queue.due_runs(connection, limit=limit)
        if not found:
            return []
        found_capacity = capacity.load(
            connection, heard_within_seconds=self._heard_within_seconds()
        )
        placement = self._placement(found_capacity)
        free = placement.free_slots()
        wanted = min(free, BATCH_MAX)
        chosen: list[Assignment] = []
        seen: set[int] = set()
        while (
            self._place(connection, placement, found, seen, chosen, wanted) and len(found) == limit
        ):
            limit = min(max(wanted - len(chosen), limit * WIDEN_FACTOR), BATCH_MAX) + len(chosen)
            found = queue.due_runs(
                connection,
                limit=limit,
                without_jobs=placement.blocked_jobs,
                without_keys=placement.blocked_keys,
            )
        self.is_full = free == len(chosen)
        self._free_slots = max(min(free - len(chosen), BATCH_MAX), 1)
        return chosen

    def _place(
        self,
        connection: Connection,
        placement: Placement,
        found: Sequence[DueRun],
        seen: set[int],
        chosen: list[Assignment],
        wanted: int,
    ) -> bool:
        """Place what was found; false when another query would be for nothing."""
        unseen = [run for run in found if run.ref.id not in seen] if seen else found
        self._load_jobs(connection, unseen, placement)
        for run in unseen:
            if len(chosen) == wanted:
                return False
            worker_id = placement.place(run)
            if worker_id is not None:
                chosen.append(Assignment(run.ref, worker_id))
        seen.update(run.ref.id for run in unseen)
        return bool(unseen) and len(chosen) < wanted

    def _knows(self, job_id: int, version: int) -> bool:
        job = self._jobs.get(job_id)
        return job is not None and job.version == version

    def _load_jobs(
        self, connection: Connection, due: Sequence[DueRun], placement: Placement
    ) -> None:
        """The definitions as they are now: a disabled or removed job is blocked."""
        asked = {run.job_id: run.job_version for run in due}
        changed = {job_id for job_id, version in asked.items() if not self._knows(job_id, version)}
        self._jobs.update(jobs.get_many(connection, changed, known=self._jobs))
        self._block_disabled(placement, asked)

    def _block_disabled(self, placement: Placement, job_ids: Iterable[int]) -> None:
        placement.blocked_jobs.update(
            job_id
            for job_id in job_ids
            if not self._jobs[job_id].spec.enabled or self._jobs[job_id].deleted_at
        )
