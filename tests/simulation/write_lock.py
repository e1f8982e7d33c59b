"""The write lock of an SQLite file, while a handler keeps its transaction open: every other writer waits for it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from simulation.scheduler import Scheduler


class WriteLock:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.is_free = threading.Event()
        self.is_free.set()
        self.free_at = 0.0
        """Since when it is free; infinite while it is held."""

    @contextmanager
    def held(self) -> Iterator[None]:
        self.is_free.clear()
        self.free_at = float("inf")
        try:
            yield
        finally:
            self.free_at = self._scheduler.now
            self.is_free.set()
