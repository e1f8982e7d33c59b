"""The feed site: feeds that other readers understand, conditional requests, articles that change."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import feedparser
import pytest
import trafilatura

from support.site_client import call, get
from tsuzuki.collectors.feeds.sandbox.feed_site import (
    Article,
    ArticlePage,
    Charset,
    Conditional,
    DateKind,
    Enclosure,
    EtagKind,
    Feed,
    FeedDelivery,
    FeedSite,
    Format,
    Later,
    MediaContent,
)
from tsuzuki.sandbox.faults import StandInFault
from tsuzuki.sandbox.server import StandIn

FULL = Article(
    title="橋 & <tram>",
    text="The bridge was opened.\n\nTrams cross it.",
    summary="A <b>bridge</b>",
    content="<p>The bridge</p>",
    guid="urn:bridge",
    published=datetime(2026, 4, 2, 3, 4, 5, tzinfo=UTC),
    authors=("Ann Lee",),
    categories=("bridges", "trams"),
    enclosures=(Enclosure(url="{base}/bridge.pdf", length=7),),
    media=(MediaContent(url="{base}/bridge.png", title="Bridge", description="A white bridge"),),
)


@pytest.fixture
def site() -> FeedSite:
    return FeedSite()


@pytest.fixture
def server(site: FeedSite) -> Iterator[StandIn]:
    with site.serve() as server:
        yield server


def parsed(server: StandIn, path: str = "/feed.xml") -> Any:
    answer = get(server, path)
    assert answer.status == 200
    return feedparser.parse(answer.body, response_headers=answer.lower_headers)


@pytest.mark.parametrize(
    ("kind", "version"),
    [(Format.RSS2, "rss20"), (Format.ATOM, "atom10"), (Format.RSS1, "rss10")],
)
def test_each_format_is_read_by_feedparser_without_an_error(
    site: FeedSite, server: StandIn, kind: Format, version: str
) -> None:
    site.add_feed(Feed(format=kind, language="ja", title="見本"), [FULL])
    found = parsed(server)
    assert (found.bozo, found.version, found.feed.title) == (False, version, "見本")
    (item,) = found.entries
    assert (item.id, item.link) == ("urn:bridge", f"{server.url}/articles/1")
    moment = item.updated_parsed if kind is Format.RSS1 else item.published_parsed
    assert moment[:6] == (2026, 4, 2, 3, 4, 5)
    assert (item.title, item.summary) == ("橋 & <tram>", "A <b>bridge</b>")
    assert item.content[-1].value == "<p>The bridge</p>"
    assert item.author == "Ann Lee"
    assert [tag.term for tag in item.tags] == ["bridges", "trams"]
    assert item.media_content[0]["url"] == f"{server.url}/bridge.png"
    if kind is not Format.RSS1:
        (enclosure,) = item.enclosures
        assert (enclosure.href, enclosure.length) == (f"{server.url}/bridge.pdf", "7")


def test_what_an_article_lacks_is_left_out(site: FeedSite, server: StandIn) -> None:
    site.add_feed(Feed(), [Article(title=None, guid=None, link=None, published=None)])
    (item,) = parsed(server).entries
    assert not {"title", "id", "link", "published"} & {*item}


def test_the_newest_come_first_and_old_ones_leave_the_feed(site: FeedSite, server: StandIn) -> None:
    site.add_feed(Feed(articles_max=2), [Article(title=title) for title in "abc"])
    assert [item.title for item in parsed(server).entries] == ["c", "b"]


def test_the_same_calls_make_the_same_bytes() -> None:
    bodies = []
    for _ in range(2):
        site = FeedSite()
        site.add_feed(Feed(link_base="https://news.example"), [FULL, Article(title="b")])
        site.edit_article("2", title="c")
        with site.serve() as server:
            answer = get(server, "/feed.xml", Host="news.example")
        bodies.append((answer.body, answer.headers["ETag"], answer.headers["Last-Modified"]))
    assert bodies[0] == bodies[1]


def validators(server: StandIn) -> dict[str, str]:
    headers = get(server, "/feed.xml").headers
    return {"If_None_Match": headers["ETag"], "If_Modified_Since": headers["Last-Modified"]}


@pytest.mark.parametrize("etag", [EtagKind.STRONG, EtagKind.WEAK])
def test_an_unchanged_feed_is_304_by_etag_and_by_date(
    site: FeedSite, server: StandIn, etag: EtagKind
) -> None:
    feed = site.add_feed(Feed(delivery=FeedDelivery(etag=etag)), [FULL])
    sent = validators(server)
    assert sent["If_None_Match"].startswith("W/") is (etag is EtagKind.WEAK)
    for name, value in sent.items():
        answer = get(server, feed.path, **{name: value})
        assert (answer.status, answer.body) == (304, b"")
    site.add_article(feed, Article(title="new"))
    for name, value in sent.items():
        assert get(server, feed.path, **{name: value}).status == 200


def test_the_etag_decides_over_the_date(site: FeedSite, server: StandIn) -> None:
    site.add_feed(Feed(), [FULL])
    sent = validators(server) | {"If_None_Match": '"another"'}
    assert get(server, "/feed.xml", **sent).status == 200


@pytest.mark.parametrize(
    ("delivery", "by_etag", "by_date", "after_change"),
    [
        (FeedDelivery(conditional=Conditional.ETAG_ONLY), 304, 200, 200),
        (FeedDelivery(conditional=Conditional.DATE_ONLY), 200, 304, 200),
        (FeedDelivery(conditional=Conditional.IGNORED), 200, 200, 200),
        (FeedDelivery(conditional=Conditional.ALWAYS_304), 304, 304, 304),
        (FeedDelivery(etag=EtagKind.FROZEN), 304, 304, 304),
        (FeedDelivery(last_modified=DateKind.ODD_FORMAT), 304, 304, 200),
    ],
    ids=str,
)
def test_servers_that_look_at_one_condition_or_lie(
    site: FeedSite,
    server: StandIn,
    delivery: FeedDelivery,
    by_etag: int,
    by_date: int,
    after_change: int,
) -> None:
    site.add_feed(Feed(delivery=delivery), [FULL])
    sent = validators(server)
    assert get(server, "/feed.xml", If_None_Match=sent["If_None_Match"]).status == by_etag
    assert get(server, "/feed.xml", If_Modified_Since=sent["If_Modified_Since"]).status == by_date
    site.edit_article("1", title="edited")
    assert get(server, "/feed.xml", **sent).status == after_change


def test_a_date_of_the_wrong_zone_hides_a_change(site: FeedSite, server: StandIn) -> None:
    delivery = FeedDelivery(etag=EtagKind.ABSENT, last_modified=DateKind.WRONG_ZONE)
    feed = site.add_feed(Feed(delivery=delivery), [FULL])
    since = get(server, feed.path).headers["Last-Modified"]
    site.add_article(feed, Article(title="new"))
    assert get(server, feed.path, If_Modified_Since=since).status == 304


def test_a_page_has_the_text_among_navigation(site: FeedSite, server: StandIn) -> None:
    site.add_feed(Feed(), [FULL])
    page = get(server, "/articles/1").body.decode()
    assert "<nav>" in page
    found = trafilatura.extract(page) or ""
    assert "The bridge was opened." in found
    assert "cookies" not in found


def test_a_page_is_found_with_a_slash_and_a_query(site: FeedSite, server: StandIn) -> None:
    site.add_feed(Feed(), [FULL])
    assert get(server, "/articles/1/?utm_source=rss").status == 200
    assert get(server, "/articles/2").status == 404


def test_an_edit_shows_in_the_page_and_in_each_feed(site: FeedSite, server: StandIn) -> None:
    article = site.add_article(site.add_feed(Feed()), FULL)
    site.list_article(site.add_feed(Feed(path="/other.xml")), article)
    site.edit_article(article, title="New title")
    assert b"New title" in get(server, article.path).body
    for path in ("/feed.xml", "/other.xml"):
        assert [item.title for item in parsed(server, path).entries] == ["New title"]


def test_a_page_becomes_ready_after_its_requests(site: FeedSite, server: StandIn) -> None:
    later = Later(after_requests=2, changes={"text": "Here it is."})
    article = site.add_article(site.add_feed(Feed()), Article(text="Wait.", later=later))
    texts = [b"Here it is." in get(server, article.path).body for _ in range(4)]
    assert texts == [False, False, True, True]
    assert site.page_requests(article) == 4


def test_a_moved_page_redirects_and_the_feed_knows_it(site: FeedSite, server: StandIn) -> None:
    article = site.add_article(site.add_feed(Feed()), FULL)
    site.move_article(article, "/new/place", status=308)
    answer = get(server, article.path)
    assert (answer.status, answer.headers["Location"]) == (308, "/new/place")
    assert get(server, "/new/place").status == 200
    assert parsed(server).entries[0].link == f"{server.url}/new/place"


def test_a_removed_article_is_gone(site: FeedSite, server: StandIn) -> None:
    article = site.add_article(site.add_feed(Feed()), FULL)
    site.remove_article(article)
    assert parsed(server).entries == []
    assert get(server, article.path).status == 410


def test_a_retry_after_and_a_required_header(site: FeedSite, server: StandIn) -> None:
    feed = site.add_feed(Feed(delivery=FeedDelivery(status=503, retry_after="120")))
    answer = get(server, feed.path)
    assert (answer.status, answer.headers["Retry-After"]) == (503, "120")
    site.edit_feed(feed, delivery=FeedDelivery(required={"User-Agent": "reader/*"}))
    assert get(server, feed.path).status == 403
    assert get(server, feed.path, User_Agent="reader/1").status == 200
    assert server.count(feed.path) == 3


def test_faults_of_the_kit_work_here_too(site: FeedSite, server: StandIn) -> None:
    site.add_feed(Feed())
    server.faults.add(StandInFault(path="/feed.xml", status=502))
    assert [get(server, "/feed.xml").status for _ in range(2)] == [502, 200]


def test_a_page_may_be_any_bytes(site: FeedSite, server: StandIn) -> None:
    page = ArticlePage(body=b"%PDF-", content_type="application/pdf")
    site.add_feed(Feed(), [Article(page=page)])
    answer = get(server, "/articles/1")
    assert (answer.body, answer.headers["Content-Type"]) == (b"%PDF-", "application/pdf")


def test_summary_and_content_may_be_cdata(site: FeedSite, server: StandIn) -> None:
    content = "<p>a & b ]]> c</p>"
    for kind in Format:
        feed = Feed(path=f"/{kind}", format=kind, cdata=True)
        site.add_feed(feed, [Article(summary="<b>x</b>", content=content)])
        assert b"<![CDATA[<b>x</b>]]>" in get(server, feed.path).body
        (item,) = parsed(server, feed.path).entries
        assert item.content[-1].value.replace("&gt;", ">").replace("&amp;", "&") == content


def test_an_edited_path_leaves_nothing_behind(site: FeedSite, server: StandIn) -> None:
    site.add_feed(Feed(), [FULL])
    site.edit_article("1", path="/橋 の")
    assert get(server, "/articles/1").status == 404
    assert get(server, "/%E6%A9%8B%20%E3%81%AE").status == 200


def test_a_location_that_is_not_escaped_is_sent_as_utf8(site: FeedSite, server: StandIn) -> None:
    site.add_redirect("/old", "/橋")
    assert get(server, "/old").headers["Location"].encode("latin-1").decode() == "/橋"


def test_a_refused_change_leaves_the_site_as_it_was(site: FeedSite, server: StandIn) -> None:
    site.add_feed(Feed(), [FULL, Article(title="b")])
    site.add_feed(Feed(path="/other.xml"))
    before = get(server, "/feed.xml").body
    for wrong in (
        lambda: site.edit_feed("/feed.xml", path="/other.xml"),
        lambda: site.edit_feed("/feed.xml", path="no-slash"),
        lambda: site.edit_article("1", path="/articles/2"),
        lambda: site.move_article("1", "/articles/2"),
        lambda: site.add_article("/feed.xml", Article(path="/articles/1")),
    ):
        with pytest.raises(ValueError, match=r"already|slash"):
            wrong()
    assert get(server, "/feed.xml").body == before
    assert get(server, "/articles/1").status == 200


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: FeedDelivery(status=99),
        lambda: FeedDelivery(chunk_bytes=0),
        lambda: FeedDelivery(pause_seconds=-1),
        lambda: Charset(codec="klingon"),
    ],
)
def test_a_value_that_cannot_be_served_is_refused_when_it_is_made(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"status|chunk_bytes|codec"):
        wrong()


def test_an_assigned_name_is_a_free_one(site: FeedSite) -> None:
    feed = site.add_feed(Feed(), [Article(name="2")])
    assert site.add_article(feed, Article()).name == "3"


def test_names_and_paths_are_given_once(site: FeedSite) -> None:
    feed = site.add_feed(Feed(), [Article(name="a")])
    with pytest.raises(ValueError, match="already"):
        site.add_article(feed, Article(name="a"))
    with pytest.raises(ValueError, match="already"):
        site.add_feed(Feed())
    with pytest.raises(ValueError, match="never changes"):
        site.edit_article("a", name="b")


def test_other_methods_are_not_allowed(server: StandIn, site: FeedSite) -> None:
    site.add_feed(Feed())
    assert call(server, "POST", "/feed.xml").status == 405
    head = call(server, "HEAD", "/feed.xml")
    assert (head.status, head.body) == (200, b"")
    assert int(head.headers["Content-Length"]) > 0
