"""A thread pool for handlers: grows on demand up to a limit; no thread of it has to be joined."""

import itertools
import threading
from collections.abc import Callable
from queue import SimpleQueue

Work = Callable[[], None]


class HandlerThreadPool:
    """Does each piece of work in a thread; work beyond the limit is queued.

    A thread whose work was abandoned may never return, so it does not count against the limit until it
    does. All are daemon threads: none keeps the process alive.
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
        """How many threads are still busy with abandoned work."""
        return self._abandoned

    def do(self, work: Work) -> None:
        """Do it in a thread soon. It must not raise."""
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
        """The work of one more thread was abandoned; another thread may replace it."""
        with self._lock:
            self._abandoned += 1
            needs_another = self._backlog > 0 and not self._is_full()
            if needs_another:
                self._backlog -= 1
                self._threads += 1
        if needs_another:
            self._add_thread()

    def reclaim(self) -> None:
        """An abandoned thread has returned after all."""
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
            del work  # else an idle thread keeps its last run in memory
            if not self._stays():
                return

    def _stays(self) -> bool:
        """Whether this thread, now free, stays in the pool; one that was abandoned may be one too many."""
        with self._lock:
            if self._threads - self._abandoned > self._threads_max:
                self._threads -= 1
                return False
            if self._backlog:
                self._backlog -= 1
            else:
                self._idle += 1
            return True
