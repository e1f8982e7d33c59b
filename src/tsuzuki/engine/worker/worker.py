"""A worker: starts runs assigned to it, executes them, and reports how they ended.

`tick` is one bounded step with at most one transaction: write buffered output, finish what ended (with its
retry), start what is assigned to us, or have the leader of our own process assign what comes next
(`engine/local_start`). A slot is free only after the database has accepted the end. A run whose end it refuses is not
ours any more: it is stopped, and nothing is written for it.

Every run that is RUNNING in our name enters the slots through one queue, `LocalStart.queue`, and by the
worker's own thread: what we started, what the leader of our own process started for us, and what we find again after a
lost reply.

An error that is not about reaching the database may be due to one run's values: then each run is stored in a
transaction of its own (`storing_singly`).

If the reply to a transaction is lost, we do not know whether it was committed. The next tick reconciles:
ends that were accepted are not accepted twice, and runs that were started in our name are adopted. A commit
may still be under way by then, so for a while every poll reconciles.
"""

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from functools import partial
from random import Random

from tsuzuki.engine.local_start import LocalStart, load_tasks
from tsuzuki.engine.outcome import Outcome, StopCause
from tsuzuki.engine.task import Executor, Task
from tsuzuki.engine.worker.finishing import EndedRun, finish, run_end_of
from tsuzuki.engine.worker.identity import WorkerIdentity, register
from tsuzuki.engine.worker.output_buffer import BufferedOutput, OutputBuffer, write_output
from tsuzuki.engine.worker.run_io import WorkerRunIO
from tsuzuki.engine.worker.slots import Slots
from tsuzuki.engine.worker.step import WorkerStep
from tsuzuki.engine.worker.storing_singly import store_singly
from tsuzuki.model.abilities import Abilities
from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import Unreachable
from tsuzuki.model.job import Job
from tsuzuki.model.run import WorkOrder
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import Reason
from tsuzuki.store import jobs, workers
from tsuzuki.store.runs import cancel_requests, moves, ownership, stacks
from tsuzuki.store.sql.database import Connection, Database
from tsuzuki.store.wakeups import channels
from tsuzuki.store.wakeups.channels import WakeupChannel

RUN_ENDS_MAX = 500
"""Ends per transaction."""

REFILL_ENDS_MAX = 64
"""So many ends at most share a transaction with what is assigned next: it must be short."""

GATHER_SECONDS_MAX = 0.004
GATHER_ENDS_MAX = 32
"""How long a busy worker waits for further ends, and for how many."""


class Worker:
    """Not thread-safe but for `on_outcome`, which executions call from their own threads, `stop_all`,
    `on_detached` and `stop_accepting`."""

    def __init__(
        self,
        *,
        identity: WorkerIdentity,
        database: Database,
        executor: Executor,
        clock: Clock,
        random: Random,
        settings: Callable[[], EngineSettings],
        wake: Callable[[], None],
        abilities: Callable[[], Abilities | None] = lambda: None,
    ) -> None:
        self.identity = identity
        self.accepting = True
        """Whether it starts new runs: not while it drains, nor after having been detached."""
        self._is_draining = False
        self._database = database
        self._clock = clock
        self._random = random
        self._settings = settings
        self._wake = wake
        self._abilities = abilities
        self.local_start = LocalStart(
            clock=clock,
            worker_id=lambda: self.identity.id if self.accepting else None,
            wake=wake,
        )
        """Shared with the leader of this process, if it may lead."""
        self.output = OutputBuffer(clock=clock, settings=settings, wake=wake)
        self.run_io = WorkerRunIO(
            database=database, output=self.output, worker_id=lambda: self.identity.id
        )
        self._slots = Slots(
            executor=executor, run_io=self.run_io, on_outcome=self.on_outcome, clock=clock
        )
        self._being_started = 0
        """So many runs at most are RUNNING in our name once the transaction that is under way is committed."""
        self._outcomes: deque[tuple[Task, Outcome]] = deque()
        self._outcomes_wanted = 1
        """How many are worth a wake-up."""
        self._unsaved: dict[int, EndedRun] = {}
        self.locked_ends: frozenset[int] = frozenset()
        """Those of them whose row another transaction holds: tried again after a while."""
        self._jobs: dict[int, Job] = {}
        self._stacks: deque[tuple[int, str]] = deque()
        """Live stacks that somebody has asked for."""

    @property
    def worker_id(self) -> str:
        return self.identity.id

    @property
    def running(self) -> int:
        return len(self._slots) + len(self.local_start.queue) + self._being_started

    @property
    def free(self) -> int:
        return self.identity.capacity - self.running

    # --- joining and leaving --------------------------------------------------------------------

    def register(self, works_by: EngineSettings | None = None) -> None:
        with self._database.write() as connection:
            register(connection, self.identity, self._abilities(), works_by)

    def reregister(self, identity: WorkerIdentity, works_by: EngineSettings | None = None) -> bool:
        """Join under a new id, after having been detached. False, and nothing has changed, if anything
        still runs: the leader may have started something in our name at the last moment."""
        with self.local_start.lock:
            if self.running:
                return False
            with self._database.write() as connection:
                former = workers.get(connection, self.identity.id)
                # What was assigned to it at the last moment: it would wait until the leader notices its silence.
                self._hand_back(connection)
                workers.retire_id(connection, self.identity.id)
                register(connection, identity, self._abilities(), works_by)
            self.identity = identity
        self._slots.accept_again()
        # An operator may have drained the former id, and no heartbeat has read that yet; even if it was declared
        # lost since.
        self._is_draining = former is not None and former.drain_ordered_at is not None
        self.accepting = not self._is_draining
        return True

    def stop_accepting(self) -> None:
        """Start nothing new from now on, and leave when what runs has ended: written with the next poll."""
        with self.local_start.lock:
            self._is_draining = True
            self.accepting = False

    def drain(self) -> frozenset[int]:
        """Start nothing new, and hand back what has not started. Returns what that is."""
        self.stop_accepting()
        with self._database.write() as connection:
            handed_back = self._decline(connection)
            channels.notify(connection, WakeupChannel.LEADER)
        return handed_back

    def leave(self) -> frozenset[int]:
        """Hand back what has not started, and deregister. Returns what was handed back."""
        self.stop_accepting()
        with self._database.write() as connection:
            handed_back = self._hand_back(connection)
            workers.deregister(connection, self.identity.id)
            channels.notify(connection, WakeupChannel.LEADER)
        return handed_back

    def on_detached(self) -> None:
        """Stop everything at once: nothing may go on under this id. Not the same as draining: we come
        back under another one. Takes no lock, because the leader's thread may hang while it holds it."""
        self.accepting = False
        self.stop_all(StopCause.NOT_CONFIRMED, at_once=True)

    def stop_all(self, cause: StopCause, *, at_once: bool = False) -> None:
        """Stop every execution, also those that are just starting. Their outcomes come in as usual."""
        self._slots.stop_all(cause, at_once=at_once)

    # --- the step -------------------------------------------------------------------------------

    def tick(self, *, poll: bool = True) -> WorkerStep:
        """One step: adopt what is in the queue, or else one transaction. `poll` also starts what is
        assigned to us, and checks that what we run is still ours."""
        self._slots.stop_overdue()
        local = self.local_start
        if local.queue:
            return WorkerStep(started=self._adopt())
        step = WorkerStep()
        taken = len(self._slots)
        ends = self._collect_ends()
        # A slot that is free without an end (its run was taken from us) may be assigned again already.
        poll = poll or len(self._slots) < taken
        output = self.output.take()
        reconciles = local.must_reconcile or (poll and local.may_be_unconfirmed())
        if not (ends or output or poll or reconciles or self._stacks):
            return step
        try:
            with local.lock if reconciles else nullcontext():
                self._transact(step, ends, output, poll=poll, reconciles=reconciles)
        except BaseException as problem:
            local.note_unknown_commit()
            if isinstance(problem, Unreachable) or not isinstance(problem, Exception):
                self.output.put_back(output)
                raise
            return self._store_singly(ends, output, problem)
        self._settle(step)
        return step

    def has_outcomes(self) -> bool:
        """Whether runs have ended whose end is not written yet, and can be written now."""
        return bool(self._outcomes) or len(self._unsaved) > len(self.locked_ends)

    def has_adoptions(self) -> bool:
        """Whether runs are RUNNING in our name that do not execute yet."""
        return bool(self.local_start.queue)

    def seconds_to_next_deadline(self) -> float | None:
        """When `tick` must be called again because a run times out."""
        return self._slots.seconds_to_next_deadline()

    def on_outcome(self, task: Task, outcome: Outcome) -> None:
        """An execution has ended. Called once per task, from any thread."""
        self._outcomes.append((task, outcome))
        if len(self._outcomes) >= self._outcomes_wanted:
            self._wake()

    def gather_ends(self, wait: Callable[[float], object]) -> None:
        """If a run has ended, let others end, so that they share a transaction: until all have, or enough, and only
        for a moment. `wait` waits for our wake-up, at most so many seconds."""
        wanted = min(len(self._slots) - len(self._unsaved), GATHER_ENDS_MAX)
        if self.local_start.queue or not 0 < len(self._outcomes) < wanted:
            return
        self._outcomes_wanted = wanted
        if len(self._outcomes) < wanted:
            wait(GATHER_SECONDS_MAX)
        self._outcomes_wanted = 1

    def _adopt(self) -> list[Task]:
        """Execute every run in the queue. They leave it afterwards, so that `running` never misses one."""
        adopted = [self.local_start.queue[i] for i in range(len(self.local_start.queue))]
        self._slots.start(adopted)
        for _ in adopted:
            self.local_start.queue.popleft()
        return adopted

    # --- inside the transaction -----------------------------------------------------------------

    def _transact(
        self,
        step: WorkerStep,
        ends: Sequence[EndedRun],
        output: BufferedOutput,
        *,
        poll: bool,
        reconciles: bool,
    ) -> None:
        """The transaction of a step. What is started is in the queue after its commit."""
        try:
            with ExitStack() as until_committed, self._database.write() as connection:
                self._store_results(connection, step, ends, output)
                self._store_stacks(connection)
                started = self._reconcile(connection) if reconciles else []
                if poll:
                    step.stopped = self._check_ownership(connection)
                    step.stacks_wanted = self._wanted_stacks(connection)
                started += self._start_or_decline(connection, step, poll=poll, found=len(started))
                if not reconciles and self._may_refill(step, ends):
                    refilling = self.local_start.refilling(connection)
                    step.refilled = until_committed.enter_context(refilling)
                if step.ended and not self.local_start.leads:
                    channels.notify(connection, WakeupChannel.LEADER)
            if reconciles:
                self.local_start.must_reconcile = False
            step.polled = poll
            self.local_start.queue.extend(started)
        finally:
            self._being_started = 0

    def _store_results(
        self,
        connection: Connection,
        step: WorkerStep,
        ends: Sequence[EndedRun],
        output: BufferedOutput,
    ) -> None:
        """Lines and progress of a run are stored before its end, so while they cannot be, the end waits too."""
        step.unwritten = write_output(connection, output, worker_id=self.identity.id)
        step.locked = frozenset(step.unwritten.run_ids)
        finished = finish(
            connection,
            [one for one in ends if one.run_id not in step.locked],
            worker_id=self.identity.id,
            now=self._database.now,
            random=self._random,
            losses_max=self._settings().max_orphans,
        )
        step.ended = [(task, end) for task, end, _ in finished.accepted]
        step.refused = [one.task for one in finished.refused]
        step.locked |= {one.run_id for one in finished.locked}
        step.retries = finished.retries

    def _check_ownership(self, connection: Connection) -> list[tuple[Task, StopCause]]:
        """What executes here and is to be stopped, with the cause.

        A run is lost when an operator canceled it, when the leader replaced it, or when the leader failed it because
        this worker was silent. The worker then stops it, and writes nothing for it. If its handler held its row at that
        moment, the cancel is only requested: the worker stops it, and stores that it was canceled."""
        tasks = [task for task in self._slots.tasks() if task.started.id not in self._unsaved]
        believed = [task.started for task in tasks]
        worker_id = self.worker_id
        if not believed or ownership.owns_exactly(connection, worker_id=worker_id, runs=believed):
            return []
        owned = ownership.still_owned(connection, worker_id=worker_id, runs=believed)
        causes = {
            run_id: StopCause.REPLACED if one.reason is Reason.REPLACED else StopCause.CANCELED
            for run_id, one in cancel_requests.of_runs(connection, owned).items()
        }
        causes |= {run.id: StopCause.FENCED for run in believed if run.id not in owned}
        return [(task, causes[task.started.id]) for task in tasks if task.started.id in causes]

    def _wanted_stacks(self, connection: Connection) -> list[int]:
        """The Python functions that execute here and whose live stack somebody waits for."""
        ids = [task.started.id for task in self._slots.tasks() if task.spec.handler != "command"]
        return stacks.requested(connection, ids) if ids else []

    def _store_stacks(self, connection: Connection) -> None:
        """What is not stored, because the transaction fails, is asked for again."""
        while self._stacks:
            run_id, stack = self._stacks.popleft()
            stacks.store(connection, run_id, stack)

    def _tell_stack(self, run_id: int, stack: str) -> None:
        self._stacks.append((run_id, stack))
        self._wake()

    def _start_or_decline(
        self, connection: Connection, step: WorkerStep, *, poll: bool, found: int
    ) -> list[Task]:
        """Start what is assigned to us, as far as slots are free; or hand it back if we accept nothing any more. What
        the leader of our own process assigns to us is started already: then only a poll looks. `found` runs that were
        reconciled take a slot too."""
        if not self.accepting:
            if poll:
                self._decline(connection)
            return []
        free = self.free + len(step.ended) + len(step.refused) - found
        looks = poll or not self.local_start.leads
        return self._start_assigned(connection, free) if looks and free > 0 else []

    def _may_refill(self, step: WorkerStep, ends: Sequence[EndedRun]) -> bool:
        """Only with few ends, for which a commit of its own would cost most; and not while an error may repeat: the
        ends must be stored."""
        is_simple = len(ends) <= REFILL_ENDS_MAX and not self.local_start.may_be_unconfirmed()
        return is_simple and self.accepting and bool(step.ended or step.refused)

    def _store_singly(
        self, ends: Sequence[EndedRun], output: BufferedOutput, problem: Exception
    ) -> WorkerStep:
        """After an error that is not about reaching the database: a retry of the whole may fail the same way. Without
        anything that was refused the cause is elsewhere, and the step has the problem."""
        left = output.by_run()
        try:
            step = store_singly(self._store, left, ends, now=self._clock.now())
        finally:
            for part in left.values():
                self.output.put_back(part)
        if not step.replaced:
            step.problem = step.problem or problem
        self._settle(step)
        return step

    def _store(self, output: BufferedOutput, ends: Sequence[EndedRun]) -> WorkerStep:
        step = WorkerStep()
        with self._database.write() as connection:
            self._store_results(connection, step, ends, output)
            if step.ended:
                channels.notify(connection, WakeupChannel.LEADER)
        return step

    def _start_assigned(self, connection: Connection, free: int) -> list[Task]:
        assigned = ownership.assigned_to_worker(connection, worker_id=self.identity.id, limit=free)
        # Before their rows are locked: a drain in another thread skips locked rows, and then waits for what runs.
        self._being_started = len(assigned)
        orders = moves.start(connection, worker_id=self.identity.id, runs=assigned)
        return self._tasks(connection, [orders[run.id] for run in assigned if run.id in orders])

    def _reconcile(self, connection: Connection) -> list[Task]:
        """After a lost reply: runs that were started in our name and are not here."""
        queued = {task.started.id for task in self.local_start.queue}
        unknown = [
            run
            for run in ownership.running_on_worker(connection, worker_id=self.identity.id)
            if run.id not in self._slots and run.id not in queued
        ]
        return self._tasks(connection, unknown)

    def _tasks(self, connection: Connection, orders: Sequence[WorkOrder]) -> list[Task]:
        job_ids = {run.job_definition_id for run in orders}
        self._jobs.update(jobs.get_many(connection, job_ids, known=self._jobs))
        return load_tasks(connection, orders, self._jobs)

    def _decline(self, connection: Connection) -> frozenset[int]:
        """Done again with each poll: the first time may have failed, and a run may have been assigned to us
        at the same moment (a race)."""
        if self._is_draining:
            workers.drain(connection, [self.identity.id])
        return self._hand_back(connection)

    def _hand_back(self, connection: Connection) -> frozenset[int]:
        assigned = ownership.assigned_to_worker(
            connection, worker_id=self.identity.id, limit=self.identity.capacity * 2 + 100
        )
        return moves.hand_back(connection, worker_id=self.identity.id, runs=assigned)

    # --- around it ------------------------------------------------------------------------------

    def _collect_ends(self) -> list[EndedRun]:
        while self._outcomes and len(self._unsaved) < RUN_ENDS_MAX:
            task, outcome = self._outcomes.popleft()
            end = run_end_of(task, outcome)
            if end is None:
                self._release([task])
            else:
                self.output.end_log(task)
                self._unsaved[task.started.id] = EndedRun(task, end, outcome)
        return list(self._unsaved.values())

    def _settle(self, step: WorkerStep) -> None:
        """After the commit: free the slots of what ended, stop what was lost, adopt what was started."""
        if step.unwritten:
            self.output.put_back(step.unwritten)
        self.locked_ends = step.locked & self._unsaved.keys()
        over = [*(task for task, _ in step.ended), *step.refused]
        for task in over:
            self._unsaved.pop(task.started.id, None)
        self._release(over)
        for task, cause in step.stopped:
            self._slots.stop(task.started.id, cause)
        for run_id in step.stacks_wanted:
            self._slots.dump_stack(run_id, partial(self._tell_stack, run_id))
        step.started = self._adopt()

    def _release(self, tasks: Sequence[Task]) -> None:
        ids = [task.started.id for task in tasks]
        self._slots.release(ids)
        self.output.forget(ids)
