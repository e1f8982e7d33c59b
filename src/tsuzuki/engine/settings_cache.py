"""Cache of the settings, refreshed from the database; also checks the schema. Both may change while we run."""

import threading
from collections.abc import Callable

from tsuzuki.model.clock import Clock
from tsuzuki.model.settings import EngineSettings
from tsuzuki.store import settings
from tsuzuki.store.sql.database import Connection, Database

SETTINGS_MAX_AGE_SECONDS = 5.0
"""Maximum age of the cached settings."""


class SettingsCache:
    """Calling it answers the cached settings. `refresh` reads them again once they are old; then
    `check_schema` may also refuse tables that another version upgraded while we run."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        check_schema: Callable[[Connection], None] = lambda _connection: None,
    ) -> None:
        self._database = database
        self._clock = clock
        self._check_schema = check_schema
        self._lock = threading.Lock()
        self._read_at: float | None = None
        self._settings = EngineSettings()

    def __call__(self) -> EngineSettings:
        return self._settings

    def refresh(self) -> None:
        """Read the settings again if they are old. Raises `Unreachable`; the cached ones stay in use."""
        now = self._clock.monotonic()
        with self._lock:
            if self._read_at is not None and now - self._read_at < SETTINGS_MAX_AGE_SECONDS:
                return
            with self._database.read() as connection:
                self._check_schema(connection)
                self._settings = settings.load(connection)
            self._read_at = now
