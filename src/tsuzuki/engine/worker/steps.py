"""The steps of a process that works, each called by a loop of its own: work, heartbeat, watch over it.

Also the worker's life: detached by the leader, it stops everything and comes back under a new id; drained
by an operator or by a shutdown, it finishes what it has and leaves.
"""

import logging
import threading
from collections import Counter
from collections.abc import Callable
from random import Random

from tsuzuki.engine.coordination.protocol import Coordination
from tsuzuki.engine.log import is_enabled_for, log
from tsuzuki.engine.metrics import Metrics
from tsuzuki.engine.outcome import StopCause
from tsuzuki.engine.settings_cache import SettingsCache
from tsuzuki.engine.wakeups import ProcessWakeUps, WakeUpListener
from tsuzuki.engine.worker.finishing import error_line
from tsuzuki.engine.worker.heartbeat import Heartbeat, HeartbeatResult
from tsuzuki.engine.worker.identity import WorkerIdentity
from tsuzuki.engine.worker.step import WorkerStep
from tsuzuki.engine.worker.worker import Worker
from tsuzuki.model.clock import Clock
from tsuzuki.model.secrets import mask_secrets
from tsuzuki.model.states import RunState
from tsuzuki.store.wakeups.channels import WakeupChannel

FLUSH_SECONDS = 0.2
"""How long log lines and progress may wait when nothing else is to be written; and after how long an end is tried
again whose row was locked."""

WATCH_SECONDS = 0.1
"""How often to check whether the heartbeat hangs, once its deadline has passed."""

LISTENING_FACTOR = 5.0
"""A worker that is woken by wake-ups polls this many times less often."""

BUSY_SECONDS = 0.05
"""A worker is busy while the last end was stored less than this ago: then it lets a few ends gather."""

POLL_BUSY_SECONDS = 0.5
"""How often a busy worker checks that what it runs is still its own."""


class WorkerSteps:
    """`*_step` answer how long their loop should pause. `drain` and `leave` are for a shutdown."""

    def __init__(  # noqa: PLR0913 -- here all parts of a working process meet
        self,
        *,
        worker: Worker,
        heartbeat: Heartbeat,
        coordination: Coordination,
        settings: SettingsCache,
        metrics: Metrics,
        wakeups: ProcessWakeUps,
        listener: WakeUpListener,
        clock: Clock,
        jitter: Random,
        new_identity: Callable[[], WorkerIdentity],
        stays_to_lead: bool = False,
        hide_secrets: Callable[[str], str] = mask_secrets,
    ) -> None:
        self._worker = worker
        self._heartbeat = heartbeat
        self._coordination = coordination
        self._settings = settings
        self._metrics = metrics
        self._wakeups = wakeups
        self._listener = listener
        self._clock = clock
        self._jitter = jitter
        self._new_identity = new_identity
        self._stays_to_lead = stays_to_lead
        self._hide_secrets = hide_secrets
        self._drain_until: float | None = None
        """Until when what runs may go on, if an operator has ordered the drain."""
        self._polled_at = clock.monotonic()
        self._ended_at = -BUSY_SECONDS
        self._was_woken = False
        self._is_called = False
        """Woken by another process, or by its leader through the database; until the next poll."""
        self._is_detached = False
        self._detach_lock = threading.Lock()
        self._leaving = threading.Event()
        self._hurry = threading.Event()
        self.drained = threading.Event()
        """Set when the worker has left, at a shutdown or by an operator's order."""
        self.ended: Counter[RunState] = Counter()
        """How runs that were executed here have ended."""

    def register(self) -> None:
        asked_at, settings = self._clock.monotonic(), self._settings()
        self._worker.register(settings)
        self._heartbeat.renew(asked_at, settings)

    def live_worker_id(self) -> str | None:
        """Our worker, while it may go on with what it runs."""
        is_over = (
            self._is_detached or self.drained.is_set() or not self._heartbeat.is_before_deadline
        )
        return None if is_over else self._worker.identity.id

    # --- the loops' steps -----------------------------------------------------------------------

    def work_step(self) -> float:
        if self._is_detached and not self._worker.running:
            self._rejoin()
        now = self._clock.monotonic()
        if now - self._ended_at < BUSY_SECONDS:
            self._worker.gather_ends(self._wakeups.worker.wait)
        step = self._worker.tick(poll=self._must_poll(now))
        if step.polled:
            self._polled_at = now
            self._is_called = False
        if step.ended:
            self._ended_at = now
        self._report(step)
        if step.problem is not None:
            raise step.problem
        # A leader may judge us by new settings already. After the tick, because an unreachable database
        # must not keep it from stopping what has run too long.
        self._settings.refresh()
        goes_on = self._has_work() or self._is_called or self._may_rejoin()
        self._was_woken = goes_on or self._wakeups.worker.wait(self._wait_seconds())
        return 0.0

    def _may_rejoin(self) -> bool:
        return self._is_detached and not (self._worker.running or self.drained.is_set())

    def _has_work(self) -> bool:
        return self._worker.has_outcomes() or self._worker.has_adoptions()

    def _must_poll(self, now: float) -> bool:
        """When called, when it is time, and after a wait that nothing has ended. What our own process wakes us for
        (an outcome, a run to adopt, output) needs no poll."""
        self._is_called = self._wakeups.take_worker_call() or self._is_called
        is_time = now - self._polled_at >= POLL_BUSY_SECONDS
        return is_time or (not self._has_work() and (self._is_called or not self._was_woken))

    def heartbeat_step(self) -> float:
        if self.drained.is_set() or self._is_detached:
            return 0.05
        worker_id = self._worker.identity.id
        result = self._heartbeat.tick()
        if self._worker.identity.id != worker_id:
            return 0.0  # it hung while we rejoined under another id: this is about the former one
        if result is HeartbeatResult.DRAINING:
            self._leaving.set()
        if result is HeartbeatResult.LOST:
            self._on_detached(worker_id)
        elif result is HeartbeatResult.DRAINING and self._worker.accepting:
            log.info("draining", worker=worker_id)
            self.attempt("drain", self._hand_back_and_drain)
        elif result is HeartbeatResult.DRAINING and not self._hurry.is_set():
            return min(self._go_on_draining(), self._heartbeat.seconds_to_next(result))
        return self._heartbeat.seconds_to_next(result)

    def watch_step(self) -> float:
        """A heartbeat that hangs in the driver cannot notice it itself."""
        worker_id = self._worker.identity.id
        is_ours = not (self._is_detached or self.drained.is_set())
        if is_ours and self._heartbeat.looks_hung(WATCH_SECONDS):
            self._on_detached(worker_id)
        return self._heartbeat.seconds_to_next_check(WATCH_SECONDS)

    def read_silence_step(self) -> float:
        """A heartbeat that waits for the write lock of an SQLite file is not silence."""
        is_ours = not (self._is_detached or self.drained.is_set())
        return self._heartbeat.read_silence() if is_ours else WATCH_SECONDS

    def _wait_seconds(self) -> float:
        poll = self._settings().poll_interval_seconds * self._jitter.uniform(0.8, 1.2)
        waits = [poll * (LISTENING_FACTOR if self._listener.is_open else 1.0)]
        if (deadline := self._worker.seconds_to_next_deadline()) is not None:
            waits.append(deadline)
        if self._worker.output or self._worker.locked_ends:
            waits.append(FLUSH_SECONDS)
        elif self._worker.running:
            waits.append(1.0)
        return min(waits)

    def _report(self, step: WorkerStep) -> None:
        self._metrics.count_step(step, running=self._worker.running, now=self._clock.now())
        for (_, state), count in step.ends.items():
            self.ended[state] += count
        _log_step(step, self._hide_secrets)
        # A refused end frees a slot too: it may be one that was stored, and the reply lost.
        if (step.ended and not step.refilled.is_full) or step.refused or step.lost:
            self._wakeups.leader.wake()
            if not self._worker.local_start.leads:
                self._coordination.wake({WakeupChannel.LEADER})

    # --- detached, and back ---------------------------------------------------------------------

    def _on_detached(self, worker_id: str) -> None:
        """Stop everything that runs under that id. The heartbeat may find this out, and the watch over it:
        it is done once."""
        with self._detach_lock:
            if self._is_detached or self._worker.identity.id != worker_id:
                return
            log.error("detached: stopping all runs", worker=worker_id)
            self._worker.on_detached()
            self._is_detached = True
        self._wakeups.worker.wake()

    def _rejoin(self) -> None:
        if self._leaving.is_set():
            self.leave()
            return
        identity = self._new_identity()
        asked_at, settings = self._clock.monotonic(), self._settings()
        if not self._worker.reregister(identity, settings):
            return
        if self._leaving.is_set():
            self._worker.stop_accepting()
        self._heartbeat.renew(asked_at, settings)
        self._is_detached = False
        log.info("attached again", worker=identity.id)

    # --- draining and leaving -------------------------------------------------------------------

    def stop_accepting(self) -> None:
        """Start nothing new, for good."""
        self._leaving.set()
        self._worker.stop_accepting()

    def hurry(self) -> None:
        """Do not wait for what runs."""
        self._hurry.set()

    def drain(self) -> None:
        """At a shutdown: start nothing new, wait for what runs, then stop it; at once if hurried."""
        self._leaving.set()
        if self.drained.is_set():
            return
        settings = self._settings()
        self.attempt("drain", self._hand_back_and_drain)
        self._wait_until_idle(settings.drain_timeout_seconds, unless=self._hurry)
        if self._worker.running:
            self._worker.stop_all(StopCause.SHUTDOWN, at_once=self._hurry.is_set())
            self._wait_until_idle(settings.kill_grace_seconds + 5.0, unless=self._hurry)
        if self._worker.running:
            self._worker.stop_all(StopCause.SHUTDOWN, at_once=True)
            self._wait_until_idle(5.0)

    def _go_on_draining(self) -> float:
        """Ordered by an operator: the same as at a shutdown, step by step with the heartbeats. Returns how long
        until the next step."""
        now = self._clock.monotonic()
        settings = self._settings()
        if not self._worker.running:
            self.leave()
            log.info("drained", worker=self._worker.identity.id, stays_to_lead=self._stays_to_lead)
            return settings.heartbeat_interval_seconds
        if self._drain_until is None:
            self._drain_until = now + settings.drain_timeout_seconds
        if now < self._drain_until:
            return self._drain_until - now
        is_stubborn = now >= self._drain_until + settings.kill_grace_seconds + 5.0
        self._worker.stop_all(StopCause.SHUTDOWN, at_once=is_stubborn)
        return settings.heartbeat_interval_seconds

    def store_ends(self) -> None:
        """After the loops have ended: store what the last step could not, because a row was locked or a run ended
        since."""
        if self._worker.running:
            self._report(self._worker.tick(poll=False))

    def leave(self) -> None:
        if not self.drained.is_set():
            self.attempt("leave", lambda: self._release(self._worker.leave()))
            self.drained.set()

    def attempt(self, what: str, act: Callable[[], None]) -> None:
        """Do it if the database lets us: on the way out an error must not keep the process, and the
        leader will notice its silence."""
        try:
            act()
        except Exception as problem:  # noqa: BLE001 -- logged, and survived by design
            log.warning("shutdown step failed", step=what, error=str(problem))

    def _hand_back_and_drain(self) -> None:
        self._release(self._worker.drain())

    def _release(self, run_ids: frozenset[int]) -> None:
        """After runs were handed back in the database: end their reservations elsewhere too."""
        self._coordination.release(run_ids)
        self._coordination.wake({WakeupChannel.LEADER})

    def _wait_until_idle(self, seconds: float, *, unless: threading.Event | None = None) -> None:
        never = threading.Event()
        end = self._clock.monotonic() + seconds
        while self._worker.running and self._clock.monotonic() < end:
            if self._clock.wait(unless or never, 0.02):
                return


def _log_step(step: WorkerStep, hide_secrets: Callable[[str], str]) -> None:
    """Each run that ended here, or was lost to another worker."""
    for task, end in step.ended if is_enabled_for(logging.INFO) else ():
        log.info(
            "run ended",
            run=task.run.id,
            job=task.job_name,
            state=end.state.value,
            reason=end.reason.value if end.reason else None,
            error=error_line(end, hide_secrets),
        )
    for task in step.lost:
        log.warning("run no longer owned", run=task.run.id, job=task.job_name)
