"""Fetching feeds over real HTTP into real databases."""

from datetime import timedelta

import pytest

from collectors.feeds.fetching_fixture import Fetching
from support.moving_clock import MovingClock
from tsuzuki.collectors.feeds.fetching.fetch import CUT_OFF
from tsuzuki.collectors.feeds.sandbox.feed_site import (
    Article,
    Conditional,
    EtagKind,
    Feed,
    FeedDelivery,
    FeedSite,
)
from tsuzuki.collectors.feeds.tables import (
    WaitingState,
    feed_items,
    feed_unusable_entries,
    feeds,
    item_details,
    item_fingerprints,
    waiting_items,
)
from tsuzuki.engine.run_context import RunStopped
from tsuzuki.model.errors import Fenced
from tsuzuki.model.states import RunState

DAY = 86_400
BRIDGE = Article(title="A bridge opens", summary="Trams cross it.")
TRAM = Article(title="The tram timetable", summary="Every ten minutes.")


@pytest.fixture
def news(site: FeedSite) -> Feed:
    return site.add_feed(Feed(path="/news.xml", title="News"), [BRIDGE, TRAM])


def test_a_new_entry_becomes_an_item_that_waits(
    fetching: Fetching, news: Feed, clock: MovingClock
) -> None:
    summary = fetching.fetch(news="/news.xml")
    assert (summary.fetched, summary.new_items, dict(summary.failures)) == (1, 2, {})
    now = clock.now()
    first, second = fetching.items()
    assert first["title"] == "A bridge opens"  # the older one first
    assert first["url"] == f"{fetching.server.url}/articles/1"
    for item in (first, second):
        assert (item["status"], item["reason"], item["retry_count"]) == (0, None, 0)
        assert item["created_at"] == item["last_checked_at"] == now
    waiting = fetching.rows(waiting_items)
    assert [row["item_id"] for row in waiting] == [first["id"], second["id"]]
    assert {(row["state"], row["is_pending"], row["order_at"]) for row in waiting} == {
        (WaitingState.READY, False, now)
    }
    feed = fetching.feed()
    assert {row["feed_id"] for row in fetching.rows(item_details)} == {feed["id"]}
    assert len(fetching.rows(feed_items)) == 2
    assert (feed["title"], feed["first_good_at"], feed["failures"]) == ("News", now, 0)


def test_what_is_known_is_not_found_again(fetching: Fetching, news: Feed, site: FeedSite) -> None:
    fetching.fetch(news="/news.xml")
    site.add_article(news, Article(title="A third"))
    assert fetching.fetch(news="/news.xml").new_items == 1
    assert fetching.titles() == ["A bridge opens", "The tram timetable", "A third"]


def test_an_unchanged_feed_is_asked_with_the_words_of_its_server(
    fetching: Fetching, news: Feed
) -> None:
    fetching.fetch(news="/news.xml")
    etag = fetching.feed()["etag"]
    summary = fetching.fetch(news="/news.xml")
    assert (summary.fetched, summary.unchanged) == (1, 1)
    seen = fetching.server.requests[-1].request
    assert seen.headers["If-None-Match"] == etag
    assert seen.headers["If-Modified-Since"] == fetching.feed()["last_modified"]
    assert fetching.feed()["held_by_run"] is None


def test_the_whole_is_asked_for_now_and_then(
    fetching: Fetching, news: Feed, clock: MovingClock
) -> None:
    fetching.fetch(news="/news.xml")
    clock.advance(DAY)
    assert fetching.fetch(news="/news.xml").unchanged == 1
    assert "If-None-Match" not in fetching.server.requests[-1].request.headers
    assert fetching.feed()["full_at"] == clock.now()


@pytest.mark.parametrize(
    "delivery",
    [FeedDelivery(etag=EtagKind.FROZEN), FeedDelivery(conditional=Conditional.ALWAYS_304)],
    ids=["frozen_etag", "always_304"],
)
def test_a_server_that_hides_news_behind_304_is_found_out(
    fetching: Fetching, site: FeedSite, clock: MovingClock, delivery: FeedDelivery
) -> None:
    feed = site.add_feed(Feed(path="/news.xml", delivery=delivery), [BRIDGE])
    fetching.fetch(news="/news.xml")
    site.add_article(feed, TRAM)
    assert fetching.fetch(news="/news.xml").new_items == 0
    clock.advance(DAY)
    assert fetching.fetch(news="/news.xml").new_items == 1
    assert fetching.feed()["is_conditional"] is False
    site.add_article(feed, Article(title="A third"))
    assert fetching.fetch(news="/news.xml").new_items == 1


def test_an_honest_server_is_believed_after_a_full_fetch_with_news(
    fetching: Fetching, news: Feed, site: FeedSite, clock: MovingClock
) -> None:
    fetching.fetch(news="/news.xml")
    site.add_article(news, Article(title="A third"))
    clock.advance(DAY)
    assert fetching.fetch(news="/news.xml").new_items == 1
    assert fetching.feed()["is_conditional"] is True


def test_of_a_first_fetch_only_the_newest_are_worked_on(
    fetching: Fetching, news: Feed, site: FeedSite
) -> None:
    summary = fetching.fetch(news={"url": "/news.xml", "backfill": 1})
    assert (summary.new_items, summary.left_out) == (1, 1)
    older, newer = fetching.items()
    assert (older["status"], older["reason"], newer["status"]) == (3, None, 0)
    assert [row["item_id"] for row in fetching.rows(waiting_items)] == [newer["id"]]
    causes = [row["cause"] for row in fetching.rows(item_details)]
    assert causes == ["listed before the feed was added (backfill: 1)", None]
    site.add_article(news, Article(title="A third"))
    assert fetching.fetch(news={"url": "/news.xml", "backfill": 1}).new_items == 1


def test_filtered_entries_are_processed_with_their_cause(fetching: Fetching, news: Feed) -> None:
    news_options = {"url": "/news.xml", "exclude": {"title": ["tram"]}}
    summary = fetching.fetch(news=news_options)
    assert (summary.new_items, summary.left_out) == (1, 1)
    assert [row["cause"] for row in fetching.rows(item_details)] == [
        None,
        "excluded: its title matches tram",
    ]


def test_the_first_feed_owns_an_article_and_the_others_are_noted(
    fetching: Fetching, news: Feed, site: FeedSite
) -> None:
    fetching.fetch(news="/news.xml")
    other = site.add_feed(Feed(path="/city.xml"))
    site.list_article(other, "1")
    summary = fetching.fetch(job="another", city="/city.xml")
    assert summary.new_items == 0
    assert len(fetching.items()) == 2
    city = fetching.feed("city")["id"]
    assert city not in {row["feed_id"] for row in fetching.rows(item_details)}
    assert {row["item_id"] for row in fetching.rows(feed_items) if row["feed_id"] == city} == {
        fetching.items()[0]["id"]
    }


def test_what_another_feed_says_about_an_article_is_no_change(
    fetching: Fetching, news: Feed, site: FeedSite
) -> None:
    fetching.fetch(news="/news.xml")
    link = f"{fetching.server.url}/articles/1"
    words = Article(title="Bridge!", summary="Other words.", link=link, guid=None)
    site.add_feed(Feed(path="/city.xml"), [words])
    assert fetching.fetch(city="/city.xml", news="/news.xml").changed_items == 0


def test_a_changed_article_is_noted_and_its_item_is_untouched(
    fetching: Fetching, news: Feed, site: FeedSite, clock: MovingClock
) -> None:
    fetching.fetch(news="/news.xml")
    before = fetching.items()
    clock.advance(60)
    site.edit_article("1", summary="Bicycles too.")
    assert fetching.fetch(news="/news.xml").changed_items == 1
    changed, other = fetching.rows(item_details)
    assert (changed["changed_at"], changed["excerpt"]) == (clock.now(), "Bicycles too.")
    assert other["changed_at"] is None
    assert fetching.items() == before


@pytest.mark.parametrize("guid", ["tag:site.example,2026:1", "17", "{base}/?p=1", None])
def test_an_article_edited_five_times_is_one_item(
    fetching: Fetching, site: FeedSite, guid: str | None
) -> None:
    article = Article(title="One", link="http://old.example/2026/bridge", guid=guid)
    feed = site.add_feed(Feed(path="/news.xml"))
    one = site.add_article(feed, article)
    fetching.fetch(news="/news.xml")
    edits = (
        {"title": "One, corrected", "summary": "Other words."},
        {"link": "https://www.old.example/2026/bridge/?utm_source=rss"},
        {"guid": "another-guid"},
        {"link": "https://new.example/2026/bridge"},
        {"guid": "https://new.example/?p=1"},
    )
    for edit in edits:
        site.edit_article(one, **edit)
        assert fetching.fetch(news="/news.xml").new_items == 0, edit
    assert len(fetching.items()) == 1


def test_a_guid_repeated_in_a_document_is_no_identity(fetching: Fetching, site: FeedSite) -> None:
    feed = site.add_feed(Feed(path="/news.xml", articles_max=2), [])
    for number in range(2):
        site.add_article(feed, Article(title=f"Part {number}", guid="the-same"))
    assert fetching.fetch(news="/news.xml").new_items == 2
    # It stays distrusted, also when a document shows the guid once only.
    site.edit_feed(feed, articles_max=1)
    site.add_article(feed, Article(title="Part 2", guid="the-same"))
    assert fetching.fetch(news="/news.xml").new_items == 1


def test_unusable_entries_are_recorded_once_and_lose_no_other(
    fetching: Fetching, site: FeedSite
) -> None:
    site.add_feed(
        Feed(path="/news.xml"), [BRIDGE, Article(title="No link", link=None, guid="urn:x:1"), TRAM]
    )
    assert fetching.fetch(news="/news.xml").unusable == 1
    site.edit_feed("/news.xml", title="Touched")
    fetching.fetch(news="/news.xml")
    (row,) = fetching.rows(feed_unusable_entries)
    assert (row["title"], row["problem"]) == (
        "No link",
        "it has no link, and its guid is not a link",
    )
    assert len(fetching.items()) == 2


def test_a_failing_feed_counts_and_waits_longer_each_time(
    fetching: Fetching, news: Feed, site: FeedSite, clock: MovingClock
) -> None:
    fetching.fetch(news="/news.xml")
    site.edit_feed(news, delivery=FeedDelivery(status=500))
    started = clock.now()
    waits = []
    for _ in range(4):
        summary = fetching.fetch(news="/news.xml")
        assert "answered 500" in str(summary.failures["news"])
        feed = fetching.feed()
        until = feed["not_before"] or clock.now()
        waits.append((until - clock.now()).total_seconds())
        clock.advance(waits[-1])
    assert waits == [0, 300, 600, 1200]
    feed = fetching.feed()
    assert (feed["failing_since"], feed["failures"], feed["error"]) == (
        started,
        4,
        "127.0.0.1 answered 500",
    )
    site.edit_feed(news, delivery=FeedDelivery())
    fetching.fetch(news="/news.xml")
    feed = fetching.feed()
    assert (feed["failing_since"], feed["failures"], feed["error"]) == (None, 0, None)


def test_a_host_that_asks_for_a_pause_is_left_alone_until_then(
    fetching: Fetching, site: FeedSite, clock: MovingClock
) -> None:
    busy = FeedDelivery(status=429, retry_after="3600")
    for number in range(4):
        site.add_feed(Feed(path=f"/{number}.xml", delivery=busy), [])
    fetching.section = {"concurrency": 1}
    named = {f"n{number}": f"/{number}.xml" for number in range(4)}
    summary = fetching.fetch(**named)
    assert (len(summary.failures), summary.postponed) == (1, 3)
    assert len(fetching.server.requests) == 1
    until = clock.now() + timedelta(hours=1)
    assert {row["not_before"] for row in fetching.rows(feeds)} == {until}
    clock.advance(3_599)
    assert fetching.fetch(**named).fetched == 0
    assert len(fetching.server.requests) == 1


def test_a_permanent_redirect_moves_the_feed_and_a_temporary_one_does_not(
    fetching: Fetching, news: Feed, site: FeedSite
) -> None:
    site.add_redirect("/old.xml", "/news.xml", status=301)
    site.add_redirect("/detour.xml", "/news.xml", status=302)
    named = {"old": "/old.xml", "detour": "/detour.xml"}
    fetching.fetch(**named)
    moved = f"{fetching.server.url}/news.xml"
    assert (fetching.feed("old")["moved_to"], fetching.feed("detour")["moved_to"]) == (moved, None)
    fetching.fetch(**named)
    assert fetching.server.count("/old.xml") == 1
    assert fetching.server.count("/detour.xml") == 2


def test_a_feed_that_has_left_its_new_address_is_asked_at_the_old_one(
    fetching: Fetching, news: Feed, site: FeedSite
) -> None:
    site.add_redirect("/old.xml", "/news.xml", status=301)
    fetching.fetch(old="/old.xml")
    site.edit_feed(news, delivery=FeedDelivery(status=410))
    fetching.fetch(old="/old.xml")
    feed = fetching.feed("old")
    assert (feed["moved_to"], feed["ended_at"]) == (None, None)


def test_secrets_are_not_sent_where_the_feed_has_moved_to(
    fetching: Fetching, news: Feed, site: FeedSite
) -> None:
    port = fetching.server.url.rpartition(":")[2]
    site.add_redirect("/old.xml", f"http://localhost:{port}/news.xml", status=301)
    fetching.section = {
        "private_hosts": ["127.0.0.1", "localhost"],
        "requests": {"own": {"headers": {"X-Key": "s3cret"}, "cookies": {"a": "b"}}},
    }
    for _ in range(2):
        fetching.fetch(old={"url": "/old.xml", "request": "own"})
    asked = [seen.request for seen in fetching.server.requests]
    assert [(one.path, one.headers.get("X-Key")) for one in asked] == [
        ("/old.xml", "s3cret"),
        ("/news.xml", None),
        ("/news.xml", None),
    ]


def test_a_gone_feed_ends_and_is_asked_again_only_by_force(
    fetching: Fetching, news: Feed, site: FeedSite, clock: MovingClock
) -> None:
    site.edit_feed(news, delivery=FeedDelivery(status=410))
    fetching.fetch(news="/news.xml")
    assert fetching.feed()["ended_at"] == clock.now()
    clock.advance(DAY)
    fetching.fetch(news="/news.xml")
    assert len(fetching.server.requests) == 1
    site.edit_feed(news, delivery=FeedDelivery())
    assert fetching.fetch(how={"is_forced": True}, news="/news.xml").new_items == 2
    assert fetching.feed()["ended_at"] is None


def test_a_feed_is_asked_as_often_as_it_says(
    fetching: Fetching, news: Feed, clock: MovingClock
) -> None:
    hourly = {"url": "/news.xml", "fetch_every": 3600}
    for seconds, asked in ((0, 1), (1800, 1), (1790, 2)):
        clock.advance(seconds)
        fetching.fetch(news=hourly)
        assert len(fetching.server.requests) == asked


ENTRIES = [
    f"<item><title>{name}</title><link>https://a.example/{name}</link></item>".encode()
    for name in ("A", "B")
]
HEAD, END = b"<rss version='2.0'><channel><title>T</title>", b"</channel></rss>"


def document(body: bytes) -> FeedDelivery:
    return FeedDelivery(body=body, content_type="application/rss+xml")


def test_a_cut_off_document_gives_its_whole_entries_and_is_asked_for_again(
    fetching: Fetching, site: FeedSite
) -> None:
    cut = HEAD + ENTRIES[0] + ENTRIES[1][:40]
    site.add_feed(Feed(path="/news.xml", delivery=document(cut)), [])
    summary = fetching.fetch(news="/news.xml")
    assert (summary.new_items, summary.unusable, summary.cut_off) == (1, 1, 1)
    feed = fetching.feed()
    assert (feed["etag"], feed["last_modified"], feed["body_hash"]) == (None, None, None)
    assert (feed["error"], feed["failures"]) == (CUT_OFF.message, 0)
    assert any(CUT_OFF.message in line for line in fetching.log)
    site.edit_feed("/news.xml", delivery=document(HEAD + b"".join(ENTRIES) + END))
    summary = fetching.fetch(news="/news.xml")
    assert (summary.new_items, summary.cut_off) == (1, 0)
    assert fetching.titles() == ["A", "B"]
    assert fetching.feed()["error"] is None


@pytest.mark.parametrize("body", [HEAD, HEAD + ENTRIES[0][:50]], ids=["before", "inside"])
def test_a_document_that_is_cut_off_before_an_entry_is_whole_is_a_failure(
    fetching: Fetching, site: FeedSite, body: bytes
) -> None:
    site.add_feed(Feed(path="/news.xml", delivery=document(body)), [])
    summary = fetching.fetch(news="/news.xml")
    assert summary.failures["news"].specific_code == "cut_off"
    assert fetching.feed()["failures"] == 1
    site.edit_feed("/news.xml", delivery=document(HEAD + b"".join(ENTRIES) + END))
    assert fetching.fetch(news="/news.xml").new_items == 2


def test_titles_that_cannot_be_read_are_not_stored(fetching: Fetching, site: FeedSite) -> None:
    undeclared = "<item><title>川に橋</title><link>https://a.example/1</link></item>"
    body = HEAD + undeclared.encode("euc_jp") + END
    site.add_feed(Feed(path="/news.xml", delivery=document(body)), [])
    assert fetching.fetch(news="/news.xml").new_items == 1
    assert fetching.titles() == ["川に橋"]
    noise = bytes(range(0x80, 0xA0))
    body = HEAD + ENTRIES[0].replace(b"<title>A", b"<title>" + noise) + END
    site.edit_feed("/news.xml", delivery=document(body))
    summary = fetching.fetch(news="/news.xml")
    assert summary.failures["news"].specific_code == "encoding"
    assert fetching.titles() == ["川に橋"]


def test_rows_follow_the_options(fetching: Fetching, news: Feed, site: FeedSite) -> None:
    fetching.fetch(news="/news.xml", gone="/news.xml")
    site.add_feed(Feed(path="/moved.xml"), [])
    site.list_article("/moved.xml", "2")
    site.add_article("/moved.xml", Article(title="A third"))
    # The same feed at another address: what it lists was listed before, so what is new is worked on.
    summary = fetching.fetch(news={"url": "/moved.xml", "backfill": 0})
    assert (summary.new_items, summary.left_out) == (1, 0)
    assert fetching.feed("gone")["removed_at"] is not None
    # Another feed under the same name: a first fetch.
    site.add_feed(Feed(path="/other.xml"), [Article(title="Unknown")])
    summary = fetching.fetch(news={"url": "/other.xml", "backfill": 0})
    assert (summary.new_items, summary.left_out) == (0, 1)


def test_a_feed_that_another_run_fetches_is_left_to_it(fetching: Fetching, news: Feed) -> None:
    options = fetching.options(news="/news.xml")
    other = fetching.start()
    with fetching.fetcher(other, options) as fetcher:
        fetcher._open(None, is_forced=False)
        assert fetching.fetch(news="/news.xml").fetched == 0
        other.end(RunState.FAILED)
        assert fetching.fetch(news="/news.xml").new_items == 2


def test_a_run_that_was_taken_away_stores_nothing(fetching: Fetching, news: Feed) -> None:
    run = fetching.start()
    with fetching.fetcher(run, fetching.options(news="/news.xml")) as fetcher:
        requests = fetcher._open(None, is_forced=False)
        run.end(RunState.FAILED)
        with pytest.raises(Fenced):
            fetcher._store(requests[0], fetcher._downloads.ask(requests[0]))
    assert fetching.items() == []
    assert fetching.rows(item_fingerprints) == []


def test_a_run_that_is_asked_to_stop_stops(fetching: Fetching, news: Feed) -> None:
    run = fetching.start()
    with fetching.fetcher(run, fetching.options(news="/news.xml")) as fetcher:
        run.stop_signal.set()
        with pytest.raises(RunStopped):
            fetcher.fetch_due()


def test_an_unknown_name_of_request_settings_fails_its_feed_only(
    fetching: Fetching, news: Feed, site: FeedSite
) -> None:
    site.add_feed(Feed(path="/city.xml"), [Article(title="City")])
    fetching.section = {"requests": {"press": {}}}
    summary = fetching.fetch(news={"url": "/news.xml", "request": "pres"}, city="/city.xml")
    assert summary.new_items == 1
    assert 'Did you mean "press"?' in str(summary.failures["news"].hint)
