"""The hub of a process: reads each source once, renders it once, and gives the same bytes to every stream.

Nothing is read while there is no stream. Each source that is followed has one position; a stream joins there, and what
it has missed before is read for it alone. So every stream gets everything once, in the order of its source.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool

from tsuzuki.model.errors import NotFound, TsuzukiError
from tsuzuki.services.changes import Listener, PositionLost
from tsuzuki.services.server_log import log
from tsuzuki.web.problems import RequestError
from tsuzuki.web.stream.credentials import Credentials, LiveCredentials
from tsuzuki.web.stream.frames import frame, heartbeat, write_id
from tsuzuki.web.stream.rendering import Renderer, write_json
from tsuzuki.web.stream.source import StreamSource, StreamStep
from tsuzuki.web.stream.subscription import RELOAD, StreamGroup, Subscription, rendered
from tsuzuki.web.stream.topics import StreamSelection, Topics

POLL_SECONDS = 1.0
HINT_GAP_SECONDS = 0.1
HEARTBEAT_SECONDS = 15.0
ACCESS_CHECK_SECONDS = 0.5
LISTEN_SECONDS = 0.5
LISTEN_AGAIN_SECONDS = 5.0


@dataclass(kw_only=True)
class StreamLimits:
    """How many streams one process keeps open, in all and for one principal."""

    streams: int = 1_000
    streams_of_one: int = 250
    queue_bytes: int = 1024 * 1024
    """What may wait for a stream that does not read; then it is cut off."""


@dataclass(kw_only=True)
class _Followed:
    source: StreamSource
    position: str
    read_at: float
    """When the last look that succeeded was started."""


@dataclass(kw_only=True)
class Hub:
    """Used on one event loop."""

    source_of: Callable[[StreamSelection], StreamSource]
    listen: Callable[[], Listener]
    credentials: LiveCredentials
    stopping: asyncio.Event
    """Set when the server stops: every stream ends."""
    limits: StreamLimits = field(default_factory=StreamLimits)
    _followed: dict[str, _Followed] = field(default_factory=dict)
    _groups: dict[tuple[tuple[StreamSelection, ...], str], StreamGroup] = field(
        default_factory=dict
    )
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _hinted: asyncio.Event = field(default_factory=asyncio.Event)
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)
    """One reader of the sources at a time."""
    _said_at: float = 0.0

    # --- streams ----------------------------------------------------------------------------------

    async def subscribe(
        self,
        topics: Topics,
        renderer: Renderer,
        *,
        credentials: Credentials,
        known: Mapping[str, str] | None = None,
    ) -> Subscription:
        """A new stream, which continues from the `known` positions (`frames.read_id`); without one, from now. Raises
        `RequestError` if there are too many, and `NotFound` for the log of a run that is not there."""
        self._check_limits(credentials)
        given = {**dict(topics.first_lines), **(known or {})}
        await self._reach(given)
        start = await self._positions(topics, credentials)
        key = (topics.selections, renderer.key)
        group = self._groups.setdefault(
            key, StreamGroup(selections=topics.selections, renderer=renderer)
        )
        sources = {name: self._followed[name].source for name in start}
        subscription = Subscription(
            group=group,
            credentials=credentials,
            sources=sources,
            start=start,
            known={n: given.get(n, sources[n].first(start[n])) for n in start},
            queue_bytes_max=self.limits.queue_bytes,
            leave=self._leave,
        )
        group.subscriptions.add(subscription)
        self._start_work()
        return subscription

    async def current_id(self, topics: Topics) -> str:
        """The id of an event that came now: for a page, read before what the page shows."""
        now = {
            selection.source: await run_in_threadpool(self.source_of(selection).now)
            for selection in topics.selections
        }
        return write_id(now)

    @property
    def subscriptions(self) -> list[Subscription]:
        return [one for group in self._groups.values() for one in group.subscriptions]

    async def stop(self) -> None:
        """Until every stream has been told to end, and nothing is read any more."""
        self.stopping.set()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _end_streams(self) -> None:
        """When the server stops."""
        await self.stopping.wait()
        self._hinted.set()
        for subscription in self.subscriptions:
            subscription.end(None)

    def _check_limits(self, credentials: Credentials) -> None:
        if self.stopping.is_set():
            raise RequestError(
                "this server is shutting down", status=503, code="stopping", retry_after_seconds=2
            )
        opened = self.subscriptions
        if len(opened) >= self.limits.streams:
            raise RequestError(
                f"all {len(opened)} streams of this server are in use",
                status=503,
                hint="Close streams you do not need, or start another server.",
                code="streams_of_server",
                retry_after_seconds=10,
            )
        if sum(one.credentials.actor == credentials.actor for one in opened) >= (
            self.limits.streams_of_one
        ):
            raise RequestError(
                f"{credentials.actor} already has {self.limits.streams_of_one} open streams",
                status=429,
                hint="Close one, or subscribe to several topics with one stream.",
                code="streams_of_one",
                retry_after_seconds=10,
            )

    async def _reach(self, known: Mapping[str, str]) -> None:
        """Read on, so that no known position is ahead of the hub: another server may have told more already."""
        asked_at = _time()
        for name in known:
            async with self._reading:
                followed = self._followed.get(name)
                if followed is None or followed.read_at >= asked_at:
                    continue
                await self._read_source(name)
                if self._followed.get(name) is followed and followed.read_at < asked_at:
                    raise RequestError(
                        "cannot read the changes now",
                        status=503,
                        code="unreachable",
                        retry_after_seconds=2,
                    )

    async def _positions(self, topics: Topics, credentials: Credentials) -> dict[str, str]:
        """The position of each source, which is followed from now on."""
        fresh: dict[str, _Followed] = {}
        while True:
            missing = [
                selection
                for selection in topics.selections
                if selection.source not in self._followed and selection.source not in fresh
            ]
            if not missing:
                break
            for selection in missing:
                source = self.source_of(selection)
                started = _time()
                position = await run_in_threadpool(source.now)
                fresh[selection.source] = _Followed(
                    source=source, position=position, read_at=started
                )
        # Others may have come meanwhile. From here on nothing waits, so that no source is followed for no stream.
        self._check_limits(credentials)
        for name, followed in fresh.items():
            self._followed.setdefault(name, followed)
        return {s.source: self._followed[s.source].position for s in topics.selections}

    def _leave(self, subscription: Subscription) -> None:
        group = subscription.group
        group.subscriptions.discard(subscription)
        if not group.subscriptions:
            self._groups.pop((group.selections, group.renderer.key), None)
            needed = {s.source for left in self._groups.values() for s in left.selections}
            for name in self._followed.keys() - needed:
                del self._followed[name]
        self._hinted.set()

    # --- reading ----------------------------------------------------------------------------------

    def _start_work(self) -> None:
        """What is not at work already."""
        if not self._tasks:
            self._said_at = _time()
            self._tasks["end"] = asyncio.create_task(self._end_streams())
        duties = {"read": self._read, "listen": self._listen, "access": self._check_access}
        for name, work in duties.items():
            task = self._tasks.get(name)
            if task is None or task.done():
                self._tasks[name] = asyncio.create_task(self._repeat(name, work))

    async def _repeat(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        while self._is_needed:
            try:
                await work()
            except Exception:  # noqa: BLE001 -- the outermost net: without it every stream would fall silent
                log.exception("stream_work_failed", work=name)
                await self._pause(POLL_SECONDS)

    @property
    def _is_needed(self) -> bool:
        return bool(self._groups) and not self.stopping.is_set()

    async def _read(self) -> None:
        while self._is_needed:
            self._hinted.clear()
            has_published = False
            for name in [*self._followed]:
                async with self._reading:
                    has_published |= await self._read_source(name)
            self._keep_open()
            # At most one rendering in a second; the first after a quiet time comes at once.
            await self._pause(POLL_SECONDS if has_published else HINT_GAP_SECONDS)
            if not has_published:
                with suppress(TimeoutError):
                    async with asyncio.timeout(POLL_SECONDS - HINT_GAP_SECONDS):
                        await self._hinted.wait()

    async def _read_source(self, name: str) -> bool:
        """Whether there was something to tell."""
        followed = self._followed.get(name)
        if followed is None:
            return False
        try:
            try:
                return await self._tell_new(name, followed)
            except PositionLost:
                started = _time()
                followed.position = await run_in_threadpool(followed.source.now)
                followed.read_at = started
                for group, _ in self._followers(name):
                    group.put(frame(RELOAD, write_json({"topic": name}), self._id_for(group)))
                return True
        except NotFound:
            for group, _ in self._followers(name):
                group.end("not_found")
        except TsuzukiError as problem:
            # Nothing is lost: what could not be read comes with the next look.
            log.warning("stream_source_unreadable", source=name, error=problem.specific_code)
        return False

    async def _tell_new(self, name: str, followed: _Followed) -> bool:
        has_published, started = False, _time()
        until = await run_in_threadpool(followed.source.now)
        steps = followed.source.between(followed.position, until)
        while True:
            wanted = {(s, g.renderer.key): g.renderer for g, s in self._followers(name)}
            found = await run_in_threadpool(_next_step, steps, wanted)
            if found is None:
                followed.read_at = started
            if found is None or self._followed.get(name) is not followed:
                return has_published
            step, texts = found
            followed.position = step.position
            has_published |= self._publish(name, step, texts)

    def _followers(self, name: str) -> Iterator[tuple[StreamGroup, StreamSelection]]:
        for group in [*self._groups.values()]:
            for selection in group.selections:
                if selection.source == name:
                    yield group, selection

    def _publish(
        self, name: str, step: StreamStep, texts: Mapping[tuple[StreamSelection, str], str | None]
    ) -> bool:
        has_published = False
        for group, selection in self._followers(name):
            key = (selection, group.renderer.key)
            # One that came meanwhile may not be rendered for yet.
            text = texts[key] if key in texts else rendered(selection, group.renderer, step)
            if text is not None:
                group.put(frame(str(selection.kind), text, self._id_for(group)))
                has_published = True
        return has_published

    def _id_for(self, group: StreamGroup) -> str:
        return write_id({s.source: self._followed[s.source].position for s in group.selections})

    def _keep_open(self) -> None:
        now = _time()
        if now - self._said_at >= HEARTBEAT_SECONDS:
            self._said_at = now
            for group in [*self._groups.values()]:
                group.put(heartbeat(self._id_for(group)))

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.stopping.wait()

    # --- beside reading ---------------------------------------------------------------------------

    async def _listen(self) -> None:
        """Read sooner when another process says that there is something to do."""
        loop = asyncio.get_running_loop()
        listener: Listener | None = None
        # A listener belongs to one thread.
        with ThreadPoolExecutor(1, thread_name_prefix="stream-hints") as thread:
            while self._is_needed:
                try:
                    if listener is None:
                        listener = await loop.run_in_executor(thread, self.listen)
                    if await loop.run_in_executor(thread, listener.wait, LISTEN_SECONDS):
                        self._hinted.set()
                        await self._pause(HINT_GAP_SECONDS)
                except TsuzukiError as problem:
                    log.debug("stream_hints_unavailable", error=problem.specific_code)
                    if listener is not None:
                        await loop.run_in_executor(thread, listener.close)
                    listener = None
                    await self._pause(LISTEN_AGAIN_SECONDS)
            if listener is not None:
                await loop.run_in_executor(thread, listener.close)

    async def _check_access(self) -> None:
        """End the streams whose token was revoked, whose session ended, or whose time is over."""
        while self._is_needed:
            await self._pause(ACCESS_CHECK_SECONDS)
            opened = self.subscriptions
            try:
                live = await run_in_threadpool(
                    self.credentials.live, {one.credentials for one in opened}
                )
            except TsuzukiError as problem:
                log.warning("stream_access_unchecked", error=problem.specific_code)
                continue
            for subscription in opened:
                if subscription.credentials not in live:
                    subscription.end("not_authenticated")


def _time() -> float:
    return asyncio.get_running_loop().time()


def _next_step(
    steps: Iterator[StreamStep], wanted: Mapping[tuple[StreamSelection, str], Renderer]
) -> tuple[StreamStep, dict[tuple[StreamSelection, str], str | None]] | None:
    """The next step, rendered for all that want it; None after the last. Called in a thread."""
    step = next(steps, None)
    if step is None:
        return None
    return step, {key: rendered(key[0], renderer, step) for key, renderer in wanted.items()}
