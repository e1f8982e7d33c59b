"""Reads the pages of a run's items, each with the request settings of its feed."""

from typing import Self

from tsuzuki.collectors.feeds.entry import attachments_from
from tsuzuki.collectors.feeds.feed_request import headers_of
from tsuzuki.collectors.feeds.feed_set import RunFeed
from tsuzuki.collectors.feeds.options import FeedsSection
from tsuzuki.collectors.feeds.page import Page, download_page
from tsuzuki.collectors.feeds.queries.items import Item
from tsuzuki.collectors.feeds.text_extractor import TextExtractor
from tsuzuki.collectors.kit.safe_download import SafeDownloader

MEGABYTE = 1024 * 1024


class PageReader:
    """Use it in a `with`: the process that reads documents ends with it."""

    def __init__(self, downloader: SafeDownloader, section: FeedsSection) -> None:
        self._downloader = downloader
        self._section = section
        self._extractor = TextExtractor()

    def read(self, item: Item, feed: RunFeed) -> Page:
        """The page of an item with its attachments. Raises `PageFailed`."""
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
        self._extractor.__enter__()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._extractor.__exit__(*_exc)
