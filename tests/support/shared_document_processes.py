"""One process of each kind that reads documents, for all tests of a test process: to start one takes a second."""

import atexit

import pytest

from tsuzuki.collectors.feeds.documents.text_extractor import TextExtractor
from tsuzuki.collectors.feeds.entries.feed_parser import FeedParser
from tsuzuki.collectors.feeds.fetching import fetch
from tsuzuki.collectors.feeds.items import page_reader


class SharedTextExtractor(TextExtractor):
    """Stays when a run is over."""

    def close(self) -> None:
        """The next run uses it too."""


class SharedFeedParser(FeedParser):
    """Stays when a run is over."""

    def close(self) -> None:
        """The next run uses it too."""
        self._slow = 0


_extractor, _parser = SharedTextExtractor(), SharedFeedParser()
atexit.register(TextExtractor.close, _extractor)
atexit.register(FeedParser.close, _parser)


def share_document_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs in this process use the same processes."""
    monkeypatch.setattr(page_reader, "TextExtractor", lambda: _extractor)
    monkeypatch.setattr(fetch, "FeedParser", lambda: _parser)
