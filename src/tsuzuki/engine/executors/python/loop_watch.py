"""Names the async function that blocks the event loop which it shares with others."""

import asyncio
from collections.abc import Callable
from typing import Any

from tsuzuki.engine.executors.event_loop_thread import EventLoopThread
from tsuzuki.engine.executors.python.stacks import stack_of_task
from tsuzuki.model.clock import Clock

BLOCKED_SECONDS = 1.0
LOOK_SECONDS = 0.25

OnBlocked = Callable[["asyncio.Task[Any]", str], None]
"""Called with the task that blocks the loop, and with its stack."""


class LoopWatch:
    """Used on the timer's loop, which runs no functions; `begin` may be called from any thread."""

    def __init__(
        self,
        *,
        watched: EventLoopThread,
        timer: EventLoopThread,
        clock: Clock,
        is_needed: Callable[[], bool],
        on_blocked: OnBlocked,
    ) -> None:
        self._watched = watched
        self._timer = timer
        self._clock = clock
        self._is_needed = is_needed
        self._on_blocked = on_blocked
        self._is_looking = False
        self._sent_at: float | None = None
        """When the loop was sent a call that it has not made yet."""
        self._is_told = False

    def begin(self) -> None:
        """A function is about to be executed there."""
        if not self._is_looking:
            self._is_looking = True
            self._timer.post(self._look)

    def _look(self) -> None:
        now = self._clock.monotonic()
        if self._sent_at is None:
            self._is_told = False
            if not self._is_needed():
                self._is_looking = False
                return
            self._sent_at = now
            self._watched.post(self._answer)
        elif now - self._sent_at >= BLOCKED_SECONDS and not self._is_told:
            self._is_told = self._tell()
        asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)

    def _answer(self) -> None:
        self._sent_at = None

    def _tell(self) -> bool:
        loop = self._watched.loop
        task = None if loop is None else asyncio.current_task(loop)
        if task is None:
            return False
        self._on_blocked(task, stack_of_task(task))
        return True
