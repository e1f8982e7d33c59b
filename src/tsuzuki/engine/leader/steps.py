"""The steps of a process that may lead, each called by a loop of its own: lease, round of duties, archive.

A step does nothing of a leader's while this process does not lead.
"""

import threading
from random import Random

from tsuzuki.engine.archive.archivist import Archived
from tsuzuki.engine.archive.retention import Retention
from tsuzuki.engine.leader.leader import Leader, LeaderRound
from tsuzuki.engine.leader.lease import Lease
from tsuzuki.engine.log import log
from tsuzuki.engine.metrics import Metrics
from tsuzuki.engine.settings_cache import SettingsCache
from tsuzuki.engine.wakeups import WakeUp, WakeUpListener
from tsuzuki.store.leadership import Term

ARCHIVE_INTERVAL_SECONDS = 60.0


class LeaderSteps:
    """Each step answers how long its loop should pause."""

    def __init__(
        self,
        *,
        lease: Lease,
        leader: Leader,
        retention: Retention,
        settings: SettingsCache,
        metrics: Metrics,
        wakeup: WakeUp,
        listener: WakeUpListener,
        jitter: Random,
    ) -> None:
        self._lease = lease
        self._leader = leader
        self._retention = retention
        self._settings = settings
        self._metrics = metrics
        self._wakeup = wakeup
        self._listener = listener
        self._jitter = jitter
        self._was_woken = False
        self._logged_epoch: int | None = None
        self.last_round: LeaderRound | None = None
        self.rounds_done = 0
        self.rounds = threading.Event()
        """Set after each round: something to wait for."""

    def lease_step(self) -> float:
        holds = self._lease.term is not None
        until_free = 0.0 if holds else self._lease.seconds_until_free()
        leads = not until_free and self._lease.tick()
        self._log_change(self._lease.term if leads else None)
        pause = self._settings().lease_renew_interval_seconds
        if leads:
            return pause
        pause *= self._jitter.uniform(0.4, 0.8)
        # A dead leader is followed when its lease ends, not at our next poll.
        return min(pause, until_free + self._jitter.uniform(0.0, 0.2)) if until_free else pause

    def round_step(self) -> float:
        """A round of duties; then wait for the wake-up or the time that calls for another one."""
        term = self._lease.term
        wait_seconds = self._settings().poll_interval_seconds * self._jitter.uniform(0.8, 1.2)
        if term is not None:
            self._settings.refresh()
            done = self._leader.tick(term, woken=self._was_woken)
            self._count(term, done)
            if done.again_at_once:
                return 0.0
            # Silence is judged by heartbeats: one round for each of them is enough to see it.
            heartbeat = self._settings().heartbeat_interval_seconds
            wait_seconds = heartbeat if self._listener.is_open else min(wait_seconds, heartbeat)
            if done.seconds_to_next is not None:
                wait_seconds = min(wait_seconds, max(done.seconds_to_next, 0.001))
        self._was_woken = self._wakeup.wait(wait_seconds)
        return 0.0

    def archive_step(self) -> float:
        term = self._lease.term
        if term is not None:
            archived = self._retention.tick(term)
            if archived.runs or archived.pruned:
                log.info("archived", **_counts(archived))
            if archived.more:
                return 0.0
        return ARCHIVE_INTERVAL_SECONDS * self._jitter.uniform(0.8, 1.2)

    def _count(self, term: Term, done: LeaderRound) -> None:
        self._metrics.count_round(done)
        if done.did_something:
            log.debug("leader round", epoch=term.epoch, **_counts(done))
        self.last_round = done
        self.rounds_done += 1
        self.rounds.set()

    def _log_change(self, term: Term | None) -> None:
        epoch = term.epoch if term else None
        if epoch == self._logged_epoch:
            return
        if term is None:
            log.warning("no longer the leader", epoch=self._logged_epoch)
        else:
            log.info("leading", epoch=term.epoch)
            self._metrics.epoch.set(term.epoch)
            self._wakeup.wake()
        self._metrics.leading.set(0 if term is None else 1)
        self._logged_epoch = epoch


def _counts(done: LeaderRound | Archived) -> dict[str, int]:
    """Its counts that are not zero."""
    return {key: value for key, value in vars(done).items() if isinstance(value, int) and value}
