"""Stores the runs that clients ask for at the same time in one transaction (group commit).

The first request is stored at once; those that come meanwhile are stored together afterwards. So many clients do not
wait for each other's commits, one after the other. Each gets an answer of its own: what is wrong with one request does
not touch the others.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from starlette.concurrency import run_in_threadpool

from tsuzuki.model.run import Run
from tsuzuki.services.runs import Request, Runs, StartRequest

BATCH_MAX = 100


class _Asked(NamedTuple):
    wanted: StartRequest
    answer: "asyncio.Future[Run]"


class RunIntake:
    """Used by the event loop alone."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._asked: list[_Asked] = []
        self._storing: asyncio.Task[None] | None = None

    async def start(self, request: Request, *, actor: str) -> Run:
        """The run that was stored, or has the idempotency key already. Raises what is wrong with this request."""
        asked = _Asked(StartRequest(request, actor), asyncio.get_running_loop().create_future())
        self._asked.append(asked)
        if self._storing is None:
            self._storing = asyncio.create_task(self._store_all())
        return await asked.answer

    async def _store_all(self) -> None:
        while self._asked:
            batch, self._asked = self._asked[:BATCH_MAX], self._asked[BATCH_MAX:]
            stored: Sequence[Run | Exception]
            try:
                stored = await run_in_threadpool(
                    self._runs.submit_each, [asked.wanted for asked in batch]
                )
            except asyncio.CancelledError:
                self._give_up([*batch, *self._asked])
                raise
            except Exception as problem:  # noqa: BLE001 -- told to each that asked
                stored = [problem] * len(batch)
            for asked, run in zip(batch, stored, strict=True):
                if asked.answer.done():  # the client has gone
                    continue
                if isinstance(run, Run):
                    asked.answer.set_result(run)
                else:
                    asked.answer.set_exception(run)
        self._storing = None

    def _give_up(self, waiting: list[_Asked]) -> None:
        self._asked, self._storing = [], None
        for asked in waiting:
            asked.answer.cancel()
