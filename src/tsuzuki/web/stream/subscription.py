"""One stream: what it missed, and then what the hub gives to its whole group.

What waits for it is bounded. A stream that does not read is cut off, and resumes by the id of the last event it read.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool

from tsuzuki.services.changes import PositionLost
from tsuzuki.services.server_log import log
from tsuzuki.web.stream.credentials import Credentials
from tsuzuki.web.stream.frames import frame, opening, write_id
from tsuzuki.web.stream.rendering import Renderer, write_json
from tsuzuki.web.stream.source import StreamSource, StreamStep
from tsuzuki.web.stream.topics import StreamEventKind, StreamSelection

RELOAD = "reload"
END = "end"
END_SECONDS = 0.3
"""How long a stream that ends may take to write what is left."""


@dataclass(eq=False, kw_only=True)
class StreamGroup:
    """The streams that ask for the same in the same language: they get the same bytes."""

    selections: tuple[StreamSelection, ...]
    renderer: Renderer
    subscriptions: "set[Subscription]" = field(default_factory=set)

    def put(self, written: bytes) -> None:
        for subscription in [*self.subscriptions]:
            subscription.put(written)

    def end(self, code: str) -> None:
        for subscription in [*self.subscriptions]:
            subscription.end(code)


def rendered(selection: StreamSelection, renderer: Renderer, step: StreamStep) -> str | None:
    """The text of a step for those who selected this; None if there is nothing for them."""
    data = step.data
    if selection.kind == StreamEventKind.RUNS:
        data = selection.changes(data)
        if not data:
            return None
    try:
        return renderer.render(selection.kind, data)
    except Exception:  # noqa: BLE001 -- a renderer that fails must not silence the streams of others
        log.exception("stream_not_rendered", kind=str(selection.kind), renderer=renderer.key)
        return None


@dataclass(eq=False, kw_only=True)
class Subscription:
    """Read by one task with `frames`; `leave` is called once, when it is closed."""

    group: StreamGroup
    credentials: Credentials
    sources: Mapping[str, StreamSource]
    start: Mapping[str, str]
    """Where the hub was when this stream came."""
    known: Mapping[str, str]
    queue_bytes_max: int
    leave: "Callable[[Subscription], None]"
    is_cut: asyncio.Event = field(default_factory=asyncio.Event)
    """Set if it must be cut off at once, even in the middle of a write."""
    _queue: deque[bytes] = field(default_factory=deque)
    _queued_bytes: int = 0
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _has_ended: bool = False

    def put(self, written: bytes) -> None:
        if self._has_ended:
            return
        self._queue.append(written)
        self._queued_bytes += len(written)
        self._changed.set()
        if self._queued_bytes > self.queue_bytes_max and len(self._queue) > 1:
            self.end(None)
            self._queue.clear()
            self.is_cut.set()

    def end(self, code: str | None) -> None:
        """Write what is there, say why if there is a code, and end."""
        if self._has_ended:
            return
        if code is not None:
            self.put(frame(END, write_json({"code": code})))
        self._has_ended = True
        self._changed.set()
        # One that does not read would never see its end.
        asyncio.get_running_loop().call_later(END_SECONDS, self.is_cut.set)

    def close(self) -> None:
        self._has_ended = True
        self.leave(self)

    async def frames(self) -> AsyncIterator[bytes]:
        """Everything to write, until the stream ends."""
        positions = {**self.start, **self.known}
        topics = [selection.source for selection in self.group.selections]
        yield opening(write_id(positions), write_json({"sources": topics}))
        for selection in self.group.selections:
            async for written in self._missed(selection, positions):
                yield written
        while True:
            self._changed.clear()
            while self._queue:
                written = self._queue.popleft()
                self._queued_bytes -= len(written)
                yield written
            if self._has_ended:
                return
            await self._changed.wait()

    async def _missed(
        self, selection: StreamSelection, positions: dict[str, str]
    ) -> AsyncIterator[bytes]:
        """What came between the known position and the one where the hub was."""
        name, renderer = selection.source, self.group.renderer
        steps = self.sources[name].between(positions[name], self.start[name])
        try:
            while (found := await run_in_threadpool(_next, steps, selection, renderer)) is not None:
                positions[name], text = found
                if self._has_ended:
                    return
                if text is not None:
                    yield frame(str(selection.kind), text, write_id(positions))
        except PositionLost:
            positions[name] = self.start[name]
            yield frame(RELOAD, write_json({"topic": name}), write_id(positions))


def _next(
    steps: Iterator[StreamStep], selection: StreamSelection, renderer: Renderer
) -> tuple[str, str | None] | None:
    step = next(steps, None)
    return None if step is None else (step.position, rendered(selection, renderer, step))
