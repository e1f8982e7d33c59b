"""The threads in which the async forms of the library wait for the database: a bounded pool, opened at first use."""

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

THREADS_MAX = 8
"""Fewer than the connections of a process, so that an engine in it always gets one."""


class AsyncPool:
    """Shared by all event loops of a process. A forked child opens one of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None
        self._opened_by = 0

    async def do(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Make a call in one of the threads. A caller that is cancelled does not wait for its end; it happens all the
        same."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._opened(), partial(call, *args, **kwargs))

    def close(self) -> None:
        """Wait for the calls under way. The next one opens the pool again."""
        with self._lock:
            threads, self._threads = self._threads, None
        if threads is not None and self._opened_by == os.getpid():
            threads.shutdown()

    def _opened(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._threads is None or self._opened_by != os.getpid():
                self._opened_by = os.getpid()
                self._threads = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="tsuzuki-async")
            return self._threads
