"""One process that reads documents, for all tests of a test process: to start one takes a second."""

import atexit

import pytest

from tsuzuki.collectors.feeds import page_reader
from tsuzuki.collectors.feeds.text_extractor import TextExtractor


class SharedTextExtractor(TextExtractor):
    """Stays when a run is over."""

    def close(self) -> None:
        """The next run uses it too."""


_shared = SharedTextExtractor()
atexit.register(TextExtractor.close, _shared)


def share_text_extractor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs in this process use the one."""
    monkeypatch.setattr(page_reader, "TextExtractor", lambda: _shared)
