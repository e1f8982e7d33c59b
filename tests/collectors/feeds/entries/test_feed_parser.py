"""Parsing in a process of its own: what comes back, and what documents that are made to be slow cost."""

from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime

import pytest

from collectors.feeds.fetching_fixture import Fetching
from tsuzuki.collectors.feeds.entries import feed_parser
from tsuzuki.collectors.feeds.entries.entry import ParsedFeed
from tsuzuki.collectors.feeds.entries.feed_parser import SECONDS_MIN, SLOW_MAX, FeedParser
from tsuzuki.collectors.feeds.entries.parse import parse_feed
from tsuzuki.collectors.feeds.sandbox.feed_site import Feed, FeedDelivery, FeedSite
from tsuzuki.engine.run_context import RunStopped
from tsuzuki.outward.errors import SourceRefused, SourceUnavailable

NOW = datetime(2026, 11, 17, 12, 0, tzinfo=UTC)
URL = "https://news.example/feeds/all.xml"
ENTRY = (
    "<item><title>橋 {0}</title><link>https://a.example/{0}</link><guid>{0}</guid><category>c</category>"
    "<pubDate>Mon, 02 Feb 2026 09:00:00 JST</pubDate><description>Trams cross it.</description>"
    "<enclosure url='https://a.example/{0}.pdf' type='application/pdf'/>"
    "<enclosure url='https://a.example/{0}.png' type='image/png'/></item>"
)


def rss(inner: str) -> bytes:
    return f"<rss version='2.0'><channel><title>T</title>{inner}</channel></rss>".encode()


GOOD = rss("".join(ENTRY.format(number) for number in range(3)))
LONG = rss("".join(ENTRY.format(number) for number in range(2_000)))


@pytest.fixture(scope="module")
def parser() -> Iterator[FeedParser]:
    with FeedParser() as parser:
        yield parser


def parse(parser: FeedParser, body: bytes) -> ParsedFeed:
    return parser.parse(body, url=URL, headers={"content-type": "text/xml"}, now=NOW)


@pytest.mark.parametrize(
    "body", [GOOD, GOOD[:-60], rss(""), rss("<item><title>No link</title></item>")]
)
def test_what_comes_back_is_what_was_parsed(parser: FeedParser, body: bytes) -> None:
    expected = parse_feed(body, url=URL, headers={"content-type": "text/xml"}, now=NOW)
    assert parse(parser, body) == expected


@pytest.mark.parametrize(
    ("body", "error", "code"),
    [
        (b"", SourceUnavailable, "source_unwell"),
        (b"<html></html>", SourceUnavailable, "not_a_feed"),
        (b"{}", SourceRefused, "not_a_feed"),
        (GOOD[:80], SourceUnavailable, "cut_off"),
    ],
)
def test_a_failure_comes_back_as_it_was(
    parser: FeedParser, body: bytes, error: type[Exception], code: str
) -> None:
    with pytest.raises(error) as raised:
        parse(parser, body)
    assert getattr(raised.value, "specific_code", None) == code


def hostile() -> dict[str, bytes]:
    item = "<title>A</title><link>https://a.example/1</link></item>"
    many = " ".join(f"a{number}='x'" for number in range(100_000))
    declared = "".join(f"<!ENTITY e{number} 'x'>" for number in range(100_000))
    used = "".join(f"&e{number};" for number in range(100_000))
    nested = "".join(f"<!ENTITY n{n} '{f'&n{n - 1};' * 10}'>" for n in range(1, 12))
    return {
        "attributes": rss(f"<item {many}>{item}"),
        "attributes of broken markup": rss(f"<item {many}>&{item}"),
        "names": rss(f"<item {many.replace('a', 'xmlns:a')}>{item}"),
        "depth": rss(f"<item>{'<a>' * 100_000}{'</a>' * 100_000}{item}"),
        "entities": f"<!DOCTYPE rss [{declared}]>".encode() + rss(f"<item>{used}{item}"),
        "nested entities": f"<!DOCTYPE rss [<!ENTITY n0 'x'>{nested}]>".encode()
        + rss(f"<item><description>&n11;</description>{item}"),
    }


REFUSED = {"attributes", "attributes of broken markup", "names", "depth"}


@pytest.mark.parametrize("name", hostile())
@pytest.mark.timeout(60)
def test_a_document_that_is_made_to_be_slow_is_refused_or_harmless(
    parser: FeedParser, name: str
) -> None:
    is_refused = name in REFUSED
    with pytest.raises(SourceRefused) if is_refused else nullcontext() as raised:
        assert [one.title for one in parse(parser, hostile()[name]).entries] == ["A"]
    if raised is not None:
        assert raised.value.specific_code == "too_large"
    assert parser._slow == 0, "it was stopped before it used up its time"
    assert len(parse(parser, GOOD).entries) == 3


@pytest.fixture
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every document of this length takes longer than it may."""
    monkeypatch.setattr(feed_parser, "SECONDS_PER_MEGABYTE", 0.0)


@pytest.mark.slow
@pytest.mark.usefixtures("no_time")
def test_a_document_that_uses_up_its_processor_time_ends_only_its_process() -> None:
    with FeedParser(seconds_min=0.03) as parser:
        with pytest.raises(SourceRefused) as raised:
            parse(parser, LONG)
        assert (raised.value.specific_code, parser._slow) == ("too_large", 1)
        parser._seconds_min = SECONDS_MIN
        assert len(parse(parser, LONG).entries) == 2_000


def test_after_some_slow_documents_the_next_have_less_time() -> None:
    parser = FeedParser()
    megabytes = b"x" * 5_000_000
    first = parser._seconds_of(megabytes)
    parser._slow = SLOW_MAX
    assert first > SECONDS_MIN > parser._seconds_of(megabytes)


def test_a_run_that_is_to_stop_does_not_wait_for_the_document(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tsuzuki.collectors.feeds.documents.process.CHECK_SECONDS", 0.001)

    def stop() -> None:
        raise RunStopped

    with FeedParser() as parser:
        with pytest.raises(RunStopped):
            parser.parse(LONG, url=URL, headers={}, now=NOW, while_waiting=stop)
        assert parser._process is None
        assert len(parse(parser, GOOD).entries) == 3


class PatientParser(FeedParser):
    """Stays when the run is over."""

    def __exit__(self, *_exc: object) -> None:
        super().close()

    def close(self) -> None:
        """The test closes it."""


@pytest.mark.slow
@pytest.mark.usefixtures("no_time")
def test_slow_documents_do_not_keep_a_run_from_the_other_feeds(
    fetching: Fetching, site: FeedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = rss("".join(ENTRY.format(number) for number in range(9_000)))
    for number in range(5):
        body = GOOD if number == 4 else slow
        delivery = FeedDelivery(body=body, content_type="application/rss+xml")
        site.add_feed(Feed(path=f"/{number}.xml", delivery=delivery), [])
    fetching.section = {"concurrency": 1}
    with PatientParser(seconds_min=0.2) as parser:
        monkeypatch.setattr("tsuzuki.collectors.feeds.fetching.fetch.FeedParser", lambda: parser)
        summary = fetching.fetch(**{f"n{number}": f"/{number}.xml" for number in range(5)})
        assert parser._slow == 4
    assert {one.specific_code for one in summary.failures.values()} == {"too_large"}
    assert (len(summary.failures), summary.new_items) == (4, 3)
