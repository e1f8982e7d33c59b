"""Parsing in a process of its own, with little memory and bounded processor time.

A document gets time by its size. After a few in one run that used all of theirs, the next ones get only what an
ordinary feed needs many times over: documents that are made to be slow cannot keep a run from the other feeds.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from tsuzuki.collectors.feeds.documents.process import DocumentProcess
from tsuzuki.collectors.feeds.documents.worker import FEED
from tsuzuki.collectors.feeds.entries.entry import ParsedFeed
from tsuzuki.outward import errors
from tsuzuki.outward.errors import SourceFailed, SourceRefused

SECONDS_MIN = 3.0
SECONDS_PER_MEGABYTE = 2.0
"""Processor time for a document. An ordinary feed takes 0.4 seconds for a megabyte."""

SLOW_MAX = 3
"""Documents that may use all of their time; after them each has `SECONDS_MIN / 3`."""

WAITING_PER_SECOND = 10.0
"""How long a second of processor time may take on a busy machine."""

_HEADERS = ("content-type", "content-language")


class FeedParser(DocumentProcess):
    """Parses the documents of one run, one at a time."""

    def __init__(self, *, seconds_min: float = SECONDS_MIN) -> None:
        super().__init__(kind=FEED)
        self._seconds_min = seconds_min
        self._slow = 0

    def parse(
        self,
        body: bytes,
        *,
        url: str,
        headers: Mapping[str, str],
        now: datetime,
        while_waiting: Callable[[], None] = lambda: None,
    ) -> ParsedFeed:
        """As `parse_feed` does. Raises `SourceRefused` too if the document takes too much time or memory."""
        seconds = self._seconds_of(body)
        order = {
            "kind": FEED,
            "url": url,
            "headers": {name: headers[name] for name in _HEADERS if name in headers},
            "now": now.isoformat(),
            "processor_seconds": seconds,
        }
        answer = self._ask(
            order, body, seconds_max=seconds * WAITING_PER_SECOND, while_waiting=while_waiting
        )
        if answer is None:
            self._slow += 1
            raise SourceRefused(
                "parsing the feed takes too much time or memory",
                hint="Look for a feed of the newest entries only.",
                code="too_large",
            )
        if "refused" in answer:
            raise _failure(answer["refused"])
        return ParsedFeed.from_dict(answer["feed"])

    def _seconds_of(self, body: bytes) -> float:
        if self._slow >= SLOW_MAX:
            return self._seconds_min / 3
        return self._seconds_min + SECONDS_PER_MEGABYTE * len(body) / 1_000_000


def answer_of(order: Mapping[str, Any], body: bytes) -> dict[str, Any]:
    """The document of an order, parsed: called in the process."""
    from tsuzuki.collectors.feeds.entries.parse import parse_feed  # noqa: PLC0415 -- only in the process

    try:
        parsed = parse_feed(
            body,
            url=order["url"],
            headers=order["headers"],
            now=datetime.fromisoformat(order["now"]),
        )
    except SourceFailed as failure:
        said = {"message": failure.message, "hint": failure.hint, "code": failure.specific_code}
        return {"refused": {"class": type(failure).__name__, **said}}
    return {"feed": parsed.as_dict()}


def _failure(refused: Mapping[str, Any]) -> SourceFailed:
    category: type[SourceFailed] = getattr(errors, refused["class"])
    return category(refused["message"], hint=refused["hint"], code=refused["code"])
