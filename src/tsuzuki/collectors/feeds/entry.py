"""An entry of a feed, as it was parsed and before it is stored: plain text, absolute addresses, times in UTC."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

TITLE_CHARACTERS_MAX = 500
EXCERPT_CHARACTERS_MAX = 2_000
AUTHOR_CHARACTERS_MAX = 200
CATEGORIES_MAX = 30
ATTACHMENTS_MAX = 20

_IMAGE = "image"


@dataclass(frozen=True, kw_only=True)
class Attachment:
    """A file that an entry names beside its page."""

    url: str
    media_type: str | None = None
    title: str | None = None


@dataclass(frozen=True, kw_only=True)
class Image:
    """The picture of an entry. `alt` is its description."""

    url: str
    alt: str | None = None


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An entry that can be an item.

    `published_at` is None if the feed gives no usable date. `fingerprints` are what the entry is known again
    by, the strongest first; see `identity`.
    """

    url: str
    canonical_url: str
    title: str
    published_at: datetime | None = None
    updated_at: datetime | None = None
    guid: str | None = None
    author: str | None = None
    categories: tuple[str, ...] = ()
    excerpt: str = ""
    attachments: tuple[Attachment, ...] = ()
    image: Image | None = None
    content_hash: str
    fingerprints: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Unusable:
    """An entry that cannot be an item, and why."""

    title: str
    problem: str
    entry_hash: str


@dataclass(frozen=True, kw_only=True)
class ParsedFeed:
    """What a document held, in its order. `is_cut_off`: it ends in the middle, so more may come. `shares_guids`: one
    guid stands for several articles, so guids are no identities in this feed."""

    title: str | None
    entries: list[Entry] = field(default_factory=list)
    unusable: list[Unusable] = field(default_factory=list)
    is_cut_off: bool = False
    shares_guids: bool = False


def stored_attachments(entry: Entry) -> list[dict[str, Any]]:
    """Attachments and picture, as `item_details.attachments` keeps them."""
    rows = [_row(one.url, one.media_type, one.title) for one in entry.attachments]
    if entry.image is not None:
        rows.append({**_row(entry.image.url, None, entry.image.alt), "kind": _IMAGE})
    return rows


def attachments_from(stored: Sequence[Mapping[str, Any]]) -> tuple[Attachment, ...]:
    """The attachments in `item_details.attachments`, without the picture."""
    return tuple(
        Attachment(url=row["url"], media_type=row.get("media_type"), title=row.get("title"))
        for row in stored
        if row.get("kind") != _IMAGE
    )


def image_from(stored: Sequence[Mapping[str, Any]]) -> Image | None:
    """The picture in `item_details.attachments`."""
    for row in stored:
        if row.get("kind") == _IMAGE:
            return Image(url=row["url"], alt=row.get("title"))
    return None


def _row(url: str, media_type: str | None, title: str | None) -> dict[str, Any]:
    known = {"url": url, "media_type": media_type, "title": title}
    return {name: value for name, value in known.items() if value is not None}
