"""Waiting for runs to end: one reader for all that wait, and no thread for any of them."""

import asyncio
import re
from contextlib import suppress

from starlette.concurrency import run_in_threadpool

from tsuzuki.wiring.application import Application

POLL_SECONDS = 0.05
WAIT_SECONDS_MAX = 60
_WAIT = re.compile(r"(?:^|,)\s*wait\s*=\s*\"?(\d{1,6})\"?\s*(?:;[^,]*)?(?=,|$)", re.IGNORECASE)


def preferred_wait_seconds(prefer: str | None) -> int | None:
    """The seconds of `Prefer: wait=30` (RFC 7240); None without one. Other preferences are ignored."""
    found = _WAIT.search(prefer or "")
    return min(int(found[1]), WAIT_SECONDS_MAX) if found else None


class RunWaits:
    """All waits of one process. Ends them when the server stops."""

    def __init__(self, application: Application, stopping: asyncio.Event) -> None:
        self._application = application
        self._stopping = stopping
        self._waiting: dict[int, set[asyncio.Event]] = {}
        self._reader: asyncio.Task[None] | None = None

    async def wait(self, run_id: int, seconds: float) -> None:
        """Return when the run has ended or the time is over, or when the server stops."""
        ended = asyncio.Event()
        self._waiting.setdefault(run_id, set()).add(ended)
        if self._reader is None or self._reader.done():
            self._reader = asyncio.create_task(self._read())
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await ended.wait()
        finally:
            waiting = self._waiting.get(run_id)
            if waiting is not None:
                waiting.discard(ended)
                if not waiting:
                    del self._waiting[run_id]

    async def _read(self) -> None:
        """Until none waits: read which of the runs have ended."""
        try:
            while self._waiting and not self._stopping.is_set():
                asked = [*self._waiting]
                live = await run_in_threadpool(self._application.runs.live, asked)
                for run_id in asked:
                    if run_id not in live:
                        self._release(run_id)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), POLL_SECONDS)
        finally:
            # Stopped, or the database does not answer: each looks for itself.
            for run_id in [*self._waiting]:
                self._release(run_id)

    def _release(self, run_id: int) -> None:
        for ended in self._waiting.get(run_id, ()):
            ended.set()
