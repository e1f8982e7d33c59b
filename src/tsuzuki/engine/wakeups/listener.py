"""Listens for the wake-ups that other processes send through the database, and passes them on."""

from collections.abc import Collection

from tsuzuki.engine.log import log
from tsuzuki.engine.wakeups.wakeup import ProcessWakeUps
from tsuzuki.model.errors import NotListening
from tsuzuki.store.sql.database import Database
from tsuzuki.store.wakeups import listeners
from tsuzuki.store.wakeups.channels import ALL_CHANNELS, WakeupChannel
from tsuzuki.store.wakeups.listeners import Listener

LISTEN_SECONDS = 1.0
"""How long one step listens: a process that stops may have to wait that long."""

LISTEN_AGAIN_SECONDS = 300.0
"""When to look again whether wake-ups can arrive."""


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
