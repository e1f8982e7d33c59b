"""The answer of a stream: written as fast as the reader reads, ended when it leaves, cut off if it does not read."""

import asyncio
from collections.abc import AsyncIterator, Callable

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from tsuzuki.model.errors import TsuzukiError
from tsuzuki.services.server_log import log
from tsuzuki.web.stream.subscription import Subscription

HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
ABORT = "abort"
"""Under this name a connection's state has what closes it at once (see `web.server`)."""


class EventStream(StreamingResponse):
    def __init__(self, subscription: Subscription) -> None:
        super().__init__((), media_type="text/event-stream", headers=HEADERS)
        self._subscription = subscription

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        subscription = self._subscription
        gone = asyncio.create_task(_disconnected(receive))
        written = asyncio.create_task(self._write(send))
        tasks = [written, gone, asyncio.create_task(subscription.is_cut.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if subscription.is_cut.is_set() and not written.done():
                log.info("stream_cut_off", actor=subscription.credentials.actor)
                abort: Callable[[], None] | None = scope.get("state", {}).get(ABORT)
                if abort is not None:
                    # What is left in its buffers is dropped; the last id that it read is the one it resumes from.
                    abort()
                    await gone
        finally:
            subscription.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def frames(self) -> AsyncIterator[bytes]:
        """What is written."""
        return self._subscription.frames()

    async def _write(self, send: Send) -> None:
        headers = self.raw_headers
        await send({"type": "http.response.start", "status": self.status_code, "headers": headers})
        try:
            async for written in self.frames():
                await send({"type": "http.response.body", "body": written, "more_body": True})
        except TsuzukiError as problem:
            log.warning("stream_unreadable", error=problem.specific_code)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
