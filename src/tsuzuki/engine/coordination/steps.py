"""The coordination steps of a process: send its worker's heartbeat, listen for wake-ups.

Each has a loop of its own. This heartbeat must not wait for a database that hangs, because that is when it is
needed. It is sent only while our worker surely still owns its runs, so that it never keeps a worker attached
longer than that.
"""

from collections.abc import Callable

from tsuzuki.engine.coordination.protocol import Coordination, heartbeat_ttl_seconds
from tsuzuki.engine.wakeups import ProcessWakeUps
from tsuzuki.model.errors import Unreachable
from tsuzuki.model.settings import EngineSettings
from tsuzuki.store.wakeups.listeners import Listener

WAIT_SECONDS = 1.0
"""How long a step listens, and how long it pauses when there is nothing to listen to."""


class CoordinationSteps:
    """Each `*_step` is one bounded step, and answers how many seconds to pause after it."""

    def __init__(
        self,
        *,
        coordination: Coordination,
        wakeups: ProcessWakeUps,
        settings: Callable[[], EngineSettings],
        live_worker_id: Callable[[], str | None],
    ) -> None:
        """`live_worker_id` answers the id of our worker while it may go on with what it runs, else None."""
        self._coordination = coordination
        self._wakeups = wakeups
        self._settings = settings
        self._live_worker_id = live_worker_id
        self._listener: Listener | None = None

    def heartbeat_step(self) -> float:
        """Send our worker's heartbeat, while it may go on with what it runs."""
        settings = self._settings()
        worker_id = self._live_worker_id()
        if worker_id is not None:
            self._coordination.heartbeat(worker_id, ttl_seconds=heartbeat_ttl_seconds(settings))
        return settings.heartbeat_interval_seconds / 2

    def listen_step(self) -> float:
        """Listen for a moment, and pass wake-ups on to the loops of this process."""
        if self._listener is None:
            self._listener = self._coordination.listener()
        if self._listener is None:
            return WAIT_SECONDS
        try:
            self._wakeups.wake(self._listener.wait(WAIT_SECONDS))
        except Unreachable:
            # The circuit breaker has logged it, once. The database's own wake-ups go on.
            self.close()
            return WAIT_SECONDS
        return 0.0

    def close(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()
