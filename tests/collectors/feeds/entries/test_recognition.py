"""Each way in which an article comes back under another link, and what only looks like it."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import product

import pytest

from collectors.feeds.fetching_fixture import Fetching
from tsuzuki.collectors.feeds.entries.parse import parse_feed
from tsuzuki.collectors.feeds.entries.recognition import (
    RULES,
    ArticleComparison,
    Date,
    Host,
    is_same_article,
)
from tsuzuki.collectors.feeds.sandbox.feed_site import Feed, FeedDelivery, FeedSite

MONDAY = "Mon, 03 Nov 2025 09:00:00 GMT"
TUESDAY = "Tue, 04 Nov 2025 09:00:00 GMT"


@dataclass(frozen=True, kw_only=True)
class Listed:
    """An entry as a document lists it."""

    link: str = "https://news.example/2026/bridge"
    guid: str | None = "tag:news.example,2026:17"
    title: str = "A bridge opens"
    date: str | None = MONDAY
    text: str = "Trams cross it."

    def markup(self) -> str:
        said = {
            "title": self.title,
            "link": self.link.replace("&", "&amp;"),
            "guid": self.guid,
            "pubDate": self.date,
            "description": self.text,
        }
        inner = "".join(f"<{name}>{text}</{name}>" for name, text in said.items() if text)
        return "<item>" + inner.replace("<guid>", "<guid isPermaLink='false'>") + "</item>"


BRIDGE = Listed()
TRAM = Listed(
    link="https://news.example/2026/tram", guid="tag:news.example,2026:18", title="The tram"
)


def document(*listed: Listed) -> FeedDelivery:
    items = "".join(one.markup() for one in listed)
    body = f"<rss version='2.0'><channel><title>T</title>{items}</channel></rss>".encode()
    parsed = parse_feed(
        body, url="https://news.example/feed", headers={}, now=datetime(2026, 4, 1, tzinfo=UTC)
    )
    assert len(parsed.entries) == len(listed)
    return FeedDelivery(body=body, content_type="application/rss+xml")


def found(fetching: Fetching, site: FeedSite, *documents: tuple[Listed, ...]) -> list[int]:
    """How many new articles each document of a feed has, fetched one after the other."""
    counts = []
    for number, listed in enumerate(documents):
        if number:
            site.edit_feed("/news.xml", delivery=document(*listed))
        else:
            site.add_feed(Feed(path="/news.xml", delivery=document(*listed)), [])
        counts.append(fetching.fetch(news="/news.xml").new_items)
    return counts


SAME = {
    "a tracker in the link": (BRIDGE, replace(BRIDGE, link=f"{BRIDGE.link}?utm_source=rss", guid=None)),
    "another scheme": (BRIDGE, replace(BRIDGE, link="http://news.example/2026/bridge", guid=None)),
    "with www": (BRIDGE, replace(BRIDGE, link="https://www.news.example/2026/bridge", guid=None)),
    "for a small screen": (BRIDGE, replace(BRIDGE, link="https://m.news.example/2026/bridge/", guid="5")),
    "the same link, all else new": (
        BRIDGE,
        Listed(guid="x", title="Closed", date=TUESDAY, text="No trams."),
    ),
    "a corrected title": (BRIDGE, replace(BRIDGE, title="A bridge is opened", guid=None)),
    "an unknown tracker in the link": (BRIDGE, replace(BRIDGE, link=f"{BRIDGE.link}?cid=9")),
    "without a date, another slug": (
        replace(BRIDGE, date=None),
        replace(BRIDGE, date=None, link="https://news.example/bridge"),
    ),
    "rescheduled, its day in the link": (
        BRIDGE,
        replace(BRIDGE, date=TUESDAY, link="https://news.example/2026/03/bridge"),
    ),
    "moved to another host, with its guid": (
        BRIDGE,
        replace(BRIDGE, link="https://new.example/bridge"),
    ),
    "moved to another host, its guid is an address": (
        replace(BRIDGE, guid="https://news.example/?p=17"),
        replace(BRIDGE, link="https://new.example/2026/bridge", guid="https://new.example/?p=17"),
    ),
    "moved to another host, without guid and date": (
        replace(BRIDGE, guid=None, date=None),
        replace(BRIDGE, guid=None, date=None, link="https://new.example/2026/bridge"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("before", "now"), SAME.values(), ids=SAME)
def test_an_article_that_comes_back_is_one_item(
    fetching: Fetching, site: FeedSite, before: Listed, now: Listed
) -> None:
    assert found(fetching, site, (before,), (now,)) == [1, 0]


OTHER = {
    "a reused guid on the same day": (
        BRIDGE,
        replace(BRIDGE, link="https://news.example/2026/tunnel", title="A tunnel opens"),
    ),
    "a reused guid on the same day, its number in the query": (
        replace(BRIDGE, link="https://news.example/index.php?id=1"),
        replace(BRIDGE, link="https://news.example/index.php?id=2", title="A tunnel opens"),
    ),
    "a corrected title and its slug, which looks the same": (
        BRIDGE,
        replace(BRIDGE, title="A bridge is opened", link="https://news.example/2026/bridge-2"),
    ),
    "a reused guid": (
        BRIDGE,
        Listed(link="https://news.example/2", title="Tuesday", date=TUESDAY),
    ),
    "a reused guid, without dates": (
        replace(BRIDGE, date=None),
        Listed(link="https://news.example/2", title="Tuesday", date=None),
    ),
    "a reused guid and title": (
        BRIDGE,
        Listed(link="https://news.example/2", date=TUESDAY, text="The menu of Tuesday."),
    ),
    "a reused guid and title, without texts": (
        replace(BRIDGE, text=""),
        Listed(link="https://news.example/2", date=TUESDAY, text=""),
    ),
    "the same path and date on another host": (
        replace(BRIDGE, guid=None),
        Listed(link="https://other.example/2026/bridge", guid=None, title="Another bridge"),
    ),
    "the same path, date and title on another host, with a guid of its own": (
        BRIDGE,
        Listed(link="https://other.example/2026/bridge", guid="another"),
    ),
    "the same guid and date on another host": (
        BRIDGE,
        Listed(link="https://other.example/2026/bridge", title="Another bridge"),
    ),
    "the same path and title on another host, on another day": (
        replace(BRIDGE, guid=None),
        Listed(link="https://other.example/2026/bridge", guid=None, date=TUESDAY),
    ),
}


@pytest.mark.parametrize(("before", "now"), OTHER.values(), ids=OTHER)
def test_an_article_that_a_reader_tells_apart_is_another_item(
    fetching: Fetching, site: FeedSite, before: Listed, now: Listed
) -> None:
    assert found(fetching, site, (before,), (now,), (before,)) == [1, 1, 0]


def test_a_feed_with_one_guid_for_all_and_a_new_link_each_day_loses_none(
    fetching: Fetching, site: FeedSite
) -> None:
    days = [
        (Listed(link=f"https://news.example/{day}", guid="daily", title=f"Day {day}",
                date=f"{day:02} Nov 2025 06:00:00 GMT"),)
        for day in range(1, 6)
    ]  # fmt: skip
    assert found(fetching, site, *days, days[0]) == [1, 1, 1, 1, 1, 0]


def test_a_feed_with_one_guid_one_entry_and_dates_without_a_time_loses_none(
    fetching: Fetching, site: FeedSite
) -> None:
    articles = [
        (Listed(link=f"https://news.example/{name}", guid="latest", title=name, date="2025-11-03"),)
        for name in ("bridge", "tunnel", "ferry")
    ]
    assert found(fetching, site, *articles, articles[0]) == [1, 1, 1, 0]


def test_three_hosts_with_the_same_paths_are_three_sites(
    fetching: Fetching, site: FeedSite
) -> None:
    notices = [
        (Listed(link=f"https://{town}.example/notice/1", guid=f"{town}-1", title=f"From {town}"),)
        for town in ("north", "south", "west")
    ]
    assert found(fetching, site, *notices) == [1, 1, 1]


def test_a_site_that_is_still_listed_has_not_moved(fetching: Fetching, site: FeedSite) -> None:
    before = replace(BRIDGE, guid=None)
    copied = replace(before, link="https://copy.example/2026/bridge")
    assert found(fetching, site, (before, TRAM), (copied, TRAM)) == [2, 1]


def test_two_links_of_one_document_are_two_articles(fetching: Fetching, site: FeedSite) -> None:
    """The guid of the first now stands at a second link, and the first is listed without one."""
    second = replace(BRIDGE, link="https://news.example/2026/bridge-2")
    assert found(fetching, site, (BRIDGE,), (replace(BRIDGE, guid=None), second)) == [1, 1]


def test_an_article_whose_title_was_corrected_before_the_move_is_one_item(
    fetching: Fetching, site: FeedSite
) -> None:
    corrected = replace(BRIDGE, title="A bridge is opened")
    moved = replace(corrected, link="https://new.example/2026/bridge")
    assert found(fetching, site, (BRIDGE, TRAM), (corrected, TRAM), (moved,)) == [2, 0, 0]


def test_the_rules_recognise_these_comparisons_and_no_others() -> None:
    recognised = {
        (seen.host, seen.date, seen.is_title_same, seen.is_text_same)
        for seen in (
            ArticleComparison(host=host, date=date, is_title_same=title, is_text_same=text)
            for host, date, title, text in product(Host, Date, (False, True), (False, True))
        )
        if is_same_article(seen)
    }
    same, unknown = Date.SAME, Date.UNKNOWN
    unchanged = set(product((Host.SAME, Host.LEFT), (same, unknown), (True,), (False, True)))
    rescheduled = {(Host.SAME, date, True, True) for date in Date}
    assert recognised == unchanged | rescheduled
    assert [rule.name for rule in RULES] == ["unchanged", "rescheduled"]
