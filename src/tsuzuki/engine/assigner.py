"""Gives waiting runs to workers: the most urgent first, each to the least loaded worker that may have it.

What goes to the worker of our own process begins in the statement that gives it: one commit less before it runs.

What is blocked (its job off or at its limit, its key at its limit, no worker with its tags) is left out of
the next look, so that it never hides what could run. All that was decided in a look is one statement.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace
from typing import Protocol

from tsuzuki.engine.coordination import Coordination, NoCoordination
from tsuzuki.engine.taking import Taking
from tsuzuki.model.job import Job
from tsuzuki.store import dispatch, jobs, moves, notices
from tsuzuki.store import room as rooms
from tsuzuki.store.database import Connection, Database
from tsuzuki.store.dispatch import DueRun
from tsuzuki.store.leadership import Term
from tsuzuki.store.line import Sender
from tsuzuki.store.moves import NOTHING, Assignment
from tsuzuki.store.room import Places, Room

LOOK_MAX = 500
"""So many runs are looked at and given out at once."""

WIDER = 4
"""After a look at something blocked the next one is so many times wider."""

LEASE_SECONDS = 2.0
"""How long a run that is being given out is marked as such for other leaders. Longer than a round takes,
and short, because a mark that was left behind keeps its run waiting."""


@dataclass(kw_only=True)
class _Share:
    """What a job may have, and how much of it is taken."""

    limit: int | None
    key_limit: int | None
    queue: "_Queue"
    taken: int


class _Queue:
    """The workers that may have certain runs, the least loaded first."""

    def __init__(self, workers: Sequence[Places], by_worker: dict[str, int]) -> None:
        self._workers = workers
        self._by_worker = by_worker
        self._heap = [
            (by_worker.get(worker.id, 0) / worker.capacity, index)
            for index, worker in enumerate(workers)
        ]
        heapify(self._heap)

    def take(self) -> str | None:
        """A place at the least loaded worker; None if all are full. Others draw on the same workers,
        so a load that has grown meanwhile is put right when it comes to the front."""
        heap, taken = self._heap, self._by_worker
        while heap:
            load, index = heap[0]
            worker_id, capacity, _ = self._workers[index]
            has = taken.get(worker_id, 0)
            if has >= capacity:
                heappop(heap)
            elif has / capacity > load:
                heapreplace(heap, (has / capacity, index))
            else:
                taken[worker_id] = has + 1
                heapreplace(heap, ((has + 1) / capacity, index))
                return worker_id
        return None


class _Board:
    """Who has room and what is at its limit, kept up to date while deciding."""

    def __init__(self, room: Room, *, jobs: Mapping[int, Job]) -> None:
        self.blocked_jobs: set[int] = set()
        self.blocked_keys: set[tuple[int, str]] = set()
        self._workers = room.offered
        self._held = room.held
        self._jobs = jobs
        self._shares: dict[int, _Share] = {}
        self._queues: dict[frozenset[str], _Queue] = {}

    def free_slots(self) -> int:
        taken = self._held.by_worker
        return sum(max(w.capacity - taken.get(w.id, 0), 0) for w in self._workers)

    def choose(self, run: DueRun) -> str | None:
        """The worker for a run; None if it cannot be given out, which is then remembered."""
        job_id, key = run.job_id, run.concurrency_key
        if job_id in self.blocked_jobs:
            return None
        share = self._shares.get(job_id) or self._share(job_id)
        if share.limit is not None and share.taken >= share.limit:
            self.blocked_jobs.add(job_id)
            return None
        if key is not None and self._at_key_limit(job_id, key, share):
            self.blocked_keys.add((job_id, key))
            return None
        worker_id = share.queue.take()
        if worker_id is None:
            self.blocked_jobs.add(job_id)
            return None
        share.taken += 1
        if key is not None:
            self._held.by_key[job_id, key] = self._held.by_key.get((job_id, key), 0) + 1
        return worker_id

    def _at_key_limit(self, job_id: int, key: str, share: _Share) -> bool:
        limit = share.key_limit
        return limit is not None and self._held.by_key.get((job_id, key), 0) >= limit

    def _share(self, job_id: int) -> _Share:
        spec = self._jobs[job_id].spec
        queue = self._queues.get(spec.tags)
        if queue is None:
            able = [worker for worker in self._workers if spec.tags <= worker.tags]
            queue = self._queues[spec.tags] = _Queue(able, self._held.by_worker)
        share = self._shares[job_id] = _Share(
            limit=spec.concurrency_limit,
            key_limit=spec.max_concurrent_per_key,
            queue=queue,
            taken=self._held.by_job.get(job_id, 0),
        )
        return share


class OwnWorker(Protocol):
    """The worker of this process."""

    @property
    def worker_id(self) -> str: ...

    def taking(self) -> AbstractContextManager[Taking]:
        """Around what is done to give it work; what began reaches it after the commit."""

    def rouse(self) -> None:
        """Let it know that it was given work."""


class Assigner:
    def __init__(
        self,
        *,
        database: Database,
        coordination: Coordination | None = None,
        own_worker: OwnWorker | None = None,
    ) -> None:
        self._database = database
        self._own_worker = own_worker
        self._coordination = coordination or NoCoordination()
        self._jobs: dict[int, Job] = {}
        self._room_left = 1
        """After the last round. As many runs are looked at first: with a long queue and busy workers,
        reading more of it than can be given out would be most of the work."""

    def tick(self, term: Term) -> int:
        """Give out what can be given out. Answers how many runs were."""
        with self._database.read() as connection:
            chosen = self._decide(connection)
        chosen = self._without_leased(chosen)
        if not chosen:
            return 0
        with self._taking() as taking, self._database.write() as connection:
            taken = self._give_out(connection, taking, term, chosen)
        self._settle(chosen, taken)
        self.rouse_own_worker()
        return len(taken)

    def rouse_own_worker(self) -> None:
        if self._own_worker is not None:
            self._own_worker.rouse()

    def give_first(self, term: Term) -> int:
        """Give out the most urgent run in as few steps as that takes: for a leader with nothing else
        to do. Answers 1, or 0 if that one cannot be given out, or its job is not known yet. Our own worker
        is to be roused a moment later: now it would be in the way of what has just begun."""
        with self._taking() as taking, self._database.statement() as connection:
            found = rooms.room_and_first(connection)
            due = found.due
            if due is None or not self._knows(due.job_id, due.job_version):
                return 0
            board = _Board(found, jobs=self._jobs)
            self._block(board, {due.job_id})
            worker_id = board.choose(due)
            if worker_id is None:
                return 0
            chosen = [Assignment(due.ref, worker_id)]
            taken = self._give_out(connection, taking, term, chosen)
        self._settle(chosen, taken)
        return len(taken)

    def _taking(self) -> AbstractContextManager[Taking | None]:
        return self._own_worker.taking() if self._own_worker else nullcontext()

    def _give_out(
        self,
        connection: Sender,
        taking: Taking | None,
        term: Term,
        chosen: Sequence[Assignment],
    ) -> frozenset[int]:
        ours = [run for run, worker_id in chosen if taking and worker_id == taking.worker_id]
        begun = taking.begin(connection, ours, term=term, known=self._jobs) if taking else NOTHING
        if len(ours) == len(chosen):
            return begun
        others = [one for one in chosen if not taking or one.worker_id != taking.worker_id]
        given = moves.assign(connection, term=term, assignments=others)
        if given:
            notices.notify(connection, *{who for run, who in others if run.id in given})
        return begun | given

    def _settle(self, chosen: Sequence[Assignment], taken: frozenset[int]) -> None:
        """After the commit: what others may be told."""
        self._coordination.release({run.id for run, _ in chosen} - taken)
        us = self._own_worker.worker_id if self._own_worker else None
        self._coordination.ring({who for run, who in chosen if run.id in taken} - {us})

    def _without_leased(self, chosen: Sequence[Assignment]) -> list[Assignment]:
        """Without what is just being given to somebody else. A hint that saves a lost statement: who
        gets a run is decided in the database."""
        elsewhere = self._coordination.lease(
            {assignment.run.id: assignment.worker_id for assignment in chosen},
            ttl_seconds=LEASE_SECONDS,
        )
        return [assignment for assignment in chosen if assignment.run.id not in elsewhere]

    def _decide(self, connection: Connection) -> list[Assignment]:
        """Look until there is no room or nothing left. That ends: whatever is seen is either chosen
        or blocked, and so is not looked at again."""
        limit = self._room_left
        found = dispatch.due_runs(connection, limit=limit)
        if not found:
            return []
        board = _Board(rooms.room(connection), jobs=self._jobs)
        free = board.free_slots()
        room = min(free, LOOK_MAX)
        chosen: list[Assignment] = []
        seen: set[int] = set()
        while self._fill(connection, board, found, seen, chosen, room) and len(found) == limit:
            limit = min(max(room - len(chosen), limit * WIDER), LOOK_MAX) + len(chosen)
            found = dispatch.due_runs(
                connection,
                limit=limit,
                without_jobs=board.blocked_jobs,
                without_keys=board.blocked_keys,
            )
        self._room_left = max(min(free - len(chosen), LOOK_MAX), 1)
        return chosen

    def _fill(
        self,
        connection: Connection,
        board: _Board,
        found: Sequence[DueRun],
        seen: set[int],
        chosen: list[Assignment],
        room: int,
    ) -> bool:
        """Choose from what was found; false when another look would be for nothing."""
        unseen = [run for run in found if run.ref.id not in seen] if seen else found
        self._learn_jobs(connection, unseen, board)
        for run in unseen:
            if len(chosen) == room:
                return False
            worker_id = board.choose(run)
            if worker_id is not None:
                chosen.append(Assignment(run.ref, worker_id))
        seen.update(run.ref.id for run in unseen)
        return bool(unseen) and len(chosen) < room

    def _knows(self, job_id: int, version: int) -> bool:
        job = self._jobs.get(job_id)
        return job is not None and job.version == version

    def _learn_jobs(self, connection: Connection, due: Sequence[DueRun], board: _Board) -> None:
        """The definitions as they are now: a job switched off or removed is blocked."""
        asked = {run.job_id: run.job_version for run in due}
        changed = {job_id for job_id, version in asked.items() if not self._knows(job_id, version)}
        self._jobs.update(jobs.get_many(connection, changed, known=self._jobs))
        self._block(board, asked)

    def _block(self, board: _Board, job_ids: Iterable[int]) -> None:
        board.blocked_jobs.update(
            job_id
            for job_id in job_ids
            if not self._jobs[job_id].spec.enabled or self._jobs[job_id].deleted_at
        )
