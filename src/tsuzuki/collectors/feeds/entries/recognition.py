"""Whether an entry with an unknown link is an article that is known already.

The link is the key: an entry with the canonical link of an item is that item, whatever else has changed. A guid or a
path that is known is only a hint. It counts if nothing that a reader sees contradicts it, which is what `RULES` say:

    rule          title     host              date               text
    unchanged     the same  the same, left    the same, unknown  any
    rescheduled   the same  the same          any                the same

An entry that fits none of them is another article: a new link with a new title always is, because a feed may give all
its articles one guid, and many dates have no time of day. A host is left if nothing in the document is on it any more:
the site has moved as a whole. Two links of one document are two articles, whatever their guids.
"""

import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from urllib.parse import urlsplit

from tsuzuki.collectors.feeds.entries.entry import FeedEntry


class Host(StrEnum):
    """Where an entry is, compared with a known article. Scheme, `www.` and `m.` make no difference."""

    SAME = "same"
    LEFT = "left"
    """On another host, and the document lists nothing on the article's host any more."""

    OTHER = "other"


class Date(StrEnum):
    """When an entry was published, compared with a known article."""

    SAME = "same"
    UNKNOWN = "unknown"
    """The feed gave no publishing time, now or before."""

    OTHER = "other"


@dataclass(frozen=True, kw_only=True)
class KnownArticle:
    """What a reader saw of an item. `published_at` is None if the feed gave no date."""

    item_id: int
    canonical_url: str
    title: str
    published_at: datetime | None
    content_hash: str | None


@dataclass(frozen=True, kw_only=True)
class ArticleComparison:
    """What a reader sees of an entry and of a known article, side by side."""

    host: Host
    date: Date
    is_title_same: bool
    is_text_same: bool
    """Title and text are the same to the letter, and there is a text."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A way in which an article may come back under another link, always with its title."""

    name: str
    hosts: frozenset[Host]
    dates: frozenset[Date]
    needs_text: bool = False

    def fits(self, seen: ArticleComparison) -> bool:
        return (
            seen.is_title_same
            and seen.host in self.hosts
            and seen.date in self.dates
            and (seen.is_text_same or not self.needs_text)
        )


RULES = (
    Rule(
        name="unchanged",
        hosts=frozenset({Host.SAME, Host.LEFT}),
        dates=frozenset({Date.SAME, Date.UNKNOWN}),
    ),
    Rule(
        name="rescheduled",
        hosts=frozenset({Host.SAME}),
        dates=frozenset(Date),
        needs_text=True,
    ),
)


def host_of(canonical_url: str) -> str:
    return urlsplit(canonical_url).netloc


def compared(
    entry: FeedEntry, article: KnownArticle, *, hosts: Collection[str]
) -> ArticleComparison:
    """`hosts` are those of all entries of the document."""
    is_content_same = entry.content_hash == article.content_hash
    return ArticleComparison(
        host=_host(host_of(entry.canonical_url), host_of(article.canonical_url), hosts),
        date=_date(entry.stated_at, article.published_at),
        # The item has the title it was found with, the hash is that of the last change.
        is_title_same=is_content_same or _letters(entry.title) == _letters(article.title),
        is_text_same=is_content_same and bool(entry.excerpt),
    )


def is_same_article(seen: ArticleComparison) -> bool:
    """Whether a known guid or path may be believed."""
    return any(rule.fits(seen) for rule in RULES)


def _host(now: str, before: str, hosts: Collection[str]) -> Host:
    if now == before:
        return Host.SAME
    return Host.OTHER if before in hosts else Host.LEFT


def _date(now: datetime | None, before: datetime | None) -> Date:
    if now is None or before is None:
        return Date.UNKNOWN
    return Date.SAME if now == before else Date.OTHER


def _letters(title: str) -> str:
    """The title without what a reader hardly sees: case, width, blanks and punctuation. A title without letters is
    compared as it is."""
    normal = unicodedata.normalize("NFKC", title).casefold()
    return "".join(letter for letter in normal if letter.isalnum()) or normal
