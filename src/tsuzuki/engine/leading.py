"""The steps of whoever may lead: keep or take the lease, do a round of duties, put old logs away."""

import threading
from random import Random

from tsuzuki.engine.archivist import Archivist
from tsuzuki.engine.bell import Bell
from tsuzuki.engine.ear import Ear
from tsuzuki.engine.in_force import SettingsReader
from tsuzuki.engine.journal import log
from tsuzuki.engine.leader import Leader, Lease, Led
from tsuzuki.engine.metrics import Metrics
from tsuzuki.engine.telling import counts
from tsuzuki.store.leadership import Term

ARCHIVE_SECONDS = 60.0
"""How often to look for old logs."""


class Leading:
    """Each step is called by a loop of its own. It does nothing of a leader's while we do not lead."""

    def __init__(
        self,
        *,
        lease: Lease,
        leader: Leader,
        archivist: Archivist,
        settings: SettingsReader,
        metrics: Metrics,
        bell: Bell,
        ear: Ear,
        jitter: Random,
    ) -> None:
        self._lease = lease
        self._leader = leader
        self._archivist = archivist
        self._settings = settings
        self._metrics = metrics
        self._bell = bell
        self._ear = ear
        self._jitter = jitter
        self._was_told = False
        self._told_epoch: int | None = None
        self.last_led: Led | None = None
        self.rounds_done = 0
        self.rounds = threading.Event()
        """Set after each round of the leader's duties: something that can be waited for."""

    def lease_step(self) -> float:
        """Answers how long to pause."""
        holds = self._lease.term is not None
        until_free = 0.0 if holds else self._lease.seconds_until_free()
        leads = not until_free and self._lease.tick()
        self._tell(self._lease.term if leads else None)
        pause = self._settings().lease_renew_interval_seconds
        if leads:
            return pause
        pause *= self._jitter.uniform(0.4, 0.8)
        # A leader that died is followed when its lease ends, and not when we happen to look again.
        return min(pause, until_free + self._jitter.uniform(0.0, 0.2)) if until_free else pause

    def round_step(self) -> None:
        """Waits for what calls for another round."""
        self._leader.rouse_if_owed()
        term = self._lease.term
        wait_seconds = self._settings().poll_interval_seconds * self._jitter.uniform(0.8, 1.2)
        if term is not None:
            self._settings.refresh()
            led = self._leader.tick(term, told=self._was_told)
            self._count(term, led)
            if led.again_at_once:
                return
            # Silence is judged by heartbeats, so a round for each of them is enough to see it.
            beat = self._settings().heartbeat_interval_seconds
            wait_seconds = beat if self._ear.is_open else min(wait_seconds, beat)
            if led.seconds_to_next is not None:
                wait_seconds = min(wait_seconds, max(led.seconds_to_next, 0.001))
        self._was_told = self._bell.wait(wait_seconds)

    def archive_step(self) -> float:
        """Answers how long to pause."""
        term = self._lease.term
        if term is not None:
            archived = self._archivist.tick(term)
            if archived.runs or archived.pruned:
                log.info("archived", **counts(archived))
            if archived.more:
                return 0.0
        return ARCHIVE_SECONDS * self._jitter.uniform(0.8, 1.2)

    def _count(self, term: Term, led: Led) -> None:
        self._metrics.led(led)
        if led.did_something:
            log.debug("led", epoch=term.epoch, **counts(led))
        self.last_led = led
        self.rounds_done += 1
        self.rounds.set()

    def _tell(self, term: Term | None) -> None:
        epoch = term.epoch if term else None
        if epoch == self._told_epoch:
            return
        if term is None:
            log.warning("no longer leading", epoch=self._told_epoch)
        else:
            log.info("leading", epoch=term.epoch)
            self._metrics.epoch.set(term.epoch)
            self._bell.ring()
        self._metrics.leading.set(0 if term is None else 1)
        self._told_epoch = epoch
