"""A worker: takes what was given to it, executes it, and says how it ended.

`tick` is one bounded step, one transaction: write what handlers said, end what ended (with its retry), begin
what was given to us. A slot is free only after the database has accepted the end. What the database does
not accept is not ours any more: it is stopped and nothing of it is written.

If a transaction's answer is lost we do not know what was committed. The next tick reads it back: ends that
were accepted are simply not accepted twice, and runs that were begun in our name are executed. A commit may
still be under way by then, so for a while every look reads back.

What the leader of our own process gives to us begins in the very statement that gives it (`taking`), and
arrives in memory.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from random import Random

from tsuzuki.engine.desk import Desk, Papers, write_papers
from tsuzuki.engine.endings import ending_of, retry_after_of
from tsuzuki.engine.outcome import Outcome, StopCause
from tsuzuki.engine.retrier import retry_for, store_retries
from tsuzuki.engine.role import Identity, register
from tsuzuki.engine.slots import Slots
from tsuzuki.engine.taking import Taking, tasks_of
from tsuzuki.engine.task import Executor, Task
from tsuzuki.engine.worked import Worked
from tsuzuki.model.clock import Clock
from tsuzuki.model.job import Job
from tsuzuki.model.run import WorkOrder
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import RunState
from tsuzuki.model.worker import WorkerState
from tsuzuki.store import dispatch, jobs, moves, notices, workers
from tsuzuki.store.database import Connection, Database
from tsuzuki.store.moves import Ending

ENDINGS_MAX = 500
"""At most so many ends in one transaction."""

DOUBT_SECONDS = 30.0
"""So long after a lost answer the database may still carry out what we asked for."""


class Worker:
    """Not thread-safe but for `tell_ended`, which executions call from their own threads, `stop_all`,
    `cut_off` and `decline`, and `taking`, which is the leader's."""

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
        """Whether it takes what is new: not when it is to leave, nor after having been cut off."""
        self._is_to_leave = False
        self._database = database
        self._clock = clock
        self._random = random
        self._settings = settings
        self._wake = wake
        self._leads_here = leads_here
        self.tell_begun: Callable[[Sequence[Task]], None] = lambda _tasks: None
        """Hears of what the leader's thread has begun in our name, in that thread."""
        self.desk = Desk(
            database=database, clock=clock, settings=settings, worker_id=lambda: self.identity.id
        )
        self._slots = Slots(
            executor=executor, surroundings=self.desk, done=self.tell_ended, clock=clock
        )
        self._executor = executor
        self._arrived: deque[Task] = deque()
        self._arriving = threading.Lock()
        """Held while something is begun in the database and is not in our hands yet, and by whoever must
        not miss that: to change our name, or to say that we take nothing more."""
        self._outcomes: deque[tuple[Task, Outcome]] = deque()
        self._unsaved: dict[int, tuple[Task, Ending, Outcome]] = {}
        self._jobs: dict[int, Job] = {}
        self._is_uncertain = False
        self._doubts_until = 0.0

    # --- what the process asks for --------------------------------------------------------------

    def register(self) -> None:
        with self._database.write() as connection:
            register(connection, self.identity)

    def become(self, identity: Identity) -> bool:
        """Start again under a new name, after having been cut off. False, and nothing has changed, if
        anything still runs: the leader may have begun something in our name at the last moment."""
        with self._arriving:
            if self.running:
                return False
            with self._database.write() as connection:
                former = workers.get(connection, self.identity.id)
                workers.drop_name(connection, self.identity.id)
                register(connection, identity)
            self.identity = identity
        self._slots.open_again()
        # Sent away under the name that it had: it may not have heard of it.
        self._is_to_leave = former is not None and former.state is WorkerState.DRAINING
        self.accepting = not self._is_to_leave
        return True

    def leave(self) -> frozenset[int]:
        """Hand back what has not begun, and say goodbye. Answers what was handed back."""
        self.decline()
        with self._database.write() as connection:
            handed_back = self._hand_back(connection)
            workers.leave(connection, self.identity.id)
            notices.notify(connection, notices.Audience.LEADER)
        return handed_back

    def decline(self) -> None:
        """Take nothing new from now on, and leave when what runs has ended: said with the next look."""
        with self._arriving:
            self._is_to_leave = True
            self.accepting = False

    def stop_taking(self) -> frozenset[int]:
        """Take nothing new, and let others have what has not begun. Answers what that is."""
        self.decline()
        with self._database.write() as connection:
            handed_back = self._decline(connection)
            notices.notify(connection, notices.Audience.LEADER)
        return handed_back

    def cut_off(self) -> None:
        """Nothing here may go on, under this name. Not the same as leaving: we come back under another.
        Waits for nothing, because the leader's thread may hang with what we would wait for."""
        self.accepting = False
        self.stop_all(StopCause.NOT_CONFIRMED, at_once=True)

    def stop_all(self, cause: StopCause, *, at_once: bool = False) -> None:
        """End every execution, also what is just being begun. Their outcomes come in as usual."""
        self._slots.stop_all(cause, at_once=at_once)

    @contextmanager
    def taking(self) -> Iterator[Taking]:
        """Around what the leader of this process does to give work to us."""
        with self._arriving:
            taking = Taking(self.identity.id if self.accepting else None)
            try:
                yield taking
            except BaseException:
                self._doubt()
                self._wake()
                raise
            self._receive(taking.tasks)

    def _receive(self, tasks: Sequence[Task]) -> None:
        """In the leader's thread: begin what that does not hold up, and leave the rest to ours."""
        handlers = {task.spec.handler for task in tasks}
        quick = {name for name in handlers if self._executor.begins_at_once(name)}
        at_once = [task for task in tasks if task.spec.handler in quick]
        later = [task for task in tasks if task.spec.handler not in quick]
        self._slots.launch(at_once)
        self._arrived.extend(later)
        if later:
            self._wake()
        if at_once:
            self.tell_begun(at_once)

    def rouse(self) -> None:
        """Our own thread must know of what runs: it writes what that says, and stops it in time."""
        self._wake()

    @property
    def worker_id(self) -> str:
        return self.identity.id

    @property
    def running(self) -> int:
        return len(self._slots) + len(self._arrived)

    @property
    def free(self) -> int:
        return self.identity.capacity - self.running

    # --- the step -------------------------------------------------------------------------------

    def tick(self, *, look_around: bool = True) -> Worked:
        """One step. `look_around` also checks whether what we run is still ours."""
        self._slots.stop_overdue()
        endings = self._collect_endings()
        papers = self.desk.take()
        reads_back = self._is_uncertain or (look_around and self._is_in_doubt())
        if not (endings or papers or look_around or reads_back):
            return Worked()
        with self._arriving if reads_back else nullcontext():
            try:
                worked = self._exchange(
                    endings, papers, look_around=look_around, reads_back=reads_back
                )
            except BaseException:
                self.desk.put_back(papers)
                self._doubt()
                raise
            self._settle(worked)
        return worked

    def begin_arrived(self) -> list[Task]:
        """Execute what the leader of this process has begun in our name. Answers what that is."""
        arrived = [self._arrived[i] for i in range(len(self._arrived))]
        self._slots.launch(arrived)
        for _ in arrived:
            self._arrived.popleft()
        return arrived

    def seconds_to_next_deadline(self) -> float | None:
        """When `tick` must be called again because something runs out of time."""
        return self._slots.seconds_to_next_deadline()

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
        reads_back: bool,
    ) -> Worked:
        worked = Worked()
        with self._database.write() as connection:
            write_papers(connection, papers, worker_id=self.identity.id)
            self._end(connection, endings, worked)
            if reads_back:
                self._read_back(connection, worked)
            if look_around and self._slots:
                self._find_lost(connection, endings, worked)
            room = self.free + len(endings) - len(worked.started)
            if not self.accepting and look_around:
                self._decline(connection)
            elif self.accepting and room > 0 and (look_around or not self._leads_here()):
                self._begin(connection, room, worked)
            if worked.ended and not self._leads_here():
                notices.notify(connection, notices.Audience.LEADER)
        if reads_back:
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
        begun = moves.start(connection, worker_id=self.identity.id, runs=waiting)
        chosen = [begun[run.id] for run in waiting if run.id in begun]
        worked.started.extend(self._tasks(connection, chosen))

    def _read_back(self, connection: Connection, worked: Worked) -> None:
        """After a lost answer: execute what was begun in our name and never reached us."""
        arrived = {task.started.id for task in self._arrived}
        unknown = [
            run
            for run in dispatch.running_on(connection, worker_id=self.identity.id)
            if run.id not in self._slots and run.id not in arrived
        ]
        worked.started.extend(self._tasks(connection, unknown))

    def _find_lost(
        self,
        connection: Connection,
        endings: Sequence[tuple[Task, Ending, Outcome]],
        worked: Worked,
    ) -> None:
        ending_ids = {task.started.id for task, _, _ in endings}
        held = [task for task in self._slots.tasks() if task.started.id not in ending_ids]
        ours = dispatch.still_ours(
            connection, worker_id=self.identity.id, runs=[task.started for task in held]
        )
        worked.lost = [task for task in held if task.started.id not in ours]

    def _tasks(self, connection: Connection, begun: Sequence[WorkOrder]) -> list[Task]:
        job_ids = {run.job_definition_id for run in begun}
        self._jobs.update(jobs.get_many(connection, job_ids, known=self._jobs))
        return tasks_of(connection, begun, self._jobs)

    def _decline(self, connection: Connection) -> frozenset[int]:
        """Said again with each look: the first time may not have got through, and something may
        have been given to us at the same moment."""
        if self._is_to_leave:
            workers.drain(connection, [self.identity.id])
        return self._hand_back(connection)

    def _hand_back(self, connection: Connection) -> frozenset[int]:
        waiting = dispatch.inbox(
            connection, worker_id=self.identity.id, limit=self.identity.capacity * 2 + 100
        )
        return moves.hand_back(connection, worker_id=self.identity.id, runs=waiting)

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
            self._slots.stop(task.started.id, StopCause.FENCED)
        self._slots.launch(worked.started)

    def _release(self, tasks: Sequence[Task]) -> None:
        ids = [task.started.id for task in tasks]
        self._slots.release(ids)
        self.desk.forget(ids)

    def _doubt(self) -> None:
        self._is_uncertain = True
        self._doubts_until = self._clock.monotonic() + DOUBT_SECONDS

    def _is_in_doubt(self) -> bool:
        return self._clock.monotonic() < self._doubts_until
