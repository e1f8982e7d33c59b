"""An event loop in a thread of its own, started on first use."""

import asyncio
import threading
from collections.abc import Callable
from contextvars import Context
from typing import Any

CLOSE_SECONDS_MAX = 2.0


class EventLoopThread:
    """Runs callbacks, tasks and timers. A daemon thread: it never keeps the process alive."""

    def __init__(self, *, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._posted: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self._closing = False

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """None until it is first used."""
        return self._loop

    def post(self, call: Callable[..., object], *args: Any) -> None:
        """Call `call(*args)` on the loop soon, after everything posted before. Thread-safe; after `close` it
        does nothing."""
        with self._lock:
            if self._closing:
                return
            loop = self._loop or self._start()
            self._posted.append((call, args))
            # Waking the loop is the expensive part, so a burst of posts wakes it once.
            if len(self._posted) == 1:
                loop.call_soon_threadsafe(self._run_posted, loop)

    def later(self, seconds: float, call: Callable[..., object], *args: Any) -> None:
        """The same, `seconds` from now."""
        self.post(lambda: asyncio.get_running_loop().call_later(seconds, call, *args))

    def close(self) -> None:
        """Cancel what still runs and end the thread. A thread that does not end is left behind."""
        with self._lock:
            is_closed, self._closing = self._closing, True
            if is_closed or self._thread is None or self._loop is None:
                return
            self._loop.call_soon_threadsafe(self._stop, self._loop)
        self._thread.join(CLOSE_SECONDS_MAX)

    def _run_posted(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            posted, self._posted = self._posted, []
        for call, args in posted:
            try:
                # A context of its own: context variables of other code must not leak into it.
                Context().run(call, *args)
            except Exception as problem:  # noqa: BLE001 -- the others were posted too
                loop.call_exception_handler({"message": "a call failed", "exception": problem})

    def _start(self) -> asyncio.AbstractEventLoop:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._run, args=(self._loop,), name=self._name, daemon=True
        )
        self._thread.start()
        return self._loop

    def _stop(self, loop: asyncio.AbstractEventLoop) -> None:
        """After everything that was posted before."""
        self._run_posted(loop)
        loop.call_soon(loop.stop)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        while not self._closing:
            # A SystemExit raised in one task comes out here; it must not end the other tasks.
            try:
                loop.run_forever()
            except BaseException as problem:  # noqa: BLE001
                loop.call_exception_handler({"message": "raised in a task", "exception": problem})
        try:
            loop.run_until_complete(cancel_all(loop))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()


async def cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel all other tasks of the loop, and wait a moment for their ends."""
    tasks = asyncio.all_tasks(loop) - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=CLOSE_SECONDS_MAX / 2)
