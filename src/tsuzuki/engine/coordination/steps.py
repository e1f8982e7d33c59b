"""What a process says to others beside the database, and hears from them: two bounded steps.

Both have loops of their own. A sign of life must not wait for a database that hangs, for it is then that it
is needed; and it is given only while our worker may believe in itself, so that it never outlives that.
"""

from collections.abc import Callable

from tsuzuki.engine.coordination.protocol import Coordination, heartbeat_ttl_seconds
from tsuzuki.engine.wakeups.wakeup import ProcessWakeUps
from tsuzuki.model.errors import Unreachable
from tsuzuki.model.settings import EngineSettings
from tsuzuki.store.wakeups.listeners import Listener

WAIT_SECONDS = 1.0
"""So long a step listens, and so long to wait when there is nothing to listen to."""


class CoordinationSteps:
    """`beat` and `hear` are one step each, and answer how many seconds to pause after it."""

    def __init__(
        self,
        *,
        coordination: Coordination,
        wakeups: ProcessWakeUps,
        settings: Callable[[], EngineSettings],
        live_worker_id: Callable[[], str | None],
    ) -> None:
        """`live_worker_id` is the id of our worker while it may go on with what it runs, else None."""
        self._coordination = coordination
        self._wakeups = wakeups
        self._settings = settings
        self._live_worker_id = live_worker_id
        self._listener: Listener | None = None

    def heartbeat_step(self) -> float:
        """Say that our worker lives, if it does."""
        settings = self._settings()
        worker_id = self._live_worker_id()
        if worker_id is not None:
            self._coordination.heartbeat(worker_id, ttl_seconds=heartbeat_ttl_seconds(settings))
        return settings.heartbeat_interval_seconds / 2

    def listen_step(self) -> float:
        """Listen for a moment, and wake whom others rang for."""
        if self._listener is None:
            self._listener = self._coordination.listener()
        if self._listener is None:
            return WAIT_SECONDS
        try:
            self._wakeups.wake(self._listener.wait(WAIT_SECONDS))
        except Unreachable:
            # Said already, once, by the coordination itself: the database's own wake-ups go on.
            self.close()
            return WAIT_SECONDS
        return 0.0

    def close(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()
