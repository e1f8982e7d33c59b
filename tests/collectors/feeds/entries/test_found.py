"""Storing the entries of several feeds at the same time, and of very long ones."""

from datetime import UTC, datetime

import pytest

from collectors.feeds.fetching_fixture import Fetching
from support.threads import in_background
from support.waiting import wait_until_blocked
from tsuzuki.collectors.feeds.entries.entry import FeedEntry, ParsedFeed
from tsuzuki.collectors.feeds.entries.found import ParsedEntries, store_entries
from tsuzuki.collectors.feeds.entries.identity import Identifiers, canonical_url, fingerprints_of
from tsuzuki.collectors.feeds.items.item import ItemStatus
from tsuzuki.collectors.feeds.options import FeedOptions, FeedsOptions
from tsuzuki.collectors.feeds.queries import found_items
from tsuzuki.collectors.feeds.queries.feeds import StoredFeed, sync_feeds
from tsuzuki.store.sql.database import Database

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
OPTIONS = FeedOptions.model_validate({"url": "https://a.example/feed", "backfill": "all"})


def entry(url: str, title: str = "A") -> FeedEntry:
    canonical = canonical_url(url)
    identifiers = Identifiers(canonical_url=canonical, guid=None)
    (fingerprints,) = fingerprints_of([identifiers])
    return FeedEntry(
        url=url,
        canonical_url=canonical,
        title=title,
        content_hash=title,
        fingerprints=fingerprints,
    )


def parsed(*entries: FeedEntry) -> ParsedFeed:
    return ParsedFeed(title="T", entries=list(entries))


@pytest.fixture
def two_feeds(feeds_database: Database) -> tuple[StoredFeed, StoredFeed]:
    options = FeedsOptions(feeds={"one": OPTIONS, "two": OPTIONS})
    with feeds_database.write() as connection:
        rows = sync_feeds(connection, "press", options, now=NOW)
    return rows["one"], rows["two"]


def test_two_feeds_that_store_one_article_at_once_make_one_item(
    feeds_database: Database, two_feeds: tuple[StoredFeed, StoredFeed], dialect: str
) -> None:
    one, two = two_feeds

    def store_second() -> ParsedEntries:
        with feeds_database.write() as connection:
            tracked = parsed(entry("https://a.example/1?utm_source=rss"))
            return store_entries(connection, two, OPTIONS, tracked, now=NOW)

    with feeds_database.write() as connection:
        first = store_entries(
            connection, one, OPTIONS, parsed(entry("https://a.example/1")), now=NOW
        )
        second = in_background(store_second)
        if dialect == "postgresql":
            wait_until_blocked(feeds_database)
    assert (first.new, second.result().new) == (1, 0)


def test_a_document_that_lists_an_article_twice_has_it_once(
    fetching: Fetching, two_feeds: tuple[StoredFeed, StoredFeed]
) -> None:
    links = ["https://a.example/1", "http://www.a.example/1/", "https://a.example/1"]
    with fetching.database.write() as connection:
        found = store_entries(
            connection, two_feeds[0], OPTIONS, parsed(*map(entry, links)), now=NOW
        )
    assert found.new == 1
    assert [item["url"] for item in fetching.items()] == ["https://a.example/1"]


def test_a_url_that_is_stored_without_fingerprints_leaves_its_row_untouched(
    fetching: Fetching, two_feeds: tuple[StoredFeed, StoredFeed]
) -> None:
    with fetching.database.write() as connection:
        found_items.add_items(
            connection, [(entry("https://a.example/1", "Old"), ItemStatus.UNPROCESSED)], now=NOW
        )
    before = fetching.items()
    listed = parsed(entry("https://a.example/1", "New"), entry("https://a.example/2", "Other"))
    with fetching.database.write() as connection:
        assert store_entries(connection, two_feeds[0], OPTIONS, listed, now=NOW).new == 1
    assert fetching.items()[:1] == before
    with fetching.database.write() as connection:
        again = parsed(entry("http://a.example/1/", "Newer"))
        assert store_entries(connection, two_feeds[0], OPTIONS, again, now=NOW).new == 0


def test_a_long_feed_is_stored_in_parts(
    fetching: Fetching, two_feeds: tuple[StoredFeed, StoredFeed]
) -> None:
    many = parsed(*(entry(f"https://a.example/{number}") for number in range(1_201)))
    for expected in (1_201, 0):
        with fetching.database.write() as connection:
            found = store_entries(connection, two_feeds[0], OPTIONS, many, now=NOW)
        assert found.new == expected
    # The last of a document is the oldest, and so the first to be worked on.
    assert fetching.items()[0]["url"] == "https://a.example/1200"
