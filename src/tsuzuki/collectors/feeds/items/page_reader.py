"""Reads the pages of a run's items, each with the request settings of its feed.

The page of the item that is next may be prefetched, in a thread, while the item before it waits for its model. It is
used if that item is then drawn, unchanged and soon; else it is dropped. Nothing is stored of it before.
"""

from concurrent.futures import Future
from dataclasses import dataclass
from typing import Self

from tsuzuki.collectors.feeds.documents.text_extractor import TextExtractor
from tsuzuki.collectors.feeds.entries.entry import attachments_from
from tsuzuki.collectors.feeds.fetching.feed_set import RunFeed
from tsuzuki.collectors.feeds.fetching.request import headers_of
from tsuzuki.collectors.feeds.items.page import ItemPage, download_page
from tsuzuki.collectors.feeds.options import FeedsSection
from tsuzuki.collectors.feeds.queries.items import StoredItem
from tsuzuki.collectors.kit.prefetch import Prefetch
from tsuzuki.outward.safe_download import SafeDownloader

MEGABYTE = 1024 * 1024
PREFETCHED_SECONDS_MAX = 60.0
"""A page that was prefetched longer ago is read again: it may have changed."""


@dataclass(frozen=True, kw_only=True)
class _Prefetched:
    """A page that is on its way, or there."""

    item: StoredItem
    started: float
    page: Future[ItemPage]


class PageReader:
    """For one thread at a time. Use it in a `with`: the process that reads documents ends with it."""

    def __init__(self, downloader: SafeDownloader, section: FeedsSection) -> None:
        self._downloader = downloader
        self._section = section
        self._extractor = TextExtractor()
        self._thread: Prefetch[ItemPage] = Prefetch(name="tsuzuki-feeds-page")
        self._prefetched: _Prefetched | None = None

    def read(self, item: StoredItem, feed: RunFeed) -> ItemPage:
        """The page of an item with its attachments. Raises `PageFailed`."""
        prefetched, self._prefetched = self._prefetched, None
        if prefetched is not None and self._is_for(prefetched, item):
            return prefetched.page.result()
        return self._read(item, feed)

    def prefetch(self, item: StoredItem, feed: RunFeed) -> None:
        """Start to read the page of an item that is probably next."""
        self._prefetched = _Prefetched(
            item=item,
            started=self._downloader.clock.monotonic(),
            page=self._thread.send(lambda: self._read(item, feed)),
        )

    def _is_for(self, prefetched: _Prefetched, item: StoredItem) -> bool:
        age_seconds = self._downloader.clock.monotonic() - prefetched.started
        is_same = (
            prefetched.item.id == item.id
            and prefetched.item.url == item.url
            and prefetched.item.attachments == item.attachments
        )
        return is_same and age_seconds <= PREFETCHED_SECONDS_MAX

    def _read(self, item: StoredItem, feed: RunFeed) -> ItemPage:
        options = feed.options
        headers, sensitive = headers_of(feed.name, options, self._section)
        return download_page(
            self._downloader,
            url=item.url,
            attachments=attachments_from(item.attachments),
            attachments_max=options.attachments,
            bytes_max=options.download_megabytes * MEGABYTE,
            headers=headers,
            sensitive_headers=sensitive,
            sensitive_origin=options.url,
            extractor=self._extractor,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._thread.__exit__(*_exc)  # its download must end before the downloader is closed
        self._extractor.__exit__(*_exc)
