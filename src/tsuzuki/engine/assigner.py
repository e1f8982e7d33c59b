"""Gives waiting runs to workers: the most urgent first, each to the least loaded worker that may have it.

What is blocked (its job off or at its limit, its key at its limit, no worker with its tags) is left out of
the next look, so that it never hides what could run. All that was decided in a look is one statement.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tsuzuki.engine.coordination import Coordination, NoCoordination
from tsuzuki.model.job import Job
from tsuzuki.model.worker import Worker, WorkerState
from tsuzuki.store import dispatch, jobs, moves, notices, workers
from tsuzuki.store.database import Connection, Database
from tsuzuki.store.dispatch import DueRun, HeldRuns
from tsuzuki.store.leadership import Term
from tsuzuki.store.moves import Assignment

LOOK_MAX = 500
"""So many runs are looked at and given out at once."""

WIDER = 4
"""After a look at something blocked the next one is so many times wider."""

LEASE_SECONDS = 2.0
"""How long a run that is being given out is marked as such for other leaders. Longer than a round takes,
and short, because a mark that was left behind keeps its run waiting."""


@dataclass(kw_only=True)
class _Board:
    """Who has room and what is at its limit, kept up to date while deciding."""

    workers: Sequence[Worker]
    held: HeldRuns
    jobs: Mapping[int, Job]
    blocked_jobs: set[int] = field(default_factory=set)
    blocked_keys: set[tuple[int, str]] = field(default_factory=set)

    def free_slots(self) -> int:
        return sum(self._room(worker) for worker in self.workers)

    def choose(self, run: DueRun) -> str | None:
        """The worker for a run; None if it cannot be given out, which is then remembered."""
        if run.job_id in self.blocked_jobs:
            return None
        job = self.jobs[run.job_id]
        if self._at_job_limit(job):
            self.blocked_jobs.add(run.job_id)
            return None
        if self._at_key_limit(job, run.concurrency_key):
            self.blocked_keys.add((run.job_id, str(run.concurrency_key)))
            return None
        worker = self._least_loaded(job.spec.tags)
        if worker is None:
            self.blocked_jobs.add(run.job_id)
            return None
        self._count(run, worker)
        return worker.id

    def _at_job_limit(self, job: Job) -> bool:
        limit = job.spec.concurrency_limit
        return limit is not None and self.held.by_job.get(job.id, 0) >= limit

    def _at_key_limit(self, job: Job, key: str | None) -> bool:
        limit = job.spec.max_concurrent_per_key
        return (
            limit is not None
            and key is not None
            and self.held.by_key.get((job.id, key), 0) >= limit
        )

    def _least_loaded(self, tags: frozenset[str]) -> Worker | None:
        able = [w for w in self.workers if tags <= w.tags and self._room(w) > 0]
        return min(able, key=self._load, default=None)

    def _load(self, worker: Worker) -> float:
        return self.held.by_worker.get(worker.id, 0) / worker.capacity

    def _room(self, worker: Worker) -> int:
        return max(worker.capacity - self.held.by_worker.get(worker.id, 0), 0)

    def _count(self, run: DueRun, worker: Worker) -> None:
        held = self.held
        held.by_worker[worker.id] = held.by_worker.get(worker.id, 0) + 1
        held.by_job[run.job_id] = held.by_job.get(run.job_id, 0) + 1
        if run.concurrency_key is not None:
            key = (run.job_id, run.concurrency_key)
            held.by_key[key] = held.by_key.get(key, 0) + 1


class Assigner:
    def __init__(self, *, database: Database, coordination: Coordination | None = None) -> None:
        self._database = database
        self._coordination = coordination or NoCoordination()
        self._jobs: dict[int, Job] = {}

    def tick(self, term: Term) -> int:
        """Give out what can be given out. Answers how many runs were."""
        with self._database.read() as connection:
            if not dispatch.anything_due(connection):
                return 0
            board = self._board(connection)
            chosen = self._decide(connection, board)
        chosen = self._without_leased(chosen)
        if not chosen:
            return 0
        with self._database.write() as connection:
            taken = moves.assign(connection, term=term, assignments=chosen)
            if taken:
                notices.notify(connection, notices.Audience.WORKERS)
        self._coordination.release({assignment.run.id for assignment in chosen} - taken)
        if taken:
            self._coordination.ring({notices.Audience.WORKERS})
        return len(taken)

    def _without_leased(self, chosen: Sequence[Assignment]) -> list[Assignment]:
        """Without what is just being given to somebody else. A hint that saves a lost statement: who
        gets a run is decided in the database."""
        elsewhere = self._coordination.lease(
            {assignment.run.id: assignment.worker_id for assignment in chosen},
            ttl_seconds=LEASE_SECONDS,
        )
        return [assignment for assignment in chosen if assignment.run.id not in elsewhere]

    def _board(self, connection: Connection) -> _Board:
        attached = [
            worker
            for worker in workers.find(connection)
            if worker.state is WorkerState.ATTACHED and worker.capacity > 0
        ]
        return _Board(workers=attached, held=dispatch.held_runs(connection), jobs=self._jobs)

    def _decide(self, connection: Connection, board: _Board) -> list[Assignment]:
        """Look until there is no room or nothing left. That ends: whatever is seen is either chosen
        or blocked, and so is not looked at again."""
        chosen: list[Assignment] = []
        seen: set[int] = set()
        width = 0
        while (room := min(board.free_slots(), LOOK_MAX - len(chosen))) > 0:
            width = min(max(room, width * WIDER), LOOK_MAX)
            due = [
                run
                for run in dispatch.due_runs(
                    connection,
                    limit=width + len(chosen),
                    without_jobs=board.blocked_jobs,
                    without_keys=board.blocked_keys,
                )
                if run.ref.id not in seen
            ]
            if not due:
                break
            seen.update(run.ref.id for run in due)
            self._learn_jobs(connection, due, board)
            for run in due:
                worker_id = board.choose(run) if len(chosen) < LOOK_MAX else None
                if worker_id is not None:
                    chosen.append(Assignment(run=run.ref, worker_id=worker_id))
        return chosen

    def _learn_jobs(self, connection: Connection, due: Sequence[DueRun], board: _Board) -> None:
        """The definitions as they are now: a job switched off or removed is blocked."""
        self._jobs.update(jobs.get_many(connection, {run.job_id for run in due}, known=self._jobs))
        board.blocked_jobs.update(
            job_id
            for job_id in {run.job_id for run in due}
            if not self._jobs[job_id].spec.enabled or self._jobs[job_id].deleted_at
        )
