"""The feed site changed over HTTP, as a person with curl does."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import feedparser
import pytest

from support.site_client import call, get
from tsuzuki.collectors.feeds.sandbox.feed_site import Article, Feed, FeedSite
from tsuzuki.collectors.feeds.sandbox.feed_site.demo import make_demo
from tsuzuki.sandbox.server import StandIn


@pytest.fixture
def server() -> Iterator[StandIn]:
    site = FeedSite()
    site.add_feed(Feed(), [Article(name="bridge", title="A bridge")])
    with site.serve() as server:
        yield server


def order(server: StandIn, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    answer = call(server, method, f"/_sandbox{path}", body=json.dumps(body))
    return answer.status, json.loads(answer.body or "null")


def titles(server: StandIn, path: str = "/feed.xml") -> list[str]:
    return [item.title for item in feedparser.parse(get(server, path).body).entries]


def test_the_feeds_are_listed(server: StandIn) -> None:
    status, (feed,) = order(server, "GET", "/feeds")
    assert (status, feed["path"], feed["format"]) == (200, "/feed.xml", "rss2")
    assert feed["articles"] == [{"name": "bridge", "path": "/articles/bridge", "title": "A bridge"}]
    assert server.count() == 0


def test_articles_are_added_changed_moved_and_removed(server: StandIn) -> None:
    new = {"title": "A tram", "text": "It runs.", "published": "2026-04-01T09:00:00+09:00"}
    status, added = order(server, "POST", "/articles", {"feed": "/feed.xml", **new})
    assert (status, titles(server)) == (201, ["A tram", "A bridge"])
    order(server, "PATCH", f"/articles/{added['name']}", {"title": "Two trams"})
    assert titles(server) == ["Two trams", "A bridge"]
    order(server, "POST", "/articles/bridge/move", {"path": "/moved"})
    assert (get(server, "/articles/bridge").status, get(server, "/moved").status) == (301, 200)
    assert order(server, "DELETE", "/articles/bridge")[0] == 204
    assert (titles(server), get(server, "/moved").status) == (["Two trams"], 410)


def test_feeds_are_added_and_changed(server: StandIn) -> None:
    status, feed = order(server, "POST", "/feeds", {"path": "/a.atom", "format": "atom"})
    assert (status, feed["articles"]) == (201, [])
    changes = {"damages": ["truncated"], "delivery": {"status": 429, "retry_after": "7"}}
    assert order(server, "PATCH", "/feeds", {"path": "/a.atom", **changes})[0] == 200
    answer = get(server, "/a.atom")
    assert (answer.status, answer.headers["Retry-After"]) == (429, "7")


def test_parts_enclosures_and_redirects(server: StandIn) -> None:
    page = {"markup": "<hr>", "charset": {"codec": "cp932", "declared": "Shift_JIS"}}
    enclosures = [{"url": "https://news.example/a.pdf", "length": 3}]
    order(server, "PATCH", "/articles/bridge", {"page": page, "enclosures": enclosures})
    assert b'<meta charset="Shift_JIS">' in get(server, "/articles/bridge").body
    assert b'length="3"' in get(server, "/feed.xml").body
    redirect = {"path": "/old", "location": "file:///etc/passwd", "status": 307}
    assert order(server, "POST", "/redirects", redirect)[0] == 201
    assert get(server, "/old").headers["Location"] == "file:///etc/passwd"


def test_a_date_that_is_none_goes_into_the_feed_as_it_is(server: StandIn) -> None:
    order(server, "PATCH", "/articles/bridge", {"published": "some day"})
    assert b"<pubDate>some day</pubDate>" in get(server, "/feed.xml").body


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "told"),
    [
        ("POST", "/articles", {"feed": "/feed.xml", "titel": "x"}, 400, "did you mean title?"),
        ("POST", "/articles", {"feed": "/none.xml", "title": "x"}, 404, "/none.xml"),
        ("POST", "/articles", [], 400, "object"),
        ("POST", "/feeds", {"path": "/x", "format": "rss3"}, 400, "rss3"),
        ("POST", "/feeds", {"path": "/feed.xml"}, 400, "already"),
        ("PATCH", "/articles/none", {"title": "x"}, 404, "none"),
        ("POST", "/redirects", {"path": "/x"}, 400, "location is needed"),
        ("POST", "/articles", {"title": "x"}, 400, "feed is needed"),
        ("PATCH", "/feeds", {"title": "x"}, 400, "path is needed"),
        ("PATCH", "/feeds", {"path": "/feed.xml", "title": None}, 400, "title cannot be None"),
        ("PATCH", "/feeds", {"path": "/feed.xml", "articles_max": 1.5}, 400, "articles_max"),
        ("PATCH", "/feeds", {"path": "/feed.xml", "damages": "truncated"}, 400, "list"),
        ("PATCH", "/feeds", {"path": "/feed.xml", "charset": {"codec": "x"}}, 400, "codec"),
        ("PATCH", "/feeds", {"path": "/feed.xml", "delivery": {"status": 9}}, 400, "status"),
        ("PATCH", "/feeds", {"path": "/feed.xml", "delivery": {"status": "9"}}, 400, "status"),
        ("PATCH", "/articles/bridge", {"title": 5}, 400, "title cannot be 5"),
        ("PATCH", "/articles/bridge", {"path": "x"}, 400, "slash"),
        ("POST", "/articles/bridge/move", {"path": "/x", "status": "301"}, 400, "number"),
    ],
)
def test_bad_input_is_told_and_changes_nothing(
    server: StandIn, method: str, path: str, body: Any, status: int, told: str
) -> None:
    before = get(server, "/feed.xml").body
    answered, document = order(server, method, path, body)
    assert (answered, told in document["message"]) == (status, True), document
    assert get(server, "/feed.xml").body == before


GUIDE = Path(__file__).parents[4] / "docs" / "guide" / "sandbox.md"


def test_the_commands_of_the_guide_do_what_they_say() -> None:
    section = GUIDE.read_text(encoding="utf-8").partition("## Feeds")[2].partition("\n## ")[0]
    commands = [shlex.split(line) for line in section.splitlines() if line.startswith("curl ")]
    assert len(commands) > 5
    with make_demo(traps=False).serve() as server:
        for command in commands:
            options = dict(zip(command[1:-1:2], command[2:-1:2], strict=True))
            body = options.get("-d")
            method = options.get("-X", "GET" if body is None else "POST")
            answer = call(server, method, urlsplit(command[-1]).path, body=body)
            assert answer.status < 300, (command, answer)
        assert get(server, "/news.rdf").headers["Retry-After"] == "120"
        assert get(server, "/old.xml").status == 308
