"""A worker: takes what was given to it, executes it, and says how it ended.

`tick` is one bounded step, one transaction: write what handlers said, end what ended (with its retry), begin
what was given to us. A slot is free only after the database has accepted the end. What the database does
not accept is not ours any more: it is stopped and nothing of it is written.

If a transaction's answer is lost we do not know what was committed. The next tick reads it back: ends that
were accepted are simply not accepted twice, and runs that were begun in our name are executed.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from tsuzuki.engine.desk import Desk, Papers, write_papers
from tsuzuki.engine.endings import ending_of, retry_after_of
from tsuzuki.engine.outcome import Failed, Outcome, StopCause
from tsuzuki.engine.retrier import retry_for, store_retries
from tsuzuki.engine.task import Execution, Executor, Task
from tsuzuki.model.clock import Clock
from tsuzuki.model.job import Job
from tsuzuki.model.run import RunRef, WorkOrder
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import Reason, RunState
from tsuzuki.store import dispatch, events, jobs, moves, notices, workers
from tsuzuki.store.database import Connection, Database
from tsuzuki.store.moves import Ending, Started

ENDINGS_MAX = 500
"""At most so many ends in one transaction."""


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Who a worker is. `id` is new at every start, and after having been cut off."""

    id: str
    host: str
    pid: int
    capacity: int
    tags: frozenset[str]
    software_version: str


@dataclass(kw_only=True)
class Worked:
    """What one tick did."""

    ended: list[tuple[Task, Ending]] = field(default_factory=list)
    refused: list[Task] = field(default_factory=list)
    started: list[Task] = field(default_factory=list)
    lost: list[Task] = field(default_factory=list)
    retries: int = 0

    @property
    def did_something(self) -> bool:
        return bool(self.ended or self.started or self.refused or self.lost)


class _Slot:
    """A place taken by a task. `deadline` is by the monotonic clock."""

    __slots__ = ("deadline", "execution", "task")

    def __init__(self, task: Task, now: float) -> None:
        timeout = task.spec.timeout_seconds
        self.task = task
        self.execution: Execution | None = None
        self.deadline = None if timeout is None else now + timeout


class Worker:
    """Not thread-safe but for `tell_ended`, which executions call from their own threads."""

    def __init__(
        self,
        *,
        identity: Identity,
        database: Database,
        executor: Executor,
        clock: Clock,
        random: Random,
        settings: Callable[[], EngineSettings],
        wake: Callable[[], None],
        leads_here: Callable[[], bool] = lambda: False,
    ) -> None:
        self.identity = identity
        self.accepting = True
        self._database = database
        self._executor = executor
        self._clock = clock
        self._random = random
        self._settings = settings
        self._wake = wake
        self._leads_here = leads_here
        self.desk = Desk(
            database=database, clock=clock, settings=settings, worker_id=lambda: self.identity.id
        )
        self._slots: dict[int, _Slot] = {}
        self._outcomes: deque[tuple[Task, Outcome]] = deque()
        self._unsaved: dict[int, tuple[Task, Ending, Outcome]] = {}
        self._jobs: dict[int, Job] = {}
        self._is_uncertain = False
        self._slots_lock = threading.Lock()
        self._stop_order: tuple[StopCause, bool] | None = None

    # --- what the process asks for --------------------------------------------------------------

    def register(self) -> None:
        with self._database.write() as connection:
            who = self.identity
            workers.register(
                connection,
                worker_id=who.id,
                host=who.host,
                pid=who.pid,
                capacity=who.capacity,
                tags=who.tags,
                software_version=who.software_version,
            )
            notices.notify(connection, notices.Audience.LEADER)

    def become(self, identity: Identity) -> None:
        """Start again under a new name, after having been cut off with nothing left running."""
        if self._slots:
            raise RuntimeError("a worker that still runs something cannot change its name")
        self.identity = identity
        self.register()
        self._stop_order = None
        self.accepting = True

    def leave(self) -> frozenset[int]:
        """Hand back what has not begun, and say goodbye. Answers what was handed back."""
        with self._database.write() as connection:
            handed_back = self._hand_back(connection)
            workers.leave(connection, self.identity.id)
            notices.notify(connection, notices.Audience.LEADER)
        return handed_back

    def stop_taking(self) -> frozenset[int]:
        """Take nothing new, and let others have what has not begun. Answers what that is."""
        self.accepting = False
        with self._database.write() as connection:
            handed_back = self._decline(connection)
            notices.notify(connection, notices.Audience.LEADER)
        return handed_back

    def stop_all(self, cause: StopCause, *, at_once: bool = False) -> None:
        """End every execution, also what is just being begun. Their outcomes come in as usual."""
        with self._slots_lock:
            self._stop_order = (cause, at_once)
            slots = list(self._slots.values())
        for slot in slots:
            if slot.execution is not None:
                slot.execution.stop(cause, at_once=at_once)

    @property
    def running(self) -> int:
        return len(self._slots)

    @property
    def free(self) -> int:
        return self.identity.capacity - len(self._slots)

    # --- the step -------------------------------------------------------------------------------

    def tick(self, *, look_around: bool = True) -> Worked:
        """One step. `look_around` also checks whether what we run is still ours."""
        self._stop_overdue()
        endings = self._collect_endings()
        papers = self.desk.take()
        if not (endings or papers or look_around or self._is_uncertain):
            return Worked()
        try:
            worked = self._exchange(endings, papers, look_around=look_around)
        except BaseException:
            self.desk.put_back(papers)
            self._is_uncertain = True
            raise
        self._settle(worked)
        return worked

    def seconds_to_next_deadline(self) -> float | None:
        """When `tick` must be called again because something runs out of time."""
        deadlines = [slot.deadline for slot in self._slots.values() if slot.deadline is not None]
        return max(min(deadlines) - self._clock.monotonic(), 0.0) if deadlines else None

    def has_news(self) -> bool:
        """Whether a tick would have something to write."""
        return bool(self._outcomes or self._unsaved)

    def tell_ended(self, task: Task, outcome: Outcome) -> None:
        """An execution has ended. Called once per task, from any thread."""
        self._outcomes.append((task, outcome))
        self._wake()

    # --- inside the transaction -----------------------------------------------------------------

    def _exchange(
        self,
        endings: Sequence[tuple[Task, Ending, Outcome]],
        papers: Papers,
        *,
        look_around: bool,
    ) -> Worked:
        worked = Worked()
        with self._database.write() as connection:
            write_papers(connection, papers, worker_id=self.identity.id)
            self._end(connection, endings, worked)
            if self._is_uncertain:
                self._read_back(connection, worked)
            if look_around and self._slots:
                self._find_lost(connection, endings, worked)
            room = self.identity.capacity - len(self._slots) + len(endings) - len(worked.started)
            if not self.accepting and look_around:
                self._decline(connection)
            elif self.accepting and room > 0:
                self._begin(connection, room, worked)
            if worked.ended and not self._leads_here():
                notices.notify(connection, notices.Audience.LEADER)
        self._is_uncertain = False
        return worked

    def _end(
        self,
        connection: Connection,
        endings: Sequence[tuple[Task, Ending, Outcome]],
        worked: Worked,
    ) -> None:
        took = moves.finish(
            connection, worker_id=self.identity.id, endings=[ending for _, ending, _ in endings]
        )
        accepted = [entry for entry in endings if entry[0].started.id in took]
        worked.ended = [(task, ending) for task, ending, _ in accepted]
        worked.refused = [task for task, _, _ in endings if task.started.id not in took]
        badly = [entry for entry in accepted if entry[1].state is not RunState.SUCCEEDED]
        if not badly:
            return
        now = self._database.now(connection)
        worked.retries = store_retries(
            connection,
            (
                retry_for(
                    task.run,
                    task.spec,
                    state=ending.state,
                    reason=ending.reason,
                    now=now,
                    random=self._random,
                    losses_max=self._settings().max_orphans,
                    retry_after_seconds=retry_after_of(outcome),
                )
                for task, ending, outcome in badly
            ),
        )

    def _begin(self, connection: Connection, room: int, worked: Worked) -> None:
        waiting = dispatch.inbox(connection, worker_id=self.identity.id, limit=room)
        started = moves.start(
            connection,
            worker_id=self.identity.id,
            runs=[RunRef(run.id, run.version) for run in waiting],
        )
        chosen = [(run, started[run.id]) for run in waiting if run.id in started]
        worked.started.extend(self._tasks(connection, chosen))

    def _read_back(self, connection: Connection, worked: Worked) -> None:
        """After a lost answer: execute what was begun in our name and never reached us."""
        unknown = [
            (run, Started(id=run.id, version=run.version, epoch=run.leader_epoch))
            for run in dispatch.running_on(connection, worker_id=self.identity.id)
            if run.id not in self._slots and run.leader_epoch is not None
        ]
        worked.started.extend(self._tasks(connection, unknown))

    def _find_lost(
        self,
        connection: Connection,
        endings: Sequence[tuple[Task, Ending, Outcome]],
        worked: Worked,
    ) -> None:
        ending_ids = {task.started.id for task, _, _ in endings}
        held = [s.task for s in self._slots.values() if s.task.started.id not in ending_ids]
        ours = dispatch.still_ours(
            connection, worker_id=self.identity.id, runs=[task.started for task in held]
        )
        worked.lost = [task for task in held if task.started.id not in ours]

    def _tasks(
        self, connection: Connection, chosen: Sequence[tuple[WorkOrder, Started]]
    ) -> list[Task]:
        self._jobs.update(
            jobs.get_many(
                connection, {run.job_definition_id for run, _ in chosen}, known=self._jobs
            )
        )
        event_ids = [run.event_id for run, _ in chosen if run.event_id is not None]
        payloads = events.payloads(connection, event_ids)
        return [
            Task(
                run=run,
                started=started,
                spec=self._jobs[run.job_definition_id].spec,
                event=payloads.get(run.event_id) if run.event_id is not None else None,
            )
            for run, started in chosen
        ]

    def _decline(self, connection: Connection) -> frozenset[int]:
        """Said again with each look: the first time may not have got through, and something may
        have been given to us at the same moment."""
        workers.drain(connection, [self.identity.id])
        return self._hand_back(connection)

    def _hand_back(self, connection: Connection) -> frozenset[int]:
        waiting = dispatch.inbox(
            connection, worker_id=self.identity.id, limit=self.identity.capacity * 2 + 100
        )
        return moves.hand_back(
            connection,
            worker_id=self.identity.id,
            runs=[RunRef(run.id, run.version) for run in waiting],
        )

    # --- around it ------------------------------------------------------------------------------

    def _collect_endings(self) -> list[tuple[Task, Ending, Outcome]]:
        while self._outcomes and len(self._unsaved) < ENDINGS_MAX:
            task, outcome = self._outcomes.popleft()
            ending = ending_of(task, outcome)
            if ending is None:
                self._release([task])
            else:
                self._unsaved[task.started.id] = (task, ending, outcome)
        return list(self._unsaved.values())

    def _settle(self, worked: Worked) -> None:
        """What the transaction has made true, made true here."""
        over = [*(task for task, _ in worked.ended), *worked.refused]
        for task in over:
            self._unsaved.pop(task.started.id, None)
        self._release(over)
        for task in worked.lost:
            slot = self._slots.get(task.started.id)
            if slot is not None and slot.execution is not None:
                slot.execution.stop(StopCause.FENCED)
        self._launch(worked.started)

    def _launch(self, tasks: Sequence[Task]) -> None:
        now = self._clock.monotonic()
        slots = [_Slot(task, now) for task in tasks]
        with self._slots_lock:
            self._slots.update((slot.task.started.id, slot) for slot in slots)
        for slot in slots:
            task = slot.task
            try:
                slot.execution = self._executor.begin(task, self.desk, self.tell_ended)
            except Exception as problem:  # noqa: BLE001 -- the others of this batch must begin
                error = f"it could not be begun: {problem!r}"
                self.tell_ended(task, Failed(reason=Reason.HANDLER_FAILED, error=error))
                continue
            # Looked at after the execution can be seen by `stop_all`, which gives its order before it
            # looks at executions: one of the two always sees the other.
            order = self._stop_order
            if order is not None:
                slot.execution.stop(order[0], at_once=order[1])

    def _release(self, tasks: Sequence[Task]) -> None:
        ids = [task.started.id for task in tasks]
        with self._slots_lock:
            for run_id in ids:
                self._slots.pop(run_id, None)
        self.desk.forget(ids)

    def _stop_overdue(self) -> None:
        now = self._clock.monotonic()
        for slot in self._slots.values():
            if slot.deadline is not None and slot.deadline <= now:
                slot.deadline = None
                if slot.execution is not None:
                    slot.execution.stop(StopCause.TIMEOUT)
