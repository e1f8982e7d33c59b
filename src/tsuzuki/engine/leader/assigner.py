"""Assigns due runs to workers: the most urgent first, each to the least loaded worker that may have it.

Runs for the worker of our own process start in the statement that assigns them: one commit less before they
execute.

A blocked run (its job off or at its limit, its key at its limit, no worker with its tags) never hides what could run,
and a long backlog of them costs no more than its jobs and keys are many. A round's assignments are one statement.

Used by the leader's thread, and by the worker's of the same process to fill slots that become free (`refilling`).
"""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from tsuzuki.engine.coordination.protocol import Coordination, NoCoordination
from tsuzuki.engine.leader.bulk_canceler import KnownCancels
from tsuzuki.engine.leader.group_search import GroupSearch
from tsuzuki.engine.leader.placement import Placement, RunSelection
from tsuzuki.engine.local_start import NOT_REFILLED, LocalStart, Refilled, load_tasks
from tsuzuki.engine.task import Task
from tsuzuki.model.job import Job, JobEdition
from tsuzuki.model.settings import EngineSettings
from tsuzuki.store import jobs
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import capacity, moves, queue, queue_groups
from tsuzuki.store.runs.moves import NOTHING, Assignment
from tsuzuki.store.runs.queue import DueRun
from tsuzuki.store.sql.database import Connection, Database
from tsuzuki.store.sql.prepared import AnyConnection
from tsuzuki.store.wakeups import channels

BATCH_MAX = 500
"""Runs per query and per statement that assigns."""

BATCH_SHARED_MAX = 2_000
"""The same on PostgreSQL, where a round is shared by many workers: each piece of it costs its worker two transactions.
On SQLite all writers wait for the statement, so it stays short there."""

WALK_MAX = 2_500
"""This many runs are read along the queue before it is searched by groups: more than one round assigns."""

WIDEN_FACTOR = 4
"""After a query by groups that found blocked runs the next one reads this many times more."""

FRONT_BLOCKED_SECONDS = 5.0
"""How long the queue is searched by groups at once, after its front was found to be blocked. Only a hint which of the
two is faster: each finds everything."""

SEARCH_SHARE_MAX = 0.01
"""How much of the time may be spent on searching a blocked backlog again that no wake-up speaks of."""

SEARCH_INTERVAL_MAX_SECONDS = 30.0
"""It is searched again after this time, however long the search takes: a wake-up may be lost."""

RESERVATION_SECONDS = 2.0
"""How long a run is reserved for its worker while it is being assigned. Longer than a round takes, and short,
because a reservation that was left behind keeps its run waiting."""

HEARTBEATS_MISSED_MAX = 2
"""A worker that was not heard for this many heartbeat intervals gets nothing new: it may be dead, and its runs would
wait until it is silent for `worker_ttl_seconds`."""


class Assigner:
    def __init__(
        self,
        *,
        database: Database,
        settings: Callable[[], EngineSettings] = EngineSettings,
        coordination: Coordination | None = None,
        local_start: LocalStart | None = None,
    ) -> None:
        """`local_start` is for the worker of this process, if it works."""
        self._database = database
        self._settings = settings
        self._local_start = local_start or LocalStart(clock=database.clock)
        self._coordination = coordination or NoCoordination()
        self._batch_max = BATCH_MAX if database.is_sqlite else BATCH_SHARED_MAX
        self._lock = threading.Lock()
        """Held while runs are placed and until that is committed."""
        self._jobs: dict[int, Job] = {}
        self._read_first = 1
        """How many runs the first query of a round reads: as many as were assigned in the last round, or as slots were
        left free. With a long queue and busy workers, reading more than can be assigned would be most of the work."""
        self.is_full = False
        """Whether runs wait and no slot is free after the last round: then another one waits for the end of a run."""
        self._front_blocked_until = 0.0
        self._search_again_at = 0.0
        self._groups = GroupSearch(database.clock)
        self._cancels = KnownCancels()

    def know_cancels(self, known: KnownCancels) -> None:
        """Leave out what these bulk cancels cover, from the next choice on."""
        with self._lock:
            self._cancels = known

    @property
    def postponed_seconds(self) -> float | None:
        """After how long to try again, because a part of the backlog was not searched in the last round."""
        return self._groups.seconds_left

    def tick(self, term: Term, *, expects_change: bool = True) -> int:
        """Assign what can be assigned. Returns how many runs were. Unless `expects_change` (a wake-up, a run that
        has become due), a backlog that was found to be blocked is searched again only after a while."""
        with self._lock:
            return self._tick(term, expects_change=expects_change)

    def _tick(self, term: Term, *, expects_change: bool) -> int:
        started_at = self._database.clock.monotonic()
        is_early = started_at < self._search_again_at and not self._groups.is_postponed
        if is_early and not expects_change:
            return 0
        with self._database.read() as connection:
            chosen = self._choose(connection)
        if not (chosen or self._groups.is_postponed or self._cancels.active):
            took = self._database.clock.monotonic() - started_at
            wait_seconds = min(took / SEARCH_SHARE_MAX, SEARCH_INTERVAL_MAX_SECONDS)
            self._search_again_at = started_at + wait_seconds
        chosen = self._without_reserved(chosen)
        if not chosen:
            return 0
        with self._local_start.starting() as started, self._database.write() as connection:
            assigned = self._assign(connection, started, term, chosen)
        self._after_commit(chosen, assigned)
        return len(assigned)

    def assign_first(self, term: Term) -> int:
        """Assign the most urgent run in as few round trips as that takes, for an idle leader. Answers 1,
        or 0 if that one is blocked, its job is not known yet, or a bulk cancel is carried out."""
        with (
            self._lock,
            self._local_start.starting() as started,
            self._database.statement() as connection,
        ):
            found = capacity.load_with_first_due(
                connection, heard_within_seconds=self._heard_within_seconds()
            )
            due = found.due
            if due is None or self._cancels.active or not self._knows(due.job_id, due.job_edition):
                return 0
            placement = Placement(found, jobs=self._jobs)
            self._block_disabled(placement, {due.job_id})
            worker_id = placement.place(due)
            if worker_id is None:
                return 0
            chosen = [Assignment(due.ref, worker_id)]
            assigned = self._assign(connection, started, term, chosen)
        self._after_commit(chosen, assigned)
        return len(assigned)

    @contextmanager
    def refilling(self, connection: Connection, term: Term) -> Iterator[Refilled]:
        """Place runs in a transaction in which our own worker has stored ends; left after its commit. Only if runs
        wait and no slot was free after the last round; and not while a round is under way, which will see the ends or
        be followed by another.

        The lock is kept until the commit. It is never waited for: the transaction holds rows, on SQLite the whole
        file, that a round may wait for."""
        may_refill = self.is_full and not self._is_front_blocked()
        if not (may_refill and self._lock.acquire(blocking=False)):
            yield NOT_REFILLED
            return
        try:
            if self._cancels.active:
                yield NOT_REFILLED
                return
            with self._local_start.starting(wakes=False) as started:
                chosen = self._choose_from_front(connection)
                assigned = self._assign(connection, started, term, chosen)
                yield Refilled(len(assigned), self.is_full and len(assigned) == len(chosen))
                self._forget_and_wake(chosen, assigned)
        finally:
            self._lock.release()

    def _heard_within_seconds(self) -> float:
        return self._settings().heartbeat_interval_seconds * HEARTBEATS_MISSED_MAX

    def _assign(
        self,
        connection: AnyConnection,
        started: list[Task],
        term: Term,
        chosen: Sequence[Assignment],
    ) -> frozenset[int]:
        """Assign these runs, and start those of the worker of our own process in the same statement: they are added
        to `started`. Returns which moved: none if a bulk cancel was confirmed since they were chosen."""
        own, seen = self._local_start.worker_id, self._cancels.confirmed
        ours = [run for run, worker_id in chosen if worker_id == own]
        others = [one for one in chosen if one.worker_id != own]
        moved = NOTHING
        if own is not None and ours:
            orders = moves.assign_and_start(
                connection, term=term, worker_id=own, runs=ours, bulk_cancels=seen
            )
            wanted = [orders[run.id] for run in ours if run.id in orders]
            started += load_tasks(connection, wanted, self._jobs)
            moved = frozenset(orders)
        if not others:
            return moved
        assigned = moves.assign(connection, term=term, assignments=others, bulk_cancels=seen)
        if assigned:
            workers = {worker_id for run, worker_id in others if run.id in assigned}
            channels.notify(connection, *workers)
        return moved | assigned

    def _after_commit(self, chosen: Sequence[Assignment], assigned: frozenset[int]) -> None:
        self._coordination.release({run.id for run, _ in chosen} - assigned)
        self._forget_and_wake(chosen, assigned)

    def _forget_and_wake(self, chosen: Sequence[Assignment], assigned: Collection[int]) -> None:
        self._groups.forget({run.id for run, _ in chosen})
        workers = {worker_id for run, worker_id in chosen if run.id in assigned}
        self._coordination.wake(workers - {self._local_start.worker_id})

    def _without_reserved(self, chosen: Sequence[Assignment]) -> list[Assignment]:
        """Without runs that are just being assigned to another worker. A hint that saves a lost statement:
        the database decides who gets a run."""
        elsewhere = self._coordination.reserve(
            {assignment.run.id: assignment.worker_id for assignment in chosen},
            ttl_seconds=RESERVATION_SECONDS,
        )
        return [assignment for assignment in chosen if assignment.run.id not in elsewhere]

    def _choose(self, connection: Connection) -> list[Assignment]:
        """Place due runs, the most urgent first, until no slot is free or no run is left that can start.

        First along the queue. If so much of its front is blocked that this finds too little, by groups: that
        passes what is blocked, and finds all the rest in the same order."""
        self._groups.is_postponed = False
        self.is_full = False
        if self._cancels.active:
            return self._choose_uncovered(connection)
        is_front_blocked = self._is_front_blocked()
        limit = self._read_first
        found = [] if is_front_blocked else queue.due_runs(connection, limit=limit)
        if not (found or is_front_blocked):
            return []
        selection = self._selection(connection)
        free = selection.free_slots
        if not is_front_blocked:
            self._place(connection, selection, found)
            is_front_blocked = len(found) == limit and not self._walk(connection, selection, limit)
        if is_front_blocked and selection.wants_more:
            now = self._database.clock.monotonic()
            self._front_blocked_until = now + FRONT_BLOCKED_SECONDS
            self._search_groups(connection, selection)
        self.is_full = free == len(selection.assignments)
        assigned = len(selection.assignments)
        self._read_first = max(min(free - assigned, self._batch_max), assigned, 1)
        return selection.assignments

    def _choose_uncovered(self, connection: Connection) -> list[Assignment]:
        """Place due runs that no bulk cancel covers. Only along the queue: the few seconds that a bulk cancel takes, a
        blocked front may hide what comes after it."""
        selection = self._selection(connection)
        free = selection.free_slots
        if free:
            found = queue.due_runs(connection, limit=WALK_MAX, canceled_by=self._cancels.active)
            self._place(connection, selection, found)
        self.is_full = free == len(selection.assignments)
        return selection.assignments

    def _choose_from_front(self, connection: Connection) -> list[Assignment]:
        """Place the first due runs, as many as slots are free. If some of them are blocked, the rest is left to a
        round: a search may take long, and the transaction of a worker must not."""
        selection = self._selection(connection)
        free = selection.free_slots
        self._place(connection, selection, queue.due_runs(connection, limit=min(free, BATCH_MAX)))
        self.is_full = 0 < free == len(selection.assignments)
        return selection.assignments

    def _selection(self, connection: Connection) -> RunSelection:
        found = capacity.load(connection, heard_within_seconds=self._heard_within_seconds())
        selection = RunSelection(Placement(found, jobs=self._jobs), wanted_max=self._batch_max)
        if only_runs := selection.placement.only_runs:
            due = queue.due_among(connection, only_runs, canceled_by=self._cancels.active)
            self._place(connection, selection, due)
        return selection

    def _is_front_blocked(self) -> bool:
        return self._database.clock.monotonic() < self._front_blocked_until

    def _walk(self, connection: Connection, selection: RunSelection, read: int) -> bool:
        """Read further along the queue, after `read` runs of it: as many as slots are free, then more. False if that
        was not enough."""
        for limit in (min(selection.free_slots, WALK_MAX), WALK_MAX):
            if not selection.wants_more:
                return True
            if limit <= read:
                continue
            found = queue.due_runs(connection, limit=limit)
            self._place(connection, selection, found)
            if len(found) < limit:
                return True
        return not selection.wants_more

    def _search_groups(self, connection: Connection, selection: RunSelection) -> None:
        """Place runs of the jobs that have room. That ends: each query leaves out the jobs that were found
        to be blocked, and reads more runs than the last one."""
        live = queue_groups.live_jobs(connection)
        self._load_jobs(connection, {job.id: job.edition for job in live}, selection.placement)
        limit = self._batch_max
        while selection.wants_more:
            jobs_open = selection.placement.open_jobs(job.id for job in live)
            found = self._groups.find(connection, jobs_open, limit=limit)
            self._place(connection, selection, found)
            if len(found) < limit:
                return
            limit *= WIDEN_FACTOR

    def _place(
        self, connection: Connection, selection: RunSelection, found: Sequence[DueRun]
    ) -> None:
        one_of_each = {run.job_id: run for run in found}
        asked = {job_id: run.job_edition for job_id, run in one_of_each.items()}
        placement = selection.placement
        self._load_jobs(connection, asked, placement)
        if uncounted := placement.uncounted_keys(found):
            held = capacity.held_by_key(connection, {key for _, key in uncounted})
            placement.count_keys(uncounted, held)
        selection.place(found)

    def _knows(self, job_id: int, edition: JobEdition) -> bool:
        job = self._jobs.get(job_id)
        return job is not None and job.edition == edition

    def _load_jobs(
        self, connection: Connection, asked: Mapping[int, JobEdition], placement: Placement
    ) -> None:
        """The definitions as they are now: a disabled or removed job is blocked."""
        changed = {job_id for job_id, edition in asked.items() if not self._knows(job_id, edition)}
        self._jobs.update(jobs.get_many(connection, changed, known=self._jobs))
        self._block_disabled(placement, asked)

    def _block_disabled(self, placement: Placement, job_ids: Iterable[int]) -> None:
        placement.blocked_jobs.update(
            job_id
            for job_id in job_ids
            if not self._jobs[job_id].spec.enabled or self._jobs[job_id].deleted_at
        )
