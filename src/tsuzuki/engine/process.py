"""One process of the engine: its parts, its loops, and how they start and stop.

Leading has threads of its own, and so has the heartbeat: a busy handler delays neither. Stopping is in three
steps: start nothing new, wait for what runs, then stop it and hand it back. Asked twice, it skips the wait.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from random import Random

from tsuzuki.engine.archive.archivist import Archivist
from tsuzuki.engine.archive.log_archive import LogArchive
from tsuzuki.engine.archive.retention import Retention
from tsuzuki.engine.archive.rollups import HourlyRollups
from tsuzuki.engine.coordination.protocol import Coordination, NoCoordination
from tsuzuki.engine.coordination.steps import CoordinationSteps
from tsuzuki.engine.death_watch import DeathWatch
from tsuzuki.engine.leader.leader import Leader
from tsuzuki.engine.leader.lease import Lease
from tsuzuki.engine.leader.silence_guard import SilenceGuard
from tsuzuki.engine.leader.steps import LeaderSteps
from tsuzuki.engine.lock_watch import LockWatch
from tsuzuki.engine.log import log
from tsuzuki.engine.loop import Loop
from tsuzuki.engine.loop_health import LoopHealth
from tsuzuki.engine.metrics import Metrics
from tsuzuki.engine.process_files import ProcessFiles
from tsuzuki.engine.role import ProcessRole
from tsuzuki.engine.settings_cache import SettingsCache
from tsuzuki.engine.task import Executor
from tsuzuki.engine.wakeups import ProcessWakeUps, WakeUpListener
from tsuzuki.engine.worker.abilities import FindAbilities, WorkerAbilities
from tsuzuki.engine.worker.heartbeat import Heartbeat
from tsuzuki.engine.worker.identity import WorkerIdentity, new_identity
from tsuzuki.engine.worker.steps import LISTENING_FACTOR, WorkerSteps
from tsuzuki.engine.worker.worker import Worker
from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import SchemaMismatch, Unreachable
from tsuzuki.model.secrets import mask_secrets
from tsuzuki.model.states import RunState
from tsuzuki.store.runs import queue
from tsuzuki.store.schema.migrate import ENGINE, Component, SchemaWatch
from tsuzuki.store.sql.database import Connection, Database

WORKER_LOOPS = frozenset({"work", "heartbeat", "watch", "silence"})
"""The loops that what runs needs, until the process ends."""

LOOP_SECONDS_MAX = 5.0
"""How long a shutdown waits for the step that a loop is in."""


class Engine:
    """Everything of one process. Built stopped; `start`, then `shut_down`."""

    def __init__(  # noqa: PLR0913 -- here all parts of a process meet
        self,
        *,
        database: Database,
        executor: Executor,
        clock: Clock,
        random: Random,
        role: ProcessRole,
        software_version: str,
        components: Callable[[], Iterable[Component]] = lambda: (ENGINE,),
        metrics: Metrics | None = None,
        archive: LogArchive | None = None,
        coordination: Coordination | None = None,
        renew_deadline: Callable[[float], None] = lambda _at: None,
        hide_secrets: Callable[[str], str] = mask_secrets,
        find_abilities: FindAbilities | None = None,
        process_files: ProcessFiles | None = None,
    ) -> None:
        """`renew_deadline` is called with the monotonic time at which what this process executes must end, if
        no further heartbeat is stored. `hide_secrets` masks what is logged of errors. `find_abilities` tells what its
        worker can execute; without it the worker takes every run. `process_files` prove to others on this machine that
        this process has ended; without them its death is noticed by its silence."""
        self.coordination = coordination or NoCoordination()
        self.metrics = metrics or Metrics()
        self.role = role
        self.wakeups = ProcessWakeUps(clock, worker_id=lambda: self.worker.identity.id)
        self.settings = SettingsCache(
            database=database, clock=clock, check_schema=self._check_schema
        )
        self._schema = SchemaWatch(components)
        self._software_version = software_version
        self._database = database
        self._executor = executor
        self._clock = clock
        self._jitter = random
        self._renew_deadline = renew_deadline
        self._hide_secrets = hide_secrets
        self._abilities = (
            WorkerAbilities(database=database, find=find_abilities) if find_abilities else None
        )
        self._lock_watch = LockWatch(database=database, settings=self.settings)
        self._loops: list[Loop] = []
        self._process_files = process_files
        self._build(archive)
        self.outdated: SchemaMismatch | None = None
        """Set when a newer version upgraded the database."""

    @property
    def database(self) -> Database:
        return self._database

    @property
    def fatal(self) -> Unreachable | None:
        """Why this process must end: a newer version upgraded the database, or its file is gone."""
        return self.outdated or self._database.replaced

    @property
    def drained(self) -> threading.Event:
        """Set when the worker has left, at a shutdown or by an operator's order."""
        return self.worker_steps.drained

    @property
    def ended(self) -> Counter[RunState]:
        """How runs that were executed here have ended."""
        return self.worker_steps.ended

    # --- its parts, which know each other only through their constructors -------------------------

    def _build(self, archive: LogArchive | None) -> None:
        first = self._new_identity()
        self.name = first.id
        """Of this process: the id that it leads by, and the first one of its worker."""
        identity = replace(first, process_name=self.name)
        silence_guard = SilenceGuard(
            clock=self._clock,
            settings=self.settings,
            lock_waited_until=self._lock_waited_until,
        )
        self.lease = Lease(
            database=self._database,
            clock=self._clock,
            settings=self.settings,
            holder=identity.id,
            on_database_time=silence_guard.observe,
        )
        self.listener = WakeUpListener(
            database=self._database, wakeups=self.wakeups, channels=self.role.channels
        )
        self.worker = Worker(
            identity=identity,
            database=self._database,
            executor=self._executor,
            clock=self._clock,
            random=self._jitter,
            settings=self.settings,
            wake=self.wakeups.worker.wake,
            abilities=lambda: self._abilities.current if self._abilities else None,
        )
        self.heartbeat = Heartbeat(
            database=self._database,
            clock=self._clock,
            settings=self.settings,
            worker_id=lambda: self.worker.identity.id,
            renew_deadline=self._renew_deadline,
        )
        self.archivist = Archivist(
            database=self._database, settings=self.settings, archive=archive, clock=self._clock
        )
        self.leader = Leader(
            database=self._database,
            settings=self.settings,
            random=self._jitter,
            coordination=self.coordination,
            local_start=self.worker.local_start if self.role.work else None,
            silence_guard=silence_guard,
        )
        self.worker.local_start.led_by(
            term=lambda: self.lease.term, refill=self.leader.assigner.refilling
        )
        self.health = LoopHealth(
            database=self._database, process=identity.id, hide_secrets=self._hide_secrets
        )
        self.death_watch = (
            DeathWatch(
                database=self._database,
                files=self._process_files,
                jitter=self._jitter,
                on_call=self._look_for_a_free_lease,
            )
            if self._process_files is not None
            else None
        )
        self._build_steps()

    def _look_for_a_free_lease(self) -> None:
        for loop in self._loops:
            if loop.name == "lease":
                loop.wake()

    def _build_steps(self) -> None:
        self.leader_steps = LeaderSteps(
            lease=self.lease,
            leader=self.leader,
            retention=Retention(
                rollups=HourlyRollups(database=self._database), archivist=self.archivist
            ),
            settings=self.settings,
            metrics=self.metrics,
            wakeup=self.wakeups.leader,
            listener=self.listener,
            jitter=self._jitter,
        )
        self.worker_steps = WorkerSteps(
            worker=self.worker,
            heartbeat=self.heartbeat,
            coordination=self.coordination,
            settings=self.settings,
            metrics=self.metrics,
            wakeups=self.wakeups,
            listener=self.listener,
            clock=self._clock,
            jitter=self._jitter,
            new_identity=lambda: replace(self._new_identity(), process_name=self.name),
            stays_to_lead=self.role.lead,
            hide_secrets=self._hide_secrets,
        )
        self.coordination_steps = CoordinationSteps(
            coordination=self.coordination,
            wakeups=self.wakeups,
            settings=self.settings,
            live_worker_id=self.worker_steps.live_worker_id,
        )

    def _lock_waited_until(self, longer_than_seconds: float) -> float:
        """When our last wait for SQLite's write lock ended that was longer: now, if our own heartbeat still waits, for
        then those of other workers may wait too."""
        if self._database.is_sqlite and self.heartbeat.sending_seconds() > longer_than_seconds:
            return self._clock.monotonic()
        return self._database.lock_waited_until(longer_than_seconds=longer_than_seconds)

    def _new_identity(self) -> WorkerIdentity:
        return new_identity(self.role, software_version=self._software_version)

    # --- its life -------------------------------------------------------------------------------

    def start(self) -> None:
        self._database.name_sessions(f"{self.role.name} {self.worker.identity.process}")
        self.settings.refresh()
        if self._process_files is not None:
            self._process_files.lock(self.name)
        if self.role.work:
            if self._abilities is not None:
                self._abilities.refresh()
            self.worker_steps.register()
        self._loops = [
            Loop(name, step, clock=self._clock, on_error=self.metrics.count_error)
            for name, step in self._steps().items()
        ]
        self.health.loops = self._loops
        if self._database.path is not None:
            self.metrics.watch_wal(str(self._database.path), lambda: self._database.wal_bytes)
        for loop in self._loops:
            self.metrics.watch_loop(loop.name, loop.is_failing)
        for loop in self._loops:
            loop.start()
        log.info(
            "started", worker=self.worker.identity.id, lead=self.role.lead, work=self.role.work
        )

    def _steps(self) -> dict[str, Callable[[], float]]:
        """One loop for each, by its name in logs and metrics."""
        steps: dict[str, Callable[[], float]] = {
            "listen": self._listen_step,
            "health": self.health.step,
        }
        if self.death_watch is not None:
            steps |= {"deaths": self.death_watch.step}
        if self.coordination.is_configured:
            steps |= {"coordination-listen": self.coordination_steps.listen_step}
        if self.role.lead:
            steps |= {
                "lease": self.leader_steps.lease_step,
                "lead": self.leader_steps.round_step,
                "archive": self.leader_steps.archive_step,
            }
        if self.role.work:
            steps |= {
                "work": self.worker_steps.work_step,
                "heartbeat": self.worker_steps.heartbeat_step,
                "watch": self.worker_steps.watch_step,
            }
            if self._database.is_sqlite:
                steps |= {"silence": self.worker_steps.read_silence_step}
            if self._abilities is not None:
                steps |= {"abilities": partial(self._abilities_step, self._abilities)}
            if self.coordination.is_configured:
                steps |= {"coordination-heartbeat": self.coordination_steps.heartbeat_step}
        return steps

    def _listen_step(self) -> float:
        """This loop never writes, so it can tell that the others wait for the write lock."""
        self._lock_watch.tick()
        return self.listener.step()

    def _abilities_step(self, abilities: WorkerAbilities) -> float:
        """A changed definition wakes it, but no more often than once per poll: on SQLite every assignment does."""
        poll = self.settings().poll_interval_seconds
        if self.listener.is_open:
            self.wakeups.definitions.wait(poll * (LISTENING_FACTOR - 1))
        if not self.drained.is_set():
            abilities.tick(self.worker.worker_id)
        return poll

    def is_idle(self) -> bool:
        """Nothing is assigned or running, here or elsewhere, and no event is unprocessed."""
        with self._database.read() as connection:
            return not self.worker.running and queue.is_idle(connection)

    @property
    def is_alive(self) -> bool:
        """Whether no loop has ended by itself. One that fails at a step, as without a database, is alive."""
        return all(loop.is_alive for loop in self._loops)

    def hurry(self) -> None:
        """Asked to stop a second time: do not wait for what runs."""
        self.worker_steps.hurry()

    def shut_down(self) -> None:
        """Stop in three steps. Returns when everything of this process has ended. The worker's loops end last: a run
        whose row was locked may still be waiting for its end to be stored."""
        if self.role.work:
            self.worker_steps.drain()
        self._stop_loops([loop for loop in self._loops if loop.name not in WORKER_LOOPS])
        has_stopped = self._stop_loops([loop for loop in self._loops if loop.name in WORKER_LOOPS])
        if self.role.work:
            if has_stopped:
                self.worker_steps.attempt("store ends", self.worker_steps.store_ends)
            self.worker_steps.leave()
        if self.role.lead:
            self.worker_steps.attempt("step down", self.lease.step_down)
        self._executor.close()
        if self._process_files is not None:
            self._process_files.close()
        self.listener.close()
        self.coordination_steps.close()
        log.info("stopped", worker=self.worker.identity.id)

    def _stop_loops(self, loops: Sequence[Loop]) -> bool:
        """Whether all of them have ended in time."""
        for loop in loops:
            loop.stop()
        self.wakeups.wake_all()
        if self.death_watch is not None:
            self.death_watch.wake()
        ended = [loop.join(LOOP_SECONDS_MAX) for loop in loops]
        return all(ended)

    def _check_schema(self, connection: Connection) -> None:
        """Refuse to work on tables that another version has changed since we started, other than by adding to
        them."""
        try:
            for component, revision in self._schema.check(connection).items():
                log.info("schema extended, continuing", component=component, revision=revision)
        except SchemaMismatch as mismatch:
            self.worker_steps.stop_accepting()
            self.outdated = mismatch
            raise
