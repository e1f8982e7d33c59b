"""Documents of every kind, whole and broken, through the parser."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsuzuki.collectors.feeds.documents import document
from tsuzuki.collectors.feeds.documents.document import ENTRIES_MAX
from tsuzuki.collectors.feeds.documents.markup import plain_text
from tsuzuki.collectors.feeds.documents.structure import structure_of
from tsuzuki.collectors.feeds.entries import parse as parse_module
from tsuzuki.collectors.feeds.entries.entry import Attachment, Image, ParsedFeed
from tsuzuki.collectors.feeds.entries.parse import parse_feed
from tsuzuki.collectors.feeds.sandbox.feed_site import (
    Article,
    Enclosure,
    Feed,
    FeedSite,
    Format,
    MediaContent,
)
from tsuzuki.collectors.feeds.sandbox.feed_site.traps import TRAPS, add_trap, trap_path
from tsuzuki.outward.errors import SourceFailed, SourceRefused, SourceUnavailable
from tsuzuki.sandbox.exchange import StandInRequest

NOW = datetime(2026, 11, 17, 12, 0, tzinfo=UTC)
URL = "https://news.example/feeds/all.xml"
UNREADABLE_STATUS = {
    "not_found",
    "gone",
    "unauthorized",
    "forbidden",
    "too_many_requests",
    "unavailable",
    "unavailable_without_end",
}
"""Traps that are no bodies; fetching meets them."""

PACKED = {"gzip", "deflate", "raw_deflate", "chunked", "slow"}
"""Traps for the downloader."""


def parse(body: bytes | str, content_type: str = "application/rss+xml") -> ParsedFeed:
    encoded = body.encode() if isinstance(body, str) else body
    return parse_feed(encoded, url=URL, headers={"content-type": content_type}, now=NOW)


def rss(*entries: str, extra: str = "") -> str:
    items = "".join(f"<item>{entry}</item>" for entry in entries)
    return f"<rss version='2.0'><channel><title>T</title>{extra}{items}</channel></rss>"


def served(site: FeedSite, path: str) -> ParsedFeed:
    """What the site gives at a path, without a network between."""
    request = StandInRequest(
        method="GET", path=path, query={}, headers={}, body=b"", base_url=URL[:20]
    )
    response = site(request)
    assert response.stream is None
    return parse_feed(
        response.body,
        url=f"{URL[:20]}{path}",
        headers={"content-type": response.content_type},
        now=NOW,
    )


@pytest.mark.parametrize("kind", Format)
@pytest.mark.parametrize("name", sorted(set(TRAPS) - UNREADABLE_STATUS - PACKED))
def test_a_broken_feed_loses_none_of_its_articles(name: str, kind: Format) -> None:
    site = FeedSite()
    add_trap(site, name, format=kind)
    if not TRAPS[name].is_feed:
        with pytest.raises(SourceFailed):
            served(site, trap_path(name))
        return
    parsed = served(site, trap_path(name))
    urls = {entry.canonical_url for entry in parsed.entries}
    # An entry that is cut off before its link is not lost: it is recorded, and comes with the whole document.
    cut_off = [one for one in parsed.unusable if "is cut off inside it" in one.problem]
    assert len(urls) + len(cut_off) == TRAPS[name].items, parsed
    assert bool(cut_off) == (name == "truncated")
    assert all(entry.title for entry in parsed.entries)


@pytest.mark.parametrize("name", ["shift_jis", "euc_jp", "utf16", "charset_only_in_header"])
def test_text_in_any_charset_is_read(name: str) -> None:
    site = FeedSite()
    add_trap(site, name)
    assert {entry.title for entry in served(site, trap_path(name)).entries} == {"川に橋"}


@pytest.mark.parametrize("kind", Format)
def test_everything_a_feed_says_is_kept(kind: Format) -> None:
    site = FeedSite()
    pdf = Enclosure(url="https://news.example/report.pdf")
    picture = MediaContent(url="https://news.example/bridge.png", title="The bridge")
    article = Article(
        title="A <b>new</b> bridge",
        link="https://news.example/bridge?a=1&b=2",
        guid="tag:news.example,2026:1",
        published=datetime(2026, 2, 1, 9, tzinfo=UTC),
        authors=("Ann Lee",),
        categories=("tram", "city"),
        summary="Short.",
        content="<p>Trams &amp; bicycles</p><p>cross it.</p>",
        enclosures=(pdf,) if kind is not Format.RSS1 else (),
        media=(picture,),
    )
    feed = site.add_feed(Feed(title="Works", format=kind), [article])
    parsed = served(site, feed.path)
    assert parsed.title == "Works"
    (entry,) = parsed.entries
    assert entry.url == "https://news.example/bridge?a=1&b=2"
    assert entry.published_at == datetime(2026, 2, 1, 9, tzinfo=UTC)
    assert (entry.author, entry.categories) == ("Ann Lee", ("tram", "city"))
    assert entry.excerpt == "Trams & bicycles cross it."
    assert entry.image is not None
    assert entry.image.url == "https://news.example/bridge.png"
    if kind is not Format.RSS1:
        assert entry.attachments == (Attachment(url=pdf.url, media_type="application/pdf"),)


def test_the_attached_picture_is_the_image_and_no_attachment() -> None:
    (entry,) = parse(
        rss(
            "<title>A</title><link>https://a.example/1</link>"
            "<enclosure url='/one.png' type='image/png' length='1'/>"
            "<enclosure url='one.pdf' type='application/pdf' length='1'/>"
        )
    ).entries
    assert entry.image == Image(url="https://news.example/one.png")
    assert [one.url for one in entry.attachments] == ["https://news.example/feeds/one.pdf"]


@pytest.mark.parametrize(
    ("entry", "url"),
    [
        ("<link>https://a.example/1</link>", "https://a.example/1"),
        ("<link> https://a.example/1\n </link>", "https://a.example/1"),
        ("<link>/1</link>", "https://news.example/1"),
        ("<guid>https://a.example/1</guid>", "https://a.example/1"),
        ("<guid isPermaLink='false'>https://a.example/1</guid>", "https://a.example/1"),
        ("<link>mailto:x@a.example</link><guid>https://a.example/1</guid>", "https://a.example/1"),
        ("<link></link><guid>https://a.example/1</guid>", "https://a.example/1"),
    ],
)
def test_the_link_is_the_url_or_else_the_guid(entry: str, url: str) -> None:
    assert [one.url for one in parse(rss(f"<title>A</title>{entry}")).entries] == [url]


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("", "it has no link, and its guid is not a link"),
        ("<guid isPermaLink='false'>17</guid>", "it has no link, and its guid is not a link"),
        ("<link>javascript:alert(1)</link>", "its link is not an http(s) address"),
        ("<link>https://</link>", "its link is the feed itself"),
        ("<link>https://[::1/x</link>", "it has no link, and its guid is not a link"),
        ("<link>https://a.example:99999/x</link>", "its link is not an http(s) address"),
        ("<link>https://me:pw@a.example/x</link>", "its link contains a user name or password"),
        (f"<link>https://a.example/{'x' * 2000}</link>", "its link is longer than 2000 bytes"),
        (
            "<link>https://a.example/\u200b</link>",
            "its link contains invalid characters",
        ),
    ],
)
def test_an_entry_without_a_usable_link_is_recorded(entry: str, problem: str) -> None:
    good = "<title>Good</title><link>https://a.example/good</link>"
    parsed = parse(rss(f"<title>Bad</title>{entry}", good))
    assert [one.title for one in parsed.entries] == ["Good"]
    assert [(one.title, one.problem) for one in parsed.unusable] == [("Bad", problem)]


def test_without_a_title_the_first_words_are_it() -> None:
    words = "Trams cross the new bridge. " * 10
    (entry,) = parse(
        rss(f"<link>https://a.example/1</link><description>{words}</description>")
    ).entries
    assert entry.title.startswith("Trams cross the new bridge.")
    assert entry.title.endswith("…")
    assert len(entry.title) <= 80


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Mon, 02 Feb 2026 09:00:00 +0900", datetime(2026, 2, 2, 0, 0, tzinfo=UTC)),
        ("2026/01/02 03:04", datetime(2026, 1, 2, 3, 4, tzinfo=UTC)),
        ("2026年1月2日", datetime(2026, 1, 2, tzinfo=UTC)),
        ("令和8年4月1日", datetime(2026, 4, 1, tzinfo=UTC)),
        ("Wed, 18 Nov 2026 06:00:00 GMT", NOW),
        ("Tue, 01 Jan 2199 00:00:00 GMT", None),
        ("Thu, 01 Jan 1970 00:00:00 GMT", None),
        ("soon", None),
        ("2026/13/45", None),
    ],
)
def test_dates_in_any_form(said: str, expected: datetime | None) -> None:
    entry = f"<title>A</title><link>https://a.example/1</link><pubDate>{said}</pubDate>"
    assert parse(rss(entry)).entries[0].published_at == expected


@pytest.mark.parametrize(
    "damage",
    ["&#99999999;", "&#xD800;", "&#0;", "&nosuch;", "&", "<b", "\x0b", "<![CDATA[x", "&#x;", "]]>"],
)
def test_text_that_no_parser_likes_loses_no_other_entry(damage: str) -> None:
    bad = f"<title>Bad {damage}</title><link>https://a.example/bad</link>"
    good = [f"<title>G{n}</title><link>https://a.example/{n}</link>" for n in range(2)]
    parsed = parse(rss(good[0], bad, good[1]))
    urls = {entry.url for entry in parsed.entries}
    assert "https://a.example/0" in urls
    if damage != "<![CDATA[x":  # it swallows the rest by definition
        assert {"https://a.example/1", "https://a.example/bad"} <= urls


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"", SourceUnavailable),
        (b"  \n", SourceUnavailable),
        (b"<!DOCTYPE html><html><body>Error</body></html>", SourceUnavailable),
        (b"<html><item><title>x</title></item></html>", SourceUnavailable),
        (b'{"version": "https://jsonfeed.org/version/1.1", "items": []}', SourceRefused),
        (b"Not found", SourceRefused),
        (b"\x89PNG\r\n\x1a\n\x00\x00", SourceRefused),
        (b"/etc/passwd", SourceRefused),
        (b"https://news.example/feed", SourceRefused),
    ],
)
def test_what_is_no_feed_is_refused(body: bytes, error: type[SourceFailed]) -> None:
    with pytest.raises(error):
        parse(body, "text/html")


def test_an_empty_feed_is_a_feed() -> None:
    assert parse(rss()).entries == []


def test_a_page_that_names_its_feed_is_told() -> None:
    page = (
        "<!doctype html><html><head><link rel=alternate type='application/rss+xml' "
        "href='/rss.xml?key=s3cret'></head></html>"
    )
    with pytest.raises(SourceUnavailable) as raised:
        parse(page)
    assert "Did you mean https://news.example/rss.xml?…?" in str(raised.value.hint)


def test_a_document_made_to_fill_the_memory_is_refused() -> None:
    with pytest.raises(SourceRefused) as raised:
        parse(rss(*[""] * (ENTRIES_MAX + 1)))
    assert raised.value.specific_code == "too_large"


RSS1 = (
    "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://purl.org/rss/1.0/'>"
    "<channel><title>T</title></channel>{}</rdf:RDF>"
)
ATOM = "<?xml version='1.0'?><feed xmlns='http://www.w3.org/2005/Atom'><title>T</title>{}</feed>"


@pytest.mark.parametrize(
    ("frame", "entry"),
    [
        (rss(extra="{}"), "<item><title>{0}</title><link>https://a.example/{0}0</link></item>"),
        (rss(extra="{}"), "<item><link>https://a.example/{0}0</link><title>0{0} 橋</title></item>"),
        (
            rss(extra="{}"),
            "<item><title>{0}</title><link>https://a.example/{0}0</link>"
            "<description><![CDATA[<item>橋</item>]]></description></item>",
        ),
        (RSS1, "<item><title>{0}</title><link>https://a.example/{0}0</link></item>"),
        (ATOM, "<entry><title>{0}</title><link href='https://a.example/{0}0'/></entry>"),
    ],
    ids=["rss", "link first", "cdata", "rdf", "atom"],
)
def test_of_a_document_that_ends_anywhere_the_whole_entries_are_taken(
    frame: str, entry: str
) -> None:
    whole = frame.format("".join(entry.format(n) for n in range(3))).encode()
    for end in range(whole.index(b"</title>"), len(whole) - 1):
        body = whole[:end]
        closing = b"</entry>" if b"<entry>" in whole else b"</item>"
        complete = body.replace(b"<item>\xe6\xa9\x8b</item>", b"").count(closing)
        if not complete:
            with pytest.raises(SourceUnavailable) as raised:
                parse(body)
            assert raised.value.specific_code == "cut_off"
            continue
        parsed = parse(body)
        assert [one.url for one in parsed.entries] == [
            f"https://a.example/{number}0" for number in range(complete)
        ], body[-60:]
        assert parsed.is_cut_off
        assert len(parsed.unusable) <= 1
    assert not parse(whole).is_cut_off


@pytest.mark.parametrize(
    "before",
    [
        "<!-- <html><head><title>Feed</title></head><body> -->",
        "<?xml version='1.0'?><!-- <!DOCTYPE html> generated -->\n<?xml-stylesheet href='x'?>",
        "<!doctype html>",
    ],
)
def test_a_feed_behind_a_comment_with_html_is_a_feed(before: str) -> None:
    parsed = parse(before + rss("<title>A</title><link>https://a.example/1</link>"))
    assert [one.title for one in parsed.entries] == ["A"]


TITLES = {
    "ja": ("総務省、電波法の一部を改正する法律案を公表", "川に橋", "令和8年度地方交付税の算定結果", "お知らせ"),
    "zh": ("北京市发布新政策", "今天天气很好"),
    "ko": ("서울시 새 정책 발표",),
    "ru": ("Новый мост открыт в Москве",),
    "fr": ("Été à la mer : déjà fermé",),
    "de": ("Die Brücke über den Fluß ist geöffnet",),
    "en": ("“Quoted”, it is naïve",),
}  # fmt: skip
ENCODINGS = {
    "ja": ("euc_jp", "cp932", "iso2022_jp", "utf-8", "utf-16", "utf-16-le", "utf-8-sig"),
    "zh": ("gb18030", "utf-8"),
    "ko": ("cp949", "utf-8"),
    "ru": ("cp1251", "koi8_r", "utf-8"),
}
DECLARED = ("", "<?xml version='1.0' encoding='utf-8'?>", "<?xml version='1.0' encoding='nosuch'?>")


@pytest.mark.parametrize("is_language_said", [True, False])
@pytest.mark.parametrize("declared", DECLARED, ids=["none", "wrong", "unknown"])
@pytest.mark.parametrize(
    ("language", "encoding"),
    [(one, codec) for one in TITLES for codec in ENCODINGS.get(one, ("cp1252", "utf-8"))],
)
def test_titles_in_an_encoding_that_is_not_declared_are_read(
    language: str, encoding: str, declared: str, is_language_said: bool
) -> None:
    said = f"<language>{language}</language>" if is_language_said else ""
    for title in TITLES[language]:
        entry = f"<title>{title}</title><link>https://a.example/1</link>"
        body = (declared + rss(entry, extra=said)).encode(encoding)
        assert [one.title for one in parse(body).entries] == [title]


@pytest.mark.parametrize("content_type", ["text/xml; charset=iso-8859-1", "text/xml"])
def test_utf8_is_read_whatever_the_server_says(content_type: str) -> None:
    body = rss("<title>川に橋</title><link>https://a.example/1</link>")
    assert parse(body, content_type).entries[0].title == "川に橋"


def test_a_broken_character_leaves_the_others_of_the_document() -> None:
    good, bad = (
        "<title>川に橋</title><link>https://a.example/1</link>",
        "<link>https://a.example/2</link>",
    )
    body = rss(good, f"<title>橋が開通した@</title>{bad}").encode().replace(b"@", b"\xe6\x97")
    first, second = parse(body).entries
    assert (first.title, second.title) == ("川に橋", "橋が開通した\ufffd")


NOISE = bytes(range(0x80, 0xA0)) + b"\xfe\xff\x8d\x9d\x81"


def test_a_feed_that_cannot_be_read_is_refused() -> None:
    body = rss("<title>@</title><link>https://a.example/1</link>").encode()
    with pytest.raises(SourceRefused) as raised:
        parse(body.replace(b"@", NOISE))
    assert raised.value.specific_code == "encoding"


def test_an_entry_that_cannot_be_read_is_recorded_and_not_posted() -> None:
    good, bad = (f"<link>https://a.example/{number}</link>" for number in (1, 2))
    body = rss(f"<title>A bridge</title>{good}", f"<title>@</title>{bad}").encode()
    parsed = parse(body.replace(b"@", NOISE))
    assert [one.url for one in parsed.entries] == ["https://a.example/1"]
    assert len(parsed.unusable) == 1


URL_OF_GOOD = "https://a.example/good"
TEXT = st.text(st.characters(exclude_characters="<&"), max_size=30)


@settings(max_examples=100)
@given(st.lists(st.tuples(TEXT, st.binary(max_size=40)), min_size=1, max_size=4))
def test_any_bytes_in_an_entry_leave_the_others(bad: Iterable[tuple[str, bytes]]) -> None:
    """Bytes without markup: a `<` may rightly open what hides the rest."""
    parts = [b"<rss version='2.0'><channel>"]
    for number, (title, junk) in enumerate(bad):
        clean = junk.replace(b"<", b"").replace(b"\x00", b"")
        parts.append(b"<item><title>" + title.encode("utf-8", "replace") + clean + b"</title>")
        parts.append(f"<link>https://a.example/{number}</link></item>".encode())
    good = b"<item><title>G</title><link>https://a.example/good</link></item>"
    parsed = parse(b"".join([*parts, good, b"</channel></rss>"]))
    urls = [entry.url for entry in parsed.entries]
    expected = [*(f"https://a.example/{number}" for number in range(len(list(bad)))), URL_OF_GOOD]
    assert urls == [url for url in expected if url in urls]
    assert URL_OF_GOOD in urls
    # Those whose title cannot be read are recorded.
    assert len(urls) + len(parsed.unusable) == len(expected)


@pytest.mark.timeout(15)
def test_text_that_is_made_to_be_slow_is_not() -> None:
    """A rule that looks to the end from each place would take longer than the timeout."""
    assert plain_text("<br " * 250_000, is_markup=True)
    with pytest.raises(SourceUnavailable):
        parse(b"<html>" + b"<link " * 250_000)
    for made in (b"<!--", b"<![CDATA[", b"<?", b"<a b='", b'<a "', b"<a b=", b"<", b"</item "):
        structure_of(b"<rss>" + made * 50_000)
    assert list(document.single_entry_documents(b"<item>" * 250_000)) == []
    declared = b"".join(b'<!ENTITY e%d "x">' % number for number in range(100_000))
    assert document.without_bombs(declared + b"&e1; " * 200_000)
    long = b'<!ENTITY e "%b">' % (b"x" * 1_000) + b"&e; " * 2_000
    assert document.without_bombs(long + b"<!ENTITY" * 250_000).startswith(b"&e; ")


def test_entities_that_blow_a_document_up_are_taken_out_however_many_there_are() -> None:
    declared = b"<!ENTITY a \"%b\"><!ENTITY b '%b'>" % (b"x" * 1_000, b"y" * 1_000)
    used = b"&a;&b;&amp;"
    assert document.without_bombs(declared + used * 400) == declared + used * 400
    assert document.without_bombs(declared + used * 600) == used * 600


def _stumbles_over_the_whole(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The parser raises for a document of several entries. Returns the sizes of what it was given."""
    parsed_sizes: list[int] = []
    feedparser = parse_module._feedparser

    def stumble(body: bytes, *about: Any) -> Any:
        parsed_sizes.append(len(body))
        if body.count(b"<item>") > 1:
            raise ValueError("a hostile value")
        return feedparser(body, *about)

    monkeypatch.setattr(parse_module, "_feedparser", stumble)
    return parsed_sizes


def test_a_document_that_would_be_parsed_again_and_again_for_its_entries_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes = _stumbles_over_the_whole(monkeypatch)
    large = "<!--" + "x" * 200_000 + "-->"
    with pytest.raises(SourceRefused) as raised:
        parse(large + rss(*["<title>T</title><link>https://a.example/1</link>"] * 1_000))
    assert raised.value.specific_code == "too_large"
    assert len(sizes) == 2, "only the whole"


def test_entries_without_an_end_of_their_own_are_not_each_the_rest_of_the_document() -> None:
    with pytest.raises(SourceRefused):
        list(document.single_entry_documents(b"<item </item " * 10_000 + b" " * 100_000 + b">"))
    assert list(document.single_entry_documents(b"<item </item " * 10_000)) == []
