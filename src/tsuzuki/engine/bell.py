"""Wake-ups inside a process. Ringing is cheap and never lost; waiting too long is bounded by a poll."""

import threading
from collections.abc import Callable, Iterable

from tsuzuki.model.clock import Clock
from tsuzuki.store.notices import Audience


class Bell:
    """Rings for one waiting loop. A ring while nobody waits is heard at the next wait."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rung = threading.Event()

    def ring(self) -> None:
        # Who waits clears it before looking, so a ring that is still out will do for this one too.
        if not self._rung.is_set():
            self._rung.set()

    def wait(self, seconds: float) -> bool:
        """Wait for a ring, at most that long; true if it rang."""
        rang = self._clock.wait(self._rung, seconds)
        self._rung.clear()
        return rang


class Bells:
    """The bells of one process, one for each of its loops that wait. `worker_id` is whose they are."""

    def __init__(self, clock: Clock, *, worker_id: Callable[[], str]) -> None:
        self.leader = Bell(clock)
        self.worker = Bell(clock)
        self._worker_id = worker_id

    def ring(self, names: Iterable[str]) -> None:
        """For whom others call: an audience, or a worker by its name, which may not be ours."""
        for name in names:
            if name == Audience.LEADER:
                self.leader.ring()
            elif name in (Audience.WORKERS, self._worker_id()):
                self.worker.ring()
