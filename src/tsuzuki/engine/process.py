"""One process of the engine: the loops that lead, work, beat and listen, and how they start and stop.

Leading has threads of its own, and so has the heartbeat: a busy handler delays neither. Stopping is in three
steps: take nothing new, wait for what runs, then end it and hand it back. Asked twice, it skips the wait.
"""

import threading
from collections import Counter
from collections.abc import Callable
from random import Random

from tsuzuki.engine.archive import LogArchive
from tsuzuki.engine.archivist import Archivist
from tsuzuki.engine.bell import Bells
from tsuzuki.engine.coordination import Coordination, NoCoordination
from tsuzuki.engine.ear import Ear
from tsuzuki.engine.heartbeat import Heartbeat, Pulse
from tsuzuki.engine.in_force import SettingsReader
from tsuzuki.engine.journal import log
from tsuzuki.engine.leader import Leader, Lease
from tsuzuki.engine.leading import Leading
from tsuzuki.engine.loop import Loop
from tsuzuki.engine.metrics import Metrics
from tsuzuki.engine.outcome import StopCause
from tsuzuki.engine.role import Identity, Role, new_identity
from tsuzuki.engine.signals import Signals
from tsuzuki.engine.task import Executor
from tsuzuki.engine.telling import tell
from tsuzuki.engine.worked import Worked
from tsuzuki.engine.worker import Worker
from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import SchemaMismatch
from tsuzuki.model.states import RunState
from tsuzuki.store import dispatch, notices
from tsuzuki.store.database import Connection, Database
from tsuzuki.store.migrate import SchemaWatch

LISTEN_SECONDS = 1.0
"""How long to listen at a stretch: so long a process that stops may have to wait."""

LINGER_SECONDS = 0.2
"""How long log lines and progress may wait when nothing else is to be written."""

WATCH_SECONDS = 0.1
"""How often to look whether the heartbeat hangs."""

LISTENING_FACTOR = 5.0
"""Whoever is told when there is something to do looks so much more seldom."""

LOOK_SECONDS = 0.5
"""How often a busy worker checks that what it runs is still its own."""


class Engine:
    """Everything of one process. Built stopped; `start`, then `shut_down`."""

    def __init__(  # noqa: PLR0913 -- here everything of a process meets
        self,
        *,
        database: Database,
        executor: Executor,
        clock: Clock,
        random: Random,
        role: Role,
        software_version: str,
        metrics: Metrics | None = None,
        archive: LogArchive | None = None,
        coordination: Coordination | None = None,
    ) -> None:
        self.coordination = coordination or NoCoordination()
        self.metrics = metrics or Metrics()
        self.role = role
        self.bells = Bells(clock, worker_id=lambda: self.worker.identity.id)
        self.settings = SettingsReader(
            database=database, clock=clock, check_schema=self._require_our_schema
        )
        self._schema = SchemaWatch()
        self._software_version = software_version
        self._database = database
        self._executor = executor
        self._clock = clock
        self._jitter = random
        self._join(archive)
        self._looked_at = clock.monotonic()
        self._is_lost = False
        self._losing = threading.Lock()
        self._is_leaving = False
        self._loops: dict[str, Loop] = {}
        self._hurry = threading.Event()
        self.drained = threading.Event()
        """Set when the worker has left, by our own will or an operator's."""
        self.outdated: SchemaMismatch | None = None
        """Set when the database was upgraded by a newer version: then this process must end."""
        self.ended: Counter[RunState] = Counter()
        """How runs that were executed here have ended."""

    def _join(self, archive: LogArchive | None) -> None:
        """Make the parts of the process; they know each other only through what they are given."""
        first = self._new_identity()
        self.lease = Lease(
            database=self._database, clock=self._clock, settings=self.settings, holder=first.id
        )
        self.ear = Ear(database=self._database, bells=self.bells, audiences=self.role.audiences)
        self.archivist = Archivist(
            database=self._database, settings=self.settings, archive=archive, clock=self._clock
        )
        self.worker = Worker(
            identity=first,
            database=self._database,
            executor=self._executor,
            clock=self._clock,
            random=self._jitter,
            settings=self.settings,
            wake=self.bells.worker.ring,
            leads_here=lambda: self.lease.term is not None,
        )
        self.worker.tell_begun = lambda tasks: self._tell_work(Worked(started=[*tasks]))
        self.leader = Leader.with_all_duties(
            database=self._database,
            settings=self.settings,
            random=self._jitter,
            coordination=self.coordination,
            own_worker=self.worker if self.role.work else None,
        )
        self.leading = Leading(
            lease=self.lease,
            leader=self.leader,
            archivist=self.archivist,
            settings=self.settings,
            metrics=self.metrics,
            bell=self.bells.leader,
            ear=self.ear,
            jitter=self._jitter,
        )
        self.heartbeat = Heartbeat(
            database=self._database,
            clock=self._clock,
            settings=self.settings,
            worker_id=lambda: self.worker.identity.id,
        )
        self.signals = Signals(
            coordination=self.coordination,
            bells=self.bells,
            settings=self.settings,
            living=self._living,
        )

    # --- life -----------------------------------------------------------------------------------

    def start(self) -> None:
        self.settings.refresh()
        steps = {"listen": self._listen_step}
        if self.coordination.is_configured:
            steps |= {"hear": self._hear_step}
        if self.role.lead:
            steps |= {
                "lease": self._lease_step,
                "lead": self.leading.round_step,
                "archive": self._archive_step,
            }
        if self.role.work:
            asked_at = self._clock.monotonic()
            self.worker.register()
            self.heartbeat.renew(asked_at)
            steps |= {
                "work": self._work_step,
                "beat": self._beat_step,
                "watch": self._watch_step,
            }
            if self.coordination.is_configured:
                steps |= {"signal": self._signal_step}
        self._loops = {
            name: Loop(name, step, clock=self._clock, on_error=self.metrics.failed)
            for name, step in steps.items()
        }
        for loop in self._loops.values():
            loop.start()
        log.info(
            "started", worker=self.worker.identity.id, lead=self.role.lead, work=self.role.work
        )

    def is_quiet(self) -> bool:
        """Nothing is assigned or running, here or elsewhere, and no event waits."""
        with self._database.read() as connection:
            return not self.worker.running and dispatch.is_quiet(connection)

    def hurry(self) -> None:
        """Asked to stop a second time: do not wait for what runs."""
        self._hurry.set()

    def shut_down(self) -> None:
        """Stop in three steps. Answers when everything of this process has ended."""
        self._is_leaving = True
        if self.role.work and not self.drained.is_set():
            self._drain_worker()
        for loop in self._loops.values():
            loop.stop()
        self.bells.leader.ring()
        self.bells.worker.ring()
        for loop in self._loops.values():
            loop.join(5.0)
        self._goodbye()
        self._executor.close()
        self.ear.close()
        self.signals.close()
        log.info("stopped", worker=self.worker.identity.id)

    def _drain_worker(self) -> None:
        in_force = self.settings()
        self._attempt("stop taking work", self._stop_taking)
        self._wait_until_idle(in_force.drain_timeout_seconds, unless=self._hurry)
        if self.worker.running:
            at_once = self._hurry.is_set()
            self.worker.stop_all(StopCause.SHUTDOWN, at_once=at_once)
            self._wait_until_idle(in_force.kill_grace_seconds + 5.0, unless=self._hurry)
        if self.worker.running:
            self.worker.stop_all(StopCause.SHUTDOWN, at_once=True)
            self._wait_until_idle(5.0)

    def _goodbye(self) -> None:
        if self.role.work:
            self._leave_drained()
        if self.role.lead:
            self._attempt("step down", self.lease.step_down)

    def _wait_until_idle(self, seconds: float, *, unless: threading.Event | None = None) -> None:
        never = threading.Event()
        end = self._clock.monotonic() + seconds
        while self.worker.running and self._clock.monotonic() < end:
            if self._clock.wait(unless or never, 0.02):
                return

    def _attempt(self, what: str, act: Callable[[], None]) -> None:
        """On the way out an unreachable database must not keep us: others will see our silence."""
        try:
            act()
        except Exception as problem:  # noqa: BLE001 -- said, and survived by design
            log.warning("could not say goodbye", step=what, error=str(problem))

    # --- the loops' steps -----------------------------------------------------------------------

    def _lease_step(self) -> None:
        self._loops["lease"].pause(self.leading.lease_step())

    def _archive_step(self) -> None:
        self._loops["archive"].pause(self.leading.archive_step())

    def _work_step(self) -> None:
        if self._is_lost and not self.worker.running:
            self._start_again()
        if arrived := self.worker.begin_arrived():
            self._tell_work(Worked(started=arrived))
        now = self._clock.monotonic()
        has_news = arrived or self.worker.has_news()
        look = not has_news or now - self._looked_at >= LOOK_SECONDS
        if look:
            self._looked_at = now
        worked = self.worker.tick(look_around=look)
        self._tell_work(worked)
        for (_, state), count in worked.ends.items():
            self.ended[state] += count
        tell(worked)
        if worked.ended or worked.lost:
            self.bells.leader.ring()
            if self.lease.term is None:
                self.coordination.ring({notices.Audience.LEADER})
        # Whoever leads may judge us by new settings already. After the tick, because a database
        # that is away must not keep it from stopping what has run too long.
        self.settings.refresh()
        if self.worker.has_news():
            return
        waits = [self._poll_seconds() * (LISTENING_FACTOR if self.ear.is_open else 1.0)]
        if (deadline := self.worker.seconds_to_next_deadline()) is not None:
            waits.append(deadline)
        if self.worker.desk.has_papers() or self.worker.running:
            waits.append(LINGER_SECONDS if self.worker.desk.has_papers() else 1.0)
        self.bells.worker.wait(min(waits))

    def _tell_work(self, worked: Worked) -> None:
        self.metrics.worked(worked, running=self.worker.running, now=self._clock.now())

    def _beat_step(self) -> None:
        if not self.role.work or self.drained.is_set() or self._is_lost:
            self._loops["beat"].pause(0.05)
            return
        name = self.worker.identity.id
        pulse = self.heartbeat.tick()
        if self.worker.identity.id != name:
            return  # it hung, and we came back under another name meanwhile: this is about the former
        self._is_leaving = self._is_leaving or pulse is Pulse.DRAINING
        if pulse is Pulse.LOST:
            self._cut_off(name)
        elif pulse is Pulse.DRAINING and self.worker.accepting:
            log.info("asked to drain", worker=self.worker.identity.id)
            self._attempt("stop taking work", self._stop_taking)
        elif pulse is Pulse.DRAINING and not self.worker.running and not self._hurry.is_set():
            self._leave_drained()
        self._loops["beat"].pause(self.heartbeat.seconds_to_next(pulse))

    def _watch_step(self) -> None:
        """A beat that hangs in the driver cannot judge itself."""
        name = self.worker.identity.id
        is_ours = not (self._is_lost or self.drained.is_set())
        if is_ours and self.heartbeat.looks_hung(WATCH_SECONDS):
            self._cut_off(name)
        self._loops["watch"].pause(WATCH_SECONDS)

    def _signal_step(self) -> None:
        self._loops["signal"].pause(self.signals.beat())

    def _hear_step(self) -> None:
        self._loops["hear"].pause(self.signals.hear())

    def _require_our_schema(self, connection: Connection) -> None:
        """A database that was upgraded under us is not ours to work on any more."""
        try:
            self._schema.check(connection)
        except SchemaMismatch as mismatch:
            self.worker.decline()
            self.outdated = mismatch
            raise

    def _living(self) -> str | None:
        """Our worker, while it may go on with what it runs."""
        is_lost = self._is_lost or self.drained.is_set() or not self.heartbeat.is_sure
        return None if is_lost else self.worker.identity.id

    def _listen_step(self) -> None:
        self.ear.listen(LISTEN_SECONDS)

    # --- being cut off, and drained from outside ------------------------------------------------

    def _cut_off(self, name: str) -> None:
        """We may not go on with anything we run under that name. When all of it has stopped, we begin anew.
        The beat may find this out, and whoever watches it: it is done once."""
        with self._losing:
            if self._is_lost or self.worker.identity.id != name:
                return
            log.error("cut off: stopping everything that runs here", worker=name)
            self.worker.cut_off()
            self._is_lost = True
        self.bells.worker.ring()

    def _start_again(self) -> None:
        if self._is_leaving:
            self._leave_drained()
            return
        identity = self._new_identity()
        asked_at = self._clock.monotonic()
        if not self.worker.become(identity):
            return
        if self._is_leaving or self.outdated:
            self.worker.decline()
        self.heartbeat.renew(asked_at)
        self._is_lost = False
        log.info("attached again", worker=identity.id)

    def _leave_drained(self) -> None:
        if not self.drained.is_set():
            self._attempt("leave", self._leave)
            self.drained.set()

    def _stop_taking(self) -> None:
        self._let_go(self.worker.stop_taking())

    def _leave(self) -> None:
        self._let_go(self.worker.leave())

    def _let_go(self, run_ids: frozenset[int]) -> None:
        """Handed back in the database already; now nothing else keeps others from them either."""
        self.coordination.release(run_ids)
        self.coordination.ring({notices.Audience.LEADER})

    def _new_identity(self) -> Identity:
        return new_identity(self.role, software_version=self._software_version)

    def _poll_seconds(self) -> float:
        return self.settings().poll_interval_seconds * self._jitter.uniform(0.8, 1.2)
