"""What a process says to others beside the database, and hears from them: two bounded steps.

Both have loops of their own. A sign of life must not wait for a database that hangs, for it is then that it
is needed; and it is given only while our worker may believe in itself, so that it never outlives that.
"""

from collections.abc import Callable

from tsuzuki.engine.bell import Bells
from tsuzuki.engine.coordination import Coordination, vouched_seconds
from tsuzuki.model.errors import Unreachable
from tsuzuki.model.settings import EngineSettings
from tsuzuki.store.notices import Listener

WAIT_SECONDS = 1.0
"""So long a step listens, and so long to wait when there is nothing to listen to."""


class Signals:
    """`beat` and `hear` are one step each, and answer how many seconds to pause after it."""

    def __init__(
        self,
        *,
        coordination: Coordination,
        bells: Bells,
        settings: Callable[[], EngineSettings],
        living: Callable[[], str | None],
    ) -> None:
        """`living` is the id of our worker while it may go on with what it runs, else None."""
        self._coordination = coordination
        self._bells = bells
        self._settings = settings
        self._living = living
        self._listener: Listener | None = None

    def beat(self) -> float:
        """Say that our worker lives, if it does."""
        settings = self._settings()
        worker_id = self._living()
        if worker_id is not None:
            self._coordination.beat(worker_id, ttl_seconds=vouched_seconds(settings))
        return settings.heartbeat_interval_seconds / 2

    def hear(self) -> float:
        """Listen for a moment, and wake whom others rang for."""
        if self._listener is None:
            self._listener = self._coordination.listener()
        if self._listener is None:
            return WAIT_SECONDS
        try:
            self._bells.ring(self._listener.wait(WAIT_SECONDS))
        except Unreachable:
            # Said already, once, by the coordination itself: the database's own wake-ups go on.
            self.close()
            return WAIT_SECONDS
        return 0.0

    def close(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()
