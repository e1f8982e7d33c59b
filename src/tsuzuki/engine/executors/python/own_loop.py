"""An event loop for one run, in the thread that executes it.

A transaction of a run is used with calls that block. Runs that share a loop would block each other there: one that
waits for the lock of another keeps that one from ever committing.
"""

import asyncio
import threading
from collections.abc import Coroutine
from contextvars import Context
from typing import Any, Generic, TypeVar

from tsuzuki.engine.executors.event_loop_thread import cancel_all

Result = TypeVar("Result")


class OwnLoop(Generic[Result]):
    """`run` is called once, by the thread of the run; `cancel` by any thread, at any time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_cancelled = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Result] | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """None before it runs, and after."""
        return self._loop

    def run(self, main: Coroutine[Any, Any, Result]) -> Result | None:
        """The result of `main`; None if it was cancelled before its first step. Tasks that it leaves behind are
        cancelled."""
        loop = asyncio.new_event_loop()
        try:
            # A context of its own: context variables of other code must not leak into it.
            task = Context().run(loop.create_task, main)
            self._enter(loop, task)
            while not task.done():
                _complete(loop, task)
            _complete(loop, cancel_all(loop))
            _complete(loop, loop.shutdown_asyncgens())
            return None if task.cancelled() else task.result()
        finally:
            with self._lock:
                self._loop = None
            loop.close()

    def cancel(self) -> None:
        """Cancel what runs, or what is about to."""
        with self._lock:
            self._is_cancelled = True
            if self._loop is not None and self._task is not None:
                self._loop.call_soon_threadsafe(self._task.cancel)

    def _enter(self, loop: asyncio.AbstractEventLoop, task: asyncio.Task[Result]) -> None:
        with self._lock:
            self._loop, self._task = loop, task
            if self._is_cancelled:
                task.cancel()


def _complete(loop: asyncio.AbstractEventLoop, main: Any) -> None:
    """Run the loop until `main` has ended. A SystemExit raised in any task comes out here; it must not end the
    others."""
    try:
        loop.run_until_complete(main)
    except asyncio.CancelledError:
        pass
    except BaseException as problem:  # noqa: BLE001 -- whatever a task of the handler raises
        loop.call_exception_handler({"message": "raised in a task", "exception": problem})
