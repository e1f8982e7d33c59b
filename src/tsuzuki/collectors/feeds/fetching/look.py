"""A look at a feed that nobody follows yet: it is fetched once, and nothing is stored."""

from contextlib import closing
from dataclasses import dataclass
from datetime import datetime

from tsuzuki.collectors.feeds.entries.entry import ParsedFeed
from tsuzuki.collectors.feeds.entries.feed_parser import FeedParser
from tsuzuki.collectors.feeds.fetching.download import FeedDownloads, NewDocument, RefusedDownload
from tsuzuki.collectors.feeds.fetching.request import build_request
from tsuzuki.collectors.feeds.options import FeedOptions, FeedsSection
from tsuzuki.collectors.feeds.queries.feeds import StoredFeed
from tsuzuki.model.clock import Clock
from tsuzuki.outward.errors import SourceFailed
from tsuzuki.outward.safe_download import SafeDownloader

NEWEST_SHOWN = 5
SECONDS_MAX = 10.0
"""A person waits for it."""


@dataclass(frozen=True, kw_only=True)
class FoundEntry:
    title: str
    url: str
    published_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class FeedLook:
    """What a feed lists now: how many entries, and the first of them. `problem`: why it cannot be read."""

    title: str | None = None
    count: int = 0
    entries: tuple[FoundEntry, ...] = ()
    problem: SourceFailed | None = None


def look_at(
    stored: StoredFeed, options: FeedOptions, section: FeedsSection, clock: Clock
) -> FeedLook:
    """Fetch a feed and read it, as a run would."""
    downloader = SafeDownloader(
        clock=clock,
        private_hosts=section.private_hosts,
        timeout_seconds=min(section.request_timeout, SECONDS_MAX),
    )
    try:
        with closing(downloader), closing(FeedParser()) as parser:
            request = build_request(stored, options, section, now=clock.now())
            match FeedDownloads(downloader, clock=clock).ask(request):
                case NewDocument(body=body, url=url, headers=headers):
                    return _found(parser.parse(body, url=url, headers=headers, now=clock.now()))
                case RefusedDownload(failure=failure):
                    return FeedLook(problem=failure)
                case _:  # only a feed that was fetched before is unchanged, or paused
                    return FeedLook()
    except SourceFailed as failure:
        return FeedLook(problem=failure)


def _found(parsed: ParsedFeed) -> FeedLook:
    newest = [
        FoundEntry(title=entry.title, url=entry.url, published_at=entry.published_at)
        for entry in parsed.entries[:NEWEST_SHOWN]
    ]
    return FeedLook(title=parsed.title, count=len(parsed.entries), entries=tuple(newest))
