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
_TIMES = ("published_at", "stated_at", "updated_at")


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
class FeedEntry:
    """An entry that can be an item.

    `published_at` is None if the feed gives no usable date; `stated_at` is also None if it gives only the time of the
    last change. `fingerprints` are what the entry is known again by, the strongest first; see `identity`.
    """

    url: str
    canonical_url: str
    title: str
    published_at: datetime | None = None
    stated_at: datetime | None = None
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
    entries: list[FeedEntry] = field(default_factory=list)
    unusable: list[Unusable] = field(default_factory=list)
    is_cut_off: bool = False
    shares_guids: bool = False

    def as_dict(self) -> dict[str, Any]:
        """As JSON, for another process."""
        entries = [
            {**vars(entry), **{name: _written(vars(entry)[name]) for name in _TIMES}}
            for entry in self.entries
        ]
        for entry in entries:
            entry["attachments"] = [vars(one) for one in entry["attachments"]]
            entry["image"] = entry["image"] and vars(entry["image"])
        return {**vars(self), "entries": entries, "unusable": [vars(one) for one in self.unusable]}

    @classmethod
    def from_dict(cls, said: Mapping[str, Any]) -> "ParsedFeed":
        entries = [_entry_from(one) for one in said["entries"]]
        unusable = [Unusable(**one) for one in said["unusable"]]
        return cls(**{**said, "entries": entries, "unusable": unusable})


def stored_attachments(entry: FeedEntry) -> list[dict[str, Any]]:
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


def _entry_from(said: Mapping[str, Any]) -> FeedEntry:
    image = said["image"]
    return FeedEntry(
        **{
            **said,
            **{name: said[name] and datetime.fromisoformat(said[name]) for name in _TIMES},
            "categories": tuple(said["categories"]),
            "attachments": tuple(Attachment(**one) for one in said["attachments"]),
            "image": Image(**image) if image else None,
            "fingerprints": tuple(said["fingerprints"]),
        }
    )


def _written(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None


def _row(url: str, media_type: str | None, title: str | None) -> dict[str, Any]:
    known = {"url": url, "media_type": media_type, "title": title}
    return {name: value for name, value in known.items() if value is not None}
