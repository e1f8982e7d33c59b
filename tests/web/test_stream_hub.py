"""The hub by itself: one rendering for each renderer, streams that join at any moment, and what may fail."""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from types import SimpleNamespace
from typing import Any

from tsuzuki.model.errors import NotFound
from tsuzuki.services.changes import PositionLost
from tsuzuki.web.stream.credentials import Credentials
from tsuzuki.web.stream.frames import read_id, write_id
from tsuzuki.web.stream.hub import Hub
from tsuzuki.web.stream.source import StreamStep
from tsuzuki.web.stream.subscription import Subscription
from tsuzuki.web.stream.topics import StreamEventKind, parse_topics

ME = Credentials(actor="me")


class Numbers:
    """A source of numbers in order; a position is how many there were."""

    def __init__(self) -> None:
        self.count = 0
        self.failure: Exception | None = None

    def now(self) -> str:
        if self.failure is not None:
            raise self.failure
        return str(self.count)

    def first(self, now: str) -> str:
        return now

    def between(self, known: str, until: str) -> Iterator[StreamStep]:
        if not known.isdigit():
            raise PositionLost(known)
        for number in range(int(known) + 1, int(until) + 1):
            yield StreamStep(position=str(number), data=number)


class Spelled:
    """Renders a number, and counts how often; fails for one."""

    def __init__(self, key: str, *, fails_for: int = 0) -> None:
        self.key = key
        self.rendered: list[int] = []
        self._fails_for = fails_for

    def render(self, kind: StreamEventKind, data: Any) -> str | None:
        self.rendered.append(data)
        if data == self._fails_for:
            raise ValueError(data)
        return f"{self.key} {data}\n{kind.value}"


class Hints:
    """A listener that always hears something."""

    def wait(self, _seconds: float) -> list[str]:
        return ["tsuzuki_leader"]

    def close(self) -> None:
        pass


def make(source: Numbers) -> Hub:
    live = SimpleNamespace(live=frozenset)
    return Hub(
        source_of=lambda _selection: source,
        listen=Hints,
        credentials=live,  # type: ignore[arg-type]  # credentials that are always valid
        stopping=asyncio.Event(),
    )


async def heard(subscription: Subscription, count: int) -> list[str]:
    """The first events, without what opens the stream."""
    found: list[str] = []
    async with asyncio.timeout(20), aclosing(subscription.frames()) as frames:
        async for written in frames:
            found += [written.decode()] if b"event: ready" not in written else []
            if len(found) == count:
                break
    return found


TOPICS = parse_topics("created")


def test_each_renderer_renders_once_for_all_its_streams() -> None:
    async def follow() -> None:
        source = Numbers()
        hub = make(source)
        english, japanese = Spelled("en"), Spelled("ja")
        streams = [
            await hub.subscribe(TOPICS, renderer, credentials=ME)
            for renderer in (english, english, japanese)
        ]
        source.count = 2
        first, second, third = await asyncio.gather(*(heard(one, 2) for one in streams))
        assert (
            first
            == second
            == [
                "event: created\ndata: en 1\ndata: created\nid: created~1\n\n",
                "event: created\ndata: en 2\ndata: created\nid: created~2\n\n",
            ]
        )
        assert third[0].startswith("event: created\ndata: ja 1\n")
        assert english.rendered == japanese.rendered == [1, 2]
        await hub.stop()

    asyncio.run(follow())


def test_a_stream_that_joins_at_any_moment_hears_each_number_once() -> None:
    async def follow() -> None:
        source = Numbers()
        hub = make(source)
        first = await hub.subscribe(TOPICS, Spelled("en"), credentials=ME)
        source.count = 5
        later = [
            await hub.subscribe(
                TOPICS, Spelled("en"), credentials=ME, known=read_id(f"created~{known}")
            )
            for known in range(4)
        ]
        source.count = 7
        assert len(await heard(first, 7)) == 7
        for known, stream in enumerate(later):
            told = await heard(stream, 7 - known)
            assert [line.split()[4] for line in told] == [str(n) for n in range(known + 1, 8)]
        assert await hub.current_id(TOPICS) == write_id({"created": "7"})
        await hub.stop()

    asyncio.run(follow())


def test_a_renderer_that_fails_silences_no_other() -> None:
    async def follow() -> None:
        source = Numbers()
        hub = make(source)
        failing = await hub.subscribe(TOPICS, Spelled("ja", fails_for=1), credentials=ME)
        sound = await hub.subscribe(TOPICS, Spelled("en"), credentials=ME)
        source.count = 2
        assert len(await heard(sound, 2)) == 2
        assert (await heard(failing, 1))[0].startswith("event: created\ndata: ja 2")
        await hub.stop()

    asyncio.run(follow())


def test_a_source_that_is_gone_ends_its_streams() -> None:
    async def follow() -> None:
        source = Numbers()
        hub = make(source)
        stream = await hub.subscribe(TOPICS, Spelled("en"), credentials=ME)
        source.failure = NotFound("gone")
        assert await heard(stream, 2) == ['event: end\ndata: {"code":"not_found"}\n\n']
        stream.close()
        assert not hub.subscriptions
        await hub.stop()

    asyncio.run(follow())


def test_a_position_that_is_lost_is_told_and_the_stream_goes_on() -> None:
    async def follow() -> None:
        source = Numbers()
        hub = make(source)
        known = {"created": "nonsense"}
        stream = await hub.subscribe(TOPICS, Spelled("en"), credentials=ME, known=known)
        source.count = 1
        lost, told = await heard(stream, 2)
        assert lost == 'event: reload\ndata: {"topic":"created"}\nid: created~0\n\n'
        assert told.startswith("event: created\ndata: en 1\n")
        await hub.stop()

    asyncio.run(follow())
