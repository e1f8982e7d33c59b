"""Record when a token or session was last used, without delaying the request that used it.

A thread does the writing and ends when nothing is left to write. While the database is not writable, the recorded
last use may be out of date.
"""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key", str, int)


class LastUse(Generic[Key]):
    def __init__(self, write: Callable[[Key], None]) -> None:
        self._write: Callable[[Key], None] = write
        self._lock = threading.Lock()
        self._noted: set[Key] = set()
        self._thread: threading.Thread | None = None

    def note(self, key: Key) -> None:
        """Write soon that it was used; returns at once."""
        with self._lock:
            self._noted.add(key)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="last-use", daemon=True)
                self._thread.start()

    def wait(self) -> None:
        """Until what was noted is written."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while (key := self._next()) is not None:
            try:
                self._write(key)
            except Exception as problem:  # noqa: BLE001 -- an outdated time does no harm, and no caller waits for it
                from tsuzuki.engine.log import log  # noqa: PLC0415 -- slow to load, and rarely needed

                log.warning("last_use_not_written", error=type(problem).__name__)

    def _next(self) -> Key | None:
        with self._lock:
            if self._noted:
                return self._noted.pop()
            self._thread = None
            return None
