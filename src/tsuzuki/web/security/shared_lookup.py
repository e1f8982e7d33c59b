"""One look at the database for all requests that wait for it with the same credentials.

A look that started before a request came does not count for that request: a token that was revoked before it came is
refused. So nothing is cached; requests at the same time share a look that is yet to start.
"""

import asyncio
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool

Found = TypeVar("Found")


class SharedLookup:
    """Used by the event loop alone."""

    def __init__(self) -> None:
        self._next: dict[Hashable, asyncio.Future[Any]] = {}
        """Looks that have not started, by what they look for."""
        self._tasks: dict[Hashable, asyncio.Task[None]] = {}

    async def ask(self, key: Hashable, look: Callable[[], Found]) -> Found:
        """What `look` finds, called in a thread after now. The same key stands for the same look."""
        answer = self._next.get(key)
        if answer is None:
            answer = self._next[key] = asyncio.get_running_loop().create_future()
            if key not in self._tasks:
                self._tasks[key] = asyncio.create_task(self._look(key, look))
        # A client that goes away must not take the answer from the others.
        found: Found = await asyncio.shield(answer)
        return found

    async def _look(self, key: Hashable, look: Callable[[], Any]) -> None:
        try:
            while (answer := self._next.pop(key, None)) is not None:
                try:
                    answer.set_result(await run_in_threadpool(look))
                except Exception as problem:  # noqa: BLE001 -- raised by all who wait for it
                    answer.set_exception(problem)
                finally:
                    answer.cancel()
        finally:
            del self._tasks[key]
