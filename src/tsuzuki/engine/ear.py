"""What a process hears from the others through the database. An ear that fails is replaced by a new one."""

from collections.abc import Collection

from tsuzuki.engine.bell import Bells
from tsuzuki.store import notices
from tsuzuki.store.database import Database
from tsuzuki.store.notices import Audience, Listener


class Ear:
    """Rings the bells for whom others left a notice, if it is for us: for `audiences`. `listen` is called by
    one thread."""

    def __init__(
        self, *, database: Database, bells: Bells, audiences: Collection[Audience]
    ) -> None:
        self._database = database
        self._bells = bells
        self._audiences = audiences
        self._listener: Listener | None = None

    @property
    def is_open(self) -> bool:
        """Whether we are told of what others commit."""
        return self._listener is not None

    def listen(self, seconds: float) -> None:
        """Listen at most that long. Raises `Unreachable`; the next call begins anew."""
        if self._listener is None:
            self._listener = notices.listen(self._database, self._audiences)
            # Whatever was said before we listened is looked for once.
            self._bells.ring(notices.EVERYBODY)
        try:
            self._bells.ring(self._listener.wait(seconds))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()
