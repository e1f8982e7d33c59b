"""What a feed site holds: feeds, articles with their pages, files.

Plain frozen values; `FeedSite` keeps them and serves them. In a feed, None leaves an element out, `ASSIGNED`
lets the site choose, and any other value is written as it is. `{base}` in a link, guid, text or location stands
for the address under which the site was asked.
"""

import codecs
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from tsuzuki.sandbox.exchange import Stream

from .damage import Damage
from .delivery import FeedDelivery

ASSIGNED: Final = "(assigned)"


class Format(StrEnum):
    RSS2 = "rss2"
    ATOM = "atom"
    RSS1 = "rss1"
    """RSS 1.0, which is RDF."""


@dataclass(frozen=True, kw_only=True)
class Charset:
    """How text becomes bytes, and what is said about it; the two may differ."""

    codec: str = "utf-8"
    declared: str | None = "utf-8"
    """In the XML declaration or the page's meta element."""

    header: str | None = None
    """In the Content-Type header."""

    def __post_init__(self) -> None:
        try:
            codecs.lookup(self.codec)
        except LookupError as problem:
            raise ValueError(f"there is no codec {self.codec}") from problem

    def encode(self, text: str) -> bytes:
        return text.encode(self.codec, errors="xmlcharrefreplace")


UTF8 = Charset()
UTF8_BOM = Charset(codec="utf-8-sig")
UTF16 = Charset(codec="utf-16", declared="utf-16")
SHIFT_JIS = Charset(codec="cp932", declared="Shift_JIS")
EUC_JP = Charset(codec="euc_jp", declared="EUC-JP")
LATIN1_CALLED_UTF8 = Charset(codec="cp1252")


@dataclass(frozen=True, kw_only=True)
class File:
    """A document at a path of the site, such as the PDF of an article."""

    path: str
    body: bytes | Stream
    content_type: str = "application/pdf"
    label: str = ""
    """The text of the link to it."""

    delivery: FeedDelivery = field(default_factory=FeedDelivery)


@dataclass(frozen=True, kw_only=True)
class Enclosure:
    url: str
    content_type: str = "application/pdf"
    length: int = 0


@dataclass(frozen=True, kw_only=True)
class MediaContent:
    """A `media:content` with its texts; the description is what serves as alt text."""

    url: str
    content_type: str = "image/png"
    title: str | None = None
    description: str | None = None


@dataclass(frozen=True, kw_only=True)
class Later:
    """Changes to an article that are made when its page was sent so many times."""

    after_requests: int
    changes: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class ArticlePage:
    """How the page of an article is made and sent."""

    charset: Charset = UTF8
    content_type: str = "text/html"
    boilerplate: bool = True
    """With navigation, a cookie notice, related links and a footer around the text."""

    markup: str = ""
    """HTML that is put behind the text as it is."""

    body: bytes | Stream | None = None
    """Sent instead of the page made of the article."""

    delivery: FeedDelivery = field(default_factory=FeedDelivery)


@dataclass(frozen=True, kw_only=True)
class Article:
    name: str = ASSIGNED
    """Its key in the site; it never changes."""

    path: str = ASSIGNED
    """Where its page is: `/articles/NAME`."""

    title: str | None = None
    text: str = ""
    """The text of the page; an empty line starts a paragraph."""

    summary: str | None = None
    content: str | None = None
    """HTML of the whole article in the feed (`content:encoded`)."""

    guid: str | None = ASSIGNED
    link: str | None = ASSIGNED
    published: datetime | str | None = ASSIGNED
    updated: datetime | str | None = None
    authors: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    enclosures: tuple[Enclosure, ...] = ()
    media: tuple[MediaContent, ...] = ()
    attachments: tuple[File, ...] = ()
    page: ArticlePage = field(default_factory=ArticlePage)
    later: Later | None = None

    def __post_init__(self) -> None:
        if self.path != ASSIGNED:
            _check_path(self.path)


@dataclass(frozen=True, kw_only=True)
class Feed:
    path: str = "/feed.xml"
    """Its key in the site."""

    title: str = "A feed"
    description: str = "What is new"
    format: Format = Format.RSS2
    language: str = "en"
    content_type: str | None = None
    """None: the one of its format."""

    charset: Charset = UTF8
    damages: tuple[Damage, ...] = ()
    articles_max: int | None = None
    """Only so many of the newest are listed, as most feeds do."""

    newest_first: bool = True
    cdata: bool = False
    """Write summary and content as CDATA instead of escaping them."""

    link_base: str = "{base}"
    """What assigned links start with: another host, scheme or `www`."""

    delivery: FeedDelivery = field(default_factory=FeedDelivery)

    def __post_init__(self) -> None:
        _check_path(self.path)


def _check_path(path: str) -> None:
    if not path.startswith("/"):
        raise ValueError(f"a path starts with a slash, not {path!r}")
