"""The traps of the feed site: each is what its name says, and other readers agree on what is in it."""

import http.client
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from urllib.parse import quote, urljoin, urlsplit

import feedparser
import pytest

from support.site_client import get
from tsuzuki.collectors.feeds.sandbox.feed_site import Damage, Feed, FeedSite, Format, demo
from tsuzuki.collectors.feeds.sandbox.feed_site.bombs import double_gzip_bomb, gzip_bomb
from tsuzuki.collectors.feeds.sandbox.feed_site.damage import damage
from tsuzuki.collectors.feeds.sandbox.feed_site.traps import (
    FILE_TRAPS,
    PAGE_TRAPS,
    REDIRECTS,
    TRAPS,
    add_many_articles,
    add_trap,
    trap_path,
)
from tsuzuki.sandbox.server import StandIn

READ_BY_FEEDPARSER = [
    name for name in TRAPS if name not in ("quadratic_bomb", "raw_deflate", "slow")
]
"""feedparser expands the quadratic bomb, to 1 GB; the two others are read as what they are below."""

UNPACKED = {"gzip": 31, "deflate": 15, "raw_deflate": -15}


@pytest.fixture(scope="module")
def site() -> FeedSite:
    return demo.make_demo()


@pytest.fixture(scope="module")
def server(site: FeedSite) -> Iterator[StandIn]:
    with site.serve() as server:
        yield server


@pytest.mark.parametrize("name", READ_BY_FEEDPARSER)
def test_feedparser_finds_both_articles_wherever_there_is_a_feed(
    server: StandIn, name: str
) -> None:
    answer = get(server, trap_path(name))
    found = feedparser.parse(answer.body, response_headers=answer.lower_headers)
    assert len(found.entries) == (2 if TRAPS[name].items else 0)
    assert bool(found.get("version")) is TRAPS[name].is_feed
    assert answer.status == TRAPS[name].feed.get("delivery", Feed().delivery).status


@pytest.mark.parametrize("name", ["shift_jis", "euc_jp", "utf16", "utf8_bom"])
def test_a_charset_says_the_same_in_other_bytes(server: StandIn, name: str) -> None:
    answer = get(server, trap_path(name))
    assert feedparser.parse(answer.body).entries[0].title == "川に橋"
    assert "川に橋".encode() not in answer.body or name == "utf8_bom"


@pytest.mark.parametrize("name", [*UNPACKED])
def test_compression_is_for_those_that_accept_it(server: StandIn, name: str) -> None:
    plain = get(server, trap_path(name))
    packed = get(server, trap_path(name), Accept_Encoding="gzip, deflate")
    assert plain.headers["Content-Encoding"] is None
    assert packed.headers["Content-Encoding"] == name.removeprefix("raw_")
    assert zlib.decompress(packed.body, UNPACKED[name]) == plain.body


@pytest.mark.parametrize("format_", [*Format])
def test_every_damage_can_be_done_to_every_format(format_: Format) -> None:
    site = FeedSite()
    with site.serve() as server:
        for kind in Damage:
            feed = add_trap(site, kind.value, format=format_)
            damaged = get(server, feed.path).body.decode()
            site.edit_feed(feed, damages=())
            whole = get(server, feed.path).body.decode()
            assert damage(whole, kind).replace("{base}", server.url) == damaged != whole


def test_redirects_lead_where_they_say(server: StandIn) -> None:
    for path, (status, location) in REDIRECTS.items():
        answer = get(server, path)
        assert answer.status == status
        sent = answer.headers["Location"].encode("latin-1").decode()
        assert sent == location.replace("{base}", server.url)


def read_some(server: StandIn, path: str, size: int) -> tuple[bytes, http.client.HTTPMessage]:
    """The first bytes of a body; then the client goes away."""
    parts = urlsplit(server.url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=10)
    connection.request("GET", path)
    response = connection.getresponse()
    body = response.read(size)
    response.close()
    connection.close()
    return body, response.headers


@pytest.mark.parametrize(
    ("path", "length"),
    [
        ("/traps/huge.xml", 10**10),
        ("/articles/page_huge", 10**10),
        ("/files/pdf_huge.pdf", 10**10),
        ("/traps/endless.xml", None),
        ("/articles/page_endless", None),
        ("/files/pdf_endless.pdf", None),
    ],
)
def test_a_huge_body_is_a_stream_that_can_be_left(
    site: FeedSite, server: StandIn, path: str, length: int | None
) -> None:
    body, headers = read_some(server, path, 500_000)
    assert len(body) == 500_000
    assert headers["Content-Length"] == (None if length is None else str(length))
    assert 500_000 <= site.streamed_bytes(path) < 100_000_000


@pytest.mark.parametrize("path", ["/traps/gzip_bomb.xml", "/articles/page_gzip_bomb"])
def test_a_gzip_bomb_unpacks_to_a_thousand_times_its_size(server: StandIn, path: str) -> None:
    body, headers = read_some(server, path, 30_000)
    assert headers["Content-Encoding"] == "gzip"
    unpacked = zlib.decompressobj(31).decompress(body)
    assert len(unpacked) > 900 * len(body)
    assert unpacked.startswith(b"<?xml")


def test_a_whole_gzip_bomb_is_valid() -> None:
    packed = b"".join(gzip_bomb(5_000_000).chunks())
    assert len(zlib.decompress(packed, 31)) == 5_000_000


def test_a_double_bomb_is_smaller_still() -> None:
    twice = b"".join(double_gzip_bomb(100_000_000).chunks())
    assert len(twice) < 5_000
    assert len(zlib.decompress(zlib.decompress(twice, 31), 31)) == 100_000_000


def test_a_feed_of_ten_thousand_items_is_one() -> None:
    site = FeedSite()
    add_many_articles(site, site.add_feed(Feed()), 10_000)
    with site.serve() as server:
        body = get(server, "/feed.xml").body
    assert body.count(b"<item>") == 10_000


@pytest.mark.parametrize("name", [*PAGE_TRAPS, *FILE_TRAPS, "injection"])
def test_each_page_trap_has_a_feed_with_one_article(server: StandIn, name: str) -> None:
    found = feedparser.parse(get(server, trap_path(name)).body)
    assert [item.link for item in found.entries] == [f"{server.url}/articles/{name}"]


@pytest.mark.parametrize("name", ["relative_links", "spaces_in_link", "unicode_link"])
def test_an_odd_link_leads_to_its_page(server: StandIn, name: str) -> None:
    link = feedparser.parse(get(server, trap_path(name)).body).entries[1].link
    path = urlsplit(urljoin(f"{server.url}{trap_path(name)}", link)).path
    assert b"Trams run every ten minutes." in get(server, quote(path)).body


def test_an_attachment_that_is_redirected_is_read(server: StandIn) -> None:
    location = get(server, "/files/pdf_redirected.pdf").headers["Location"]
    answer = get(server, location)
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.body.startswith(b"%PDF-")


def test_an_injection_is_in_the_page(server: StandIn) -> None:
    assert b"https://evil.example/now" in get(server, "/articles/injection").body
    assert b"display:none" in get(server, "/articles/page_hidden_injection").body


JUDGED = ("人事異動", "準備中", "personnel", "coming soon")


def test_the_demo_in_japanese_has_the_shape_of_press_releases(server: StandIn) -> None:
    found = feedparser.parse(get(server, demo.JAPANESE_FEED).body)
    assert (found.version, found.bozo, len(found.entries)) == ("rss10", False, 6)
    assert found.entries[-1].updated == "2026-04-01T14:00:00+09:00"
    pages = [get(server, urlsplit(item.link).path).body.decode() for item in found.entries]
    marked = [[word for word in JUDGED if word in page] for page in pages]
    assert marked == [[], [], ["人事異動"], ["準備中"], [], []]
    assert [page.count(".pdf") for page in pages] == [0, 1, 0, 0, 2, 1]


def test_the_pages_of_the_demo_that_wait_or_change_do_so() -> None:
    site = demo.make_demo(traps=False)
    with site.serve() as server:
        for article in site.articles(demo.JAPANESE_FEED) + site.articles(demo.ENGLISH_FEED):
            pages = [get(server, article.path).body for _ in range(4)]
            assert len(set(pages)) == (2 if article.later else 1)
            assert not any(word.encode() in pages[-1] for word in ("準備中", "coming soon"))


def test_the_demo_in_english_is_in_two_feeds(server: StandIn) -> None:
    rss = feedparser.parse(get(server, demo.ENGLISH_FEED).body)
    atom = feedparser.parse(get(server, demo.ATOM_FEED).body)
    assert [rss.version, atom.version] == ["rss20", "atom10"]
    assert len(rss.entries) == 4
    assert {item.link for item in atom.entries} < {item.link for item in rss.entries}
    bridge = rss.entries[-1]
    assert bridge.published_parsed[:4] == datetime(2026, 4, 6, 8, tzinfo=UTC).timetuple()[:4]
    assert get(server, urlsplit(bridge.media_content[0]["url"]).path).body[1:4] == b"PNG"
    assert get(server, urlsplit(bridge.enclosures[0].href).path).status == 200
