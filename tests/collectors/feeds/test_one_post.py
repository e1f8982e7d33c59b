"""One article is one post: however often it changes, in however many feeds, and also if two runs work at once."""

import threading
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from support.threads import TIMEOUT_SECONDS, at_once
from tsuzuki.collectors.feeds.items.item import ItemReason, ItemStatus
from tsuzuki.collectors.feeds.sandbox.feed_site import ArticlePage, Feed
from tsuzuki.collectors.feeds.sandbox.feed_site.traps import (
    INJECTION,
    add_page_trap,
    add_trap,
    trap_path,
)
from tsuzuki.collectors.feeds.sandbox.gemini import GeminiCase

from .feeds_fixture import FEED_PATH, FeedsFixture

POSTED = (ItemStatus.PROCESSED, ItemReason.NONE, 0)
NO_CAPS = {"per_run": None, "per_hour": None, "per_day": None}
PLAIN = ArticlePage(
    body=b"The bridge was opened today. Many people came to see it, and the mayor too.",
    content_type="text/plain",
)
FIRST_DRAWN = 2
"""The commit of a run without a fetch that takes its first item."""

sqlite_only = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)


def test_two_runs_at_once_never_take_the_same_item(feeds_fixture: FeedsFixture) -> None:
    feeds_fixture.feed = {"caps": NO_CAPS}
    for number in range(8):
        feeds_fixture.add(f"Article {number}", page=PLAIN)
    feeds_fixture.work(arguments={"process": False})
    started = [feeds_fixture.start(arguments={"fetch": False}) for _ in range(2)]
    both_have_drawn = threading.Barrier(2)

    def work(number: int) -> dict[str, Any]:
        def meet(commit: int) -> None:
            if commit == FIRST_DRAWN:
                both_have_drawn.wait(TIMEOUT_SECONDS)

        return started[number].work(after=meet)

    results = [result["process"] for result in at_once(2, work)]
    assert sum(result["posted"] for result in results) == 8
    assert min(result["posted"] for result in results) > 0
    assert {item["status"] for item in feeds_fixture.items()} == {ItemStatus.PROCESSED}
    assert feeds_fixture.waiting() == []
    assert len(feeds_fixture.posts) == len(set(feeds_fixture.posts)) == 8
    done = Counter((step["item_id"], step["step"]) for step in feeds_fixture.steps())
    assert set(done.values()) == {1}
    assert feeds_fixture.gemini.paid.count() == feeds_fixture.paid_steps() == 16


@sqlite_only
@pytest.mark.parametrize(
    ("now", "midnight"),
    [
        (datetime(2026, 3, 8, 9, 30, tzinfo=UTC), datetime(2026, 3, 9, 7, tzinfo=UTC)),
        (datetime(2026, 11, 1, 8, 30, tzinfo=UTC), datetime(2026, 11, 2, 8, tzinfo=UTC)),
    ],
    ids=["clocks forward", "clocks back"],
)
@pytest.mark.parametrize("is_budget", [False, True], ids=["quota", "budget"])
def test_a_day_without_quota_ends_at_midnight_pacific_across_a_clock_change(
    feeds_fixture: FeedsFixture, now: datetime, midnight: datetime, *, is_budget: bool
) -> None:
    clock = feeds_fixture.database.clock
    clock.advance((now - clock.now()).total_seconds())
    if is_budget:
        feeds_fixture.feed = {"budget": {"requests_per_day": 1}}
    else:
        feeds_fixture.gemini.cases.add(GeminiCase.DAILY_QUOTA)
    feeds_fixture.add(page=PLAIN)
    feeds_fixture.work()
    (coming,) = feeds_fixture.coming_runs()
    assert coming.scheduled_for == midnight
    assert feeds_fixture.items()[0]["retry_count"] == 0
    clock.advance((midnight - now).total_seconds())
    feeds_fixture.work()
    assert feeds_fixture.item() == POSTED
    assert feeds_fixture.gemini.paid.count() == feeds_fixture.paid_steps() == 2


@sqlite_only
def test_an_article_edited_again_and_again_under_other_names_is_posted_once(
    feeds_fixture: FeedsFixture,
) -> None:
    article = feeds_fixture.add(guid="urn:1", page=PLAIN)
    feeds_fixture.work()
    url = f"{feeds_fixture.server.url}{article.path}"
    names = [
        {"guid": "urn:2"},
        {"link": url.replace("127.0.0.1", "www.news.example")},
        {"link": url.replace("127.0.0.1", "news.example")},
        {"link": f"{url.replace('127.0.0.1', 'news.example')}/"},
        {"link": f"{url.replace('127.0.0.1', 'news.example')}?utm_source=feed&fbclid=1"},
        {"link": url.replace("127.0.0.1", "news.example").replace("http:", "https:")},
        {"guid": "urn:3", "title": "Another title"},
    ]
    for number, changes in enumerate(names):
        feeds_fixture.site.edit_article(article, summary=f"Version {number}.", **changes)
        feeds_fixture.work()
        assert len(feeds_fixture.items()) == 1, changes
    assert len(feeds_fixture.posts) == 1
    assert feeds_fixture.gemini.paid.count() == 2


def test_an_article_of_two_feeds_belongs_to_the_first_and_is_posted_once(
    feeds_fixture: FeedsFixture,
) -> None:
    article = feeds_fixture.add(page=PLAIN)
    feeds_fixture.site.add_feed(Feed(path="/all.xml", title="All"))
    feeds_fixture.site.list_article("/all.xml", article)
    feeds = {
        "news": {"url": FEED_PATH, "backfill": "all"},
        "all": {"url": "/all.xml", "backfill": "all"},
    }
    feeds_fixture.work(news=feeds["news"])
    feeds_fixture.work(**feeds)
    assert len(feeds_fixture.posts) == 1
    (item,) = feeds_fixture.items()
    explained = feeds_fixture.service.explanations.explain(str(item["id"]))
    found, also_listed = explained.history
    assert "in feed bot/news" in found
    assert "bot/all" in also_listed


@sqlite_only
@pytest.mark.parametrize("trap", ["injection", "page_hidden_injection", "injection_in_title"])
def test_orders_in_a_page_or_a_title_leave_no_mention_link_or_hashtag(
    feeds_fixture: FeedsFixture, trap: str
) -> None:
    add = add_trap if trap == "injection_in_title" else add_page_trap
    add(feeds_fixture.site, trap)
    feeds_fixture.work(trap={"url": trap_path(trap), "backfill": "all"})
    assert feeds_fixture.posts
    assert_harmless(feeds_fixture)
    for post in feeds_fixture.posts:
        assert "SYSTEM" not in post
        assert "instructions" not in post


@sqlite_only
def test_a_model_that_obeys_the_page_puts_no_mention_link_or_hashtag_into_the_post(
    feeds_fixture: FeedsFixture,
) -> None:
    feeds_fixture.add(
        "A bridge opens", page=ArticlePage(body=INJECTION.encode(), content_type="text/plain")
    )
    feeds_fixture.work()
    assert "buy at" in feeds_fixture.posts[0], "the model did as it was told"
    assert_harmless(feeds_fixture)


def assert_harmless(fixture: FeedsFixture) -> None:
    """The only link of each post is that of its item."""
    links = {item["url"] for item in fixture.items()}
    for status in fixture.mastodon.statuses:
        entity = fixture.mastodon.entity(status)
        assert entity["mentions"] == entity["tags"] == []
        assert [word for word in status.text.split() if "://" in word] in [[link] for link in links]
        assert "evil.example" not in status.text
        assert "@" not in status.text
