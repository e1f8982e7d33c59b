"""A document of a feed, parsed: entries that can be items, and those that cannot, with the reason.

Nothing that one entry holds can lose another: if the parser stumbles over the document, each entry is parsed
by itself.
"""

import io
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import feedparser  # type: ignore[import-untyped] # it has no types

from tsuzuki.collectors.feeds.documents import document
from tsuzuki.collectors.feeds.documents.encoding import as_utf8, is_readable
from tsuzuki.collectors.feeds.documents.markup import plain_text
from tsuzuki.collectors.feeds.documents.structure import structure_of
from tsuzuki.collectors.feeds.entries.entry import ParsedFeed, Unusable
from tsuzuki.collectors.feeds.entries.entry_reader import Draft, read_entry, unusable
from tsuzuki.collectors.feeds.entries.identity import fingerprints_of, shares_guids
from tsuzuki.outward.errors import SourceRefused

_FEED_ROOTS = frozenset({b"rss", b"feed", b"rdf", b"channel"})
_UTF8 = "application/xml; charset=utf-8"
_CUT_OFF = "the document is cut off inside it"
_UNREADABLE = "its title cannot be read because the feed's encoding is unknown"
_TITLE = re.compile(rb"<title\b[^<>]*>([^<>]*)", re.IGNORECASE)


def parse_feed(
    body: bytes,
    *,
    url: str,
    headers: Mapping[str, str],
    now: datetime,
) -> ParsedFeed:
    """Parse a document. `url` is where it was found, against which relative links are resolved. Of a document that
    ends in the middle, the whole entries are taken.

    Raises `SourceUnavailable` for an empty body, a page for people and a document that ends before its first entry
    does, `SourceRefused` for anything else that is no feed, and for one in an unknown encoding.
    """
    document.check_size(body)
    body = as_utf8(body, headers.get("content-type", ""))
    structure = structure_of(body)
    document.check_structure(body, structure, url=url)
    unusable_entries: list[Unusable] = []
    is_cut_off = bool(structure.root_name in _FEED_ROOTS and not structure.is_closed)
    if is_cut_off:
        body, rest = document.whole_entries(body, structure)
        unusable_entries += [_cut_off(rest)] if structure.is_entry_open else []
    body = document.without_bombs(body)
    feed, raws, unparsed = _parse(body, url, headers)
    unusable_entries += unparsed
    drafts: list[Draft] = []
    language = str(feed.get("language") or headers.get("content-language") or "")
    # From the end, so that each raw entry is given up as soon as it is read.
    while raws:
        one = _read(raws.pop(), url, now, language)
        if isinstance(one, Draft):
            drafts.append(one)
        else:
            unusable_entries.append(one)
    drafts.reverse()
    _check_readable(drafts, unusable_entries)
    identifiers = [draft.identifiers for draft in drafts]
    feed_urls = [url, str(feed.get("link") or ""), str(feed.get("id") or "")]
    fingerprints = fingerprints_of(identifiers, feed_urls=feed_urls)
    return ParsedFeed(
        title=plain_text(str(feed.get("title") or ""), is_markup=True) or None,
        entries=[draft.entry(known) for draft, known in zip(drafts, fingerprints, strict=True)],
        unusable=unusable_entries,
        is_cut_off=is_cut_off,
        shares_guids=shares_guids(identifiers),
    )


def _cut_off(rest: bytes) -> Unusable:
    """The entry inside which the document ends. It comes with the whole document."""
    title = _TITLE.search(rest)
    text = title[1].decode("utf-8", "replace") if title else ""
    return unusable(plain_text(text, is_markup=True), _CUT_OFF, rest.decode("utf-8", "replace"))


def _check_readable(drafts: Sequence[Draft], found: Sequence[Unusable]) -> None:
    """Raise if no entry can be read: then the fault is the feed's, not that of an entry."""
    if not drafts and any(one.problem == _UNREADABLE for one in found):
        raise SourceRefused(
            "the feed declares no encoding, and none can be detected, so its titles cannot be read",
            hint="Ask the owner of the feed to declare its encoding.",
            code="encoding",
        )


def _parse(
    body: bytes, url: str, headers: Mapping[str, str]
) -> tuple[dict[str, Any], list[Any], Sequence[Unusable]]:
    """What the feed says of itself, its entries, and those that could not be parsed."""
    parsed = _parsed_or_none(body, url, headers)
    if parsed is None:
        body = document.with_valid_references(body)
        parsed = _parsed_or_none(body, url, headers)
    if parsed is None:
        return _parse_one_by_one(body, url, headers)
    if not parsed["entries"] and not parsed.get("version"):
        raise document.not_a_feed(body)
    return dict(parsed["feed"]), list(parsed["entries"]), ()


def _parsed_or_none(body: bytes, url: str, headers: Mapping[str, str]) -> Any:
    try:
        return _feedparser(body, url, headers)
    except Exception:  # noqa: BLE001 -- a hostile value makes it raise any error of Python; the caller goes on
        return None


def _parse_one_by_one(
    body: bytes, url: str, headers: Mapping[str, str]
) -> tuple[dict[str, Any], list[Any], Sequence[Unusable]]:
    feed: dict[str, Any] = {}
    raws: list[Any] = []
    unparsed: list[Unusable] = []
    for text in document.single_entry_documents(body):
        try:
            parsed = _feedparser(text, url, headers)
        except Exception as problem:  # noqa: BLE001 -- one entry is lost, and recorded, not the feed
            words = f"it cannot be parsed ({type(problem).__name__})"
            unparsed.append(unusable("", words, text.decode("utf-8", "replace")))
        else:
            feed = feed or dict(parsed["feed"])
            raws += parsed["entries"]
    if not raws:
        raise SourceRefused("the document cannot be parsed as RSS or Atom", code="not_a_feed")
    return feed, raws, unparsed


def _feedparser(body: bytes, url: str, headers: Mapping[str, str]) -> Any:
    # As a stream: bytes and text would be taken for a path or an address to open.
    language = headers.get("content-language")
    known = {"content-language": language} if language else {}
    return feedparser.parse(
        io.BytesIO(body),
        response_headers={**known, "content-type": _UTF8, "content-location": url},
        # We keep plain text, not markup.
        sanitize_html=False,
        resolve_relative_uris=False,
    )


def _read(raw: Any, url: str, now: datetime, language: str) -> Draft | Unusable:
    try:
        draft = read_entry(raw, base_url=url, now=now, language=language)
    except Exception as problem:  # noqa: BLE001 -- one bad entry never fails the feed; it is recorded
        return unusable("", f"it cannot be read ({type(problem).__name__})", repr(raw)[:10_000])
    if isinstance(draft, Draft) and not is_readable(draft.values["title"]):
        return unusable("", _UNREADABLE, draft.values["url"])
    return draft
