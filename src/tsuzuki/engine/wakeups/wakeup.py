"""Wake-ups inside a process: one per loop that waits. Cheap, never lost; every wait is bounded by a poll."""

import threading
from collections.abc import Callable, Iterable

from tsuzuki.model.clock import Clock
from tsuzuki.store.wakeups.channels import WakeupChannel


class WakeUp:
    """Wakes one waiting loop. A wake-up while it does not wait ends its next wait at once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._woken = threading.Event()

    def wake(self) -> None:
        # The loop clears it before it polls: one that is still set stands for this wake-up too.
        if not self._woken.is_set():
            self._woken.set()

    def wait(self, seconds: float) -> bool:
        """Wait for a wake-up, at most that long; true if there was one."""
        was_woken = self._clock.wait(self._woken, seconds)
        self._woken.clear()
        return was_woken


class ProcessWakeUps:
    """The wake-ups of one process: of its leader loop and of its worker loop."""

    def __init__(self, clock: Clock, *, worker_id: Callable[[], str]) -> None:
        self.leader = WakeUp(clock)
        self.worker = WakeUp(clock)
        self._worker_id = worker_id
        self._is_worker_called = False

    def wake(self, names: Iterable[str]) -> None:
        """Wake what is named: a channel, or a worker by its id, which may be another process's."""
        for name in names:
            if name == WakeupChannel.LEADER:
                self.leader.wake()
            elif name in (WakeupChannel.WORKERS, self._worker_id()):
                self._is_worker_called = True
                self.worker.wake()

    def take_worker_call(self) -> bool:
        """Whether the worker was named since this was last asked: there is something for it in the database. Its own
        process wakes it without that."""
        if not self._is_worker_called:
            return False
        self._is_worker_called = False
        return True
