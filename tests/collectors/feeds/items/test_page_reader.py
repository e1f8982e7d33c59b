"""The pages of a run's items, as a feed lists them; each is read once, also if it is prefetched."""

from typing import Any

import pytest

from collectors.feeds.feeds_fixture import FeedsFixture
from tsuzuki.collectors.feeds.fetching.feed_set import RunFeed
from tsuzuki.collectors.feeds.items import page_reader
from tsuzuki.collectors.feeds.items.item import ItemReason, ItemStatus
from tsuzuki.collectors.feeds.items.page_reader import PageReader
from tsuzuki.collectors.feeds.options import FeedOptions, FeedsSection
from tsuzuki.collectors.feeds.queries.items import upcoming
from tsuzuki.collectors.feeds.sandbox.feed_site import ArticlePage, MediaContent
from tsuzuki.outward.safe_download import SafeDownloader
from tsuzuki.sandbox.faults import StandInFault

PLAIN = ArticlePage(body=b"The bridge was opened today.", content_type="text/plain")
"""It needs no process that reads documents."""

NO_CAPS = {"per_run": None, "per_hour": None, "per_day": None}
sqlite_only = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)


def pages_asked(fixture: FeedsFixture) -> list[str]:
    paths = [seen.request.path for seen in fixture.server.requests]
    return [path for path in paths if path.startswith("/articles/")]


def test_the_picture_of_an_entry_is_no_file_to_be_read(feeds_fixture: FeedsFixture) -> None:
    feeds_fixture.add(media=(MediaContent(url="/bridge.png", description="A bridge"),))
    feeds_fixture.work()
    assert feeds_fixture.item() == (ItemStatus.PROCESSED, ItemReason.NONE, 0)
    (path,) = [
        s.request.path for s in feeds_fixture.server.requests if "articles" in s.request.path
    ]
    assert path.startswith("/articles/")


def test_a_page_shorter_than_its_link_is_judged_by_its_text(feeds_fixture: FeedsFixture) -> None:
    feeds_fixture.add(title="Personnel", text="New personnel.", path="/" + "a" * 100)
    feeds_fixture.work()
    assert feeds_fixture.item() == (ItemStatus.DEFERRED, ItemReason.NOT_VALUABLE, 1)


# --- prefetch -------------------------------------------------------------------------------------


def test_each_page_is_asked_for_once_and_the_order_stays(feeds_fixture: FeedsFixture) -> None:
    feeds_fixture.feed = {"caps": NO_CAPS}
    for number in range(4):
        feeds_fixture.add(f"Article {number}", page=PLAIN)
    commits: list[int] = []
    feeds_fixture.start().work(after=commits.append)
    titles = [text.splitlines()[0] for text in feeds_fixture.posts]
    assert titles == [f"Article {number}" for number in range(4)]
    assert len(pages_asked(feeds_fixture)) == len(set(pages_asked(feeds_fixture))) == 4
    more = [feeds_fixture.add(f"Article {number}", page=PLAIN) for number in (4, 5)]
    more_commits: list[int] = []
    feeds_fixture.start().work(after=more_commits.append)
    assert len(feeds_fixture.posts) == 4 + len(more)
    assert len(commits) - len(more_commits) == 2 * 4 + 1, "four for an item, one for the limits"


@sqlite_only
@pytest.mark.parametrize(
    ("feed", "options"),
    [({"caps": {**NO_CAPS, "per_run": 1}}, {}), ({"caps": NO_CAPS}, {"items_per_run": 1})],
)
def test_no_page_is_asked_for_that_the_run_will_not_need(
    feeds_fixture: FeedsFixture, feed: dict[str, Any], options: dict[str, Any]
) -> None:
    feeds_fixture.feed, feeds_fixture.options = feed, options
    for number in range(2):
        feeds_fixture.add(f"Article {number}", page=PLAIN)
    feeds_fixture.work()
    assert len(feeds_fixture.posts) == len(pages_asked(feeds_fixture)) == 1


@sqlite_only
def test_a_page_that_fails_in_a_prefetch_defers_only_its_own_item(
    feeds_fixture: FeedsFixture,
) -> None:
    feeds_fixture.feed = {"caps": NO_CAPS}
    for number in range(3):
        feeds_fixture.add(f"Article {number}", page=PLAIN)
    feeds_fixture.server.faults.add(StandInFault(path="/articles/*", status=503, skip=1))
    result = feeds_fixture.work()["process"]
    assert (result["posted"], result["deferred"]) == (2, {"download_failed": 1})
    assert len(pages_asked(feeds_fixture)) == 3


@sqlite_only
def test_a_prefetched_page_is_used_for_its_item_and_soon(
    feeds_fixture: FeedsFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2):
        feeds_fixture.add(f"Article {number}", page=PLAIN)
    feeds_fixture.work(arguments={"process": False})
    clock = feeds_fixture.database.clock
    with feeds_fixture.database.read() as connection:
        first, second = upcoming(connection, feed_ids=[1], now=clock.now(), limit=2)
    feed = RunFeed(id=1, name="news", title="News", options=FeedOptions(url="http://news.example"))
    with (
        SafeDownloader(clock=clock, timeout_seconds=5, private_hosts=["127.0.0.1"]) as downloader,
        PageReader(downloader, FeedsSection()) as reader,
    ):
        reader.prefetch(first, feed)
        assert reader.read(first, feed).text == "The bridge was opened today."
        assert len(pages_asked(feeds_fixture)) == 1
        reader.prefetch(first, feed)
        reader.read(second, feed)  # the page of another item
        reader.prefetch(first, feed)
        monkeypatch.setattr(page_reader, "PREFETCHED_SECONDS_MAX", -1.0)
        reader.read(first, feed)  # it may have changed since
    assert len(pages_asked(feeds_fixture)) == 5
