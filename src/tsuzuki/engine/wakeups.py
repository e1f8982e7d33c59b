"""Wake-ups of a process's loops: its own, and those that other processes send through the database.

Hints only: every loop polls as well, and every wait is bounded by that poll.
"""

import threading
from collections.abc import Callable, Collection, Iterable

from tsuzuki.engine.log import log
from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import NotListening
from tsuzuki.store.sql.database import Database
from tsuzuki.store.wakeups import listeners
from tsuzuki.store.wakeups.channels import ALL_CHANNELS, WakeupChannel
from tsuzuki.store.wakeups.listeners import Listener

LISTEN_SECONDS = 1.0
"""How long one step listens: a process that stops may have to wait that long."""

LISTEN_AGAIN_SECONDS = 300.0
"""When to look again whether wake-ups can arrive."""


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
    """The wake-ups of one process: of its leader loop, of its worker loop, and of the one that reads definitions."""

    def __init__(self, clock: Clock, *, worker_id: Callable[[], str]) -> None:
        self.leader = WakeUp(clock)
        self.worker = WakeUp(clock)
        self.definitions = WakeUp(clock)
        self._worker_id = worker_id
        self._is_worker_called = False

    def wake(self, names: Iterable[str]) -> None:
        """Wake what is named: a channel, or a worker by its id, which may be another process's."""
        for name in names:
            if name == WakeupChannel.LEADER:
                self.leader.wake()
                continue
            if name == WakeupChannel.WORKERS:
                self.definitions.wake()
            if name in (WakeupChannel.WORKERS, self._worker_id()):
                self._is_worker_called = True
                self.worker.wake()

    def wake_all(self) -> None:
        """Wake every loop, so that it notices that the process stops."""
        for one in (self.leader, self.worker, self.definitions):
            one.wake()

    def take_worker_call(self) -> bool:
        """Whether the worker was named since this was last asked: there is something for it in the database. Its own
        process wakes it without that."""
        if not self._is_worker_called:
            return False
        self._is_worker_called = False
        return True


class WakeUpListener:
    """`step` is called by one thread. A listener that fails is replaced by a new one."""

    def __init__(
        self, *, database: Database, wakeups: ProcessWakeUps, channels: Collection[WakeupChannel]
    ) -> None:
        self._database = database
        self._wakeups = wakeups
        self._channels = channels
        self._listener: Listener | None = None

    @property
    def is_open(self) -> bool:
        """Whether commits of other processes wake us."""
        return self._listener is not None

    def step(self) -> float:
        """Listen for a while. Raises `Unreachable`; the next step connects again."""
        if self._listener is None:
            try:
                self._listener = listeners.listen(self._database, self._channels)
            except NotListening as problem:
                log.warning("polling only", error=problem.message, hint=problem.hint)
                return LISTEN_AGAIN_SECONDS
            # A wake-up that was sent before we listened is lost: make every loop poll once.
            self._wakeups.wake(ALL_CHANNELS)
        try:
            self._wakeups.wake(self._listener.wait(LISTEN_SECONDS))
        except BaseException:
            self.close()
            raise
        return 0.0

    def close(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()
