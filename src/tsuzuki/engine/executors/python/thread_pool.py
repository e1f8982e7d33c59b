"""Threads for handlers: as many as there is work for, up to a limit, and none that has to be joined."""

import itertools
import threading
from collections.abc import Callable
from queue import SimpleQueue

Work = Callable[[], None]


class HandlerThreadPool:
    """Does each piece of work in a thread; what exceeds the limit waits its turn.

    A thread whose work was given up may be lost for ever, so it does not count against the limit
    until it comes back. All are daemonic: none keeps the process from ending.
    """

    def __init__(self, *, threads_max: int) -> None:
        self._threads_max = threads_max
        self._lock = threading.Lock()
        self._queue: SimpleQueue[Work | None] = SimpleQueue()
        self._threads = 0
        self._idle = 0
        self._backlog = 0
        self._abandoned = 0
        self._numbers = itertools.count(1)

    @property
    def abandoned(self) -> int:
        """How many threads are still busy with what nobody waits for any more."""
        return self._abandoned

    def do(self, work: Work) -> None:
        """Have it done soon. It must not raise."""
        with self._lock:
            is_new = not self._idle and not self._is_full()
            if is_new:
                self._threads += 1
            elif self._idle:
                self._idle -= 1
            else:
                self._backlog += 1
        self._queue.put(work)
        if is_new:
            self._add_thread()

    def abandon(self) -> None:
        """One more thread is lost to work that was given up; another one may take its place."""
        with self._lock:
            self._abandoned += 1
            needs_another = self._backlog > 0 and not self._is_full()
            if needs_another:
                self._backlog -= 1
                self._threads += 1
        if needs_another:
            self._add_thread()

    def reclaim(self) -> None:
        """Such a thread has returned after all."""
        with self._lock:
            self._abandoned -= 1

    def close(self) -> None:
        """End the threads, each as soon as it is free."""
        with self._lock:
            for _ in range(self._threads):
                self._queue.put(None)

    def _is_full(self) -> bool:
        return self._threads - self._abandoned >= self._threads_max

    def _add_thread(self) -> None:
        name = f"tsuzuki-handler-{next(self._numbers)}"
        threading.Thread(target=self._serve, name=name, daemon=True).start()

    def _serve(self) -> None:
        while (work := self._queue.get()) is not None:
            work()
            del work  # or a thread that waits keeps its last run in memory
            if not self._stays():
                return

    def _stays(self) -> bool:
        """Whether this thread, now free, has a place; it may be one too many after coming back."""
        with self._lock:
            if self._threads - self._abandoned > self._threads_max:
                self._threads -= 1
                return False
            if self._backlog:
                self._backlog -= 1
            else:
                self._idle += 1
            return True
