"""A document of a feed, parsed: entries that can be items, and those that cannot, with the reason.

Nothing that one entry holds can lose another: if the parser stumbles over the document, each entry is parsed
by itself.
"""

import io
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

import feedparser  # type: ignore[import-untyped] # it has no types

from tsuzuki.collectors.feeds import document
from tsuzuki.collectors.feeds.entry import ParsedFeed, Unusable
from tsuzuki.collectors.feeds.entry_reader import Draft, read_entry, unusable
from tsuzuki.collectors.feeds.identity import fingerprints_of, shares_guids
from tsuzuki.collectors.feeds.markup import plain_text
from tsuzuki.collectors.kit.errors import SourceRefused

BeforeEntry: TypeAlias = Callable[[], None]
"""Called before each entry that is parsed by itself, which may take long; may raise to stop that."""

_HEADERS = ("content-type", "content-language")
_CUT_OFF = "the document ends inside it, before its link"


def parse_feed(
    body: bytes,
    *,
    url: str,
    headers: Mapping[str, str],
    now: datetime,
    before_entry: BeforeEntry = lambda: None,
) -> ParsedFeed:
    """Parse a document. `url` is where it was found, against which relative links are resolved.

    Raises `SourceUnavailable` for an empty body and a page for people, `SourceRefused` for anything else that
    is no feed.
    """
    document.check_document(body, url=url)
    body = document.without_bombs(body)
    feed, raws, unparsed = _parse(body, url, headers, before_entry)
    is_cut_off = document.is_cut_off(body)
    drafts: list[Draft] = []
    unusable_entries = list(unparsed)
    if is_cut_off and raws and document.is_cut_off_in_link(body):
        cut = dict(raws.pop())
        title = plain_text(str(cut.get("title") or ""), is_markup=True)
        unusable_entries.append(unusable(title, _CUT_OFF, f"{cut.get('id')} {cut.get('link')}"))
    # From the end, so that each raw entry is given up as soon as it is read.
    while raws:
        one = _read(raws.pop(), url, now)
        if isinstance(one, Draft):
            drafts.append(one)
        else:
            unusable_entries.append(one)
    drafts.reverse()
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


def _parse(
    body: bytes, url: str, headers: Mapping[str, str], before_entry: BeforeEntry
) -> tuple[dict[str, Any], list[Any], Sequence[Unusable]]:
    """What the feed says of itself, its entries, and those that could not be parsed."""
    parsed = _parsed_or_none(body, url, headers)
    if parsed is None:
        body = document.with_valid_references(body)
        parsed = _parsed_or_none(body, url, headers)
    if parsed is None:
        return _parse_one_by_one(body, url, headers, before_entry)
    if not parsed["entries"] and not parsed.get("version"):
        raise document.not_a_feed(body)
    return dict(parsed["feed"]), list(parsed["entries"]), ()


def _parsed_or_none(body: bytes, url: str, headers: Mapping[str, str]) -> Any:
    try:
        return _feedparser(body, url, headers)
    except Exception:  # noqa: BLE001 -- a hostile value makes it raise any error of Python; the caller goes on
        return None


def _parse_one_by_one(
    body: bytes, url: str, headers: Mapping[str, str], before_entry: BeforeEntry
) -> tuple[dict[str, Any], list[Any], Sequence[Unusable]]:
    feed: dict[str, Any] = {}
    raws: list[Any] = []
    unparsed: list[Unusable] = []
    for text in document.single_entry_documents(body):
        before_entry()
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
    known = {name: headers[name] for name in _HEADERS if name in headers}
    return feedparser.parse(
        io.BytesIO(body),
        response_headers={**known, "content-location": url},
        # We keep plain text, not markup.
        sanitize_html=False,
        resolve_relative_uris=False,
    )


def _read(raw: Any, url: str, now: datetime) -> Draft | Unusable:
    try:
        return read_entry(raw, base_url=url, now=now)
    except Exception as problem:  # noqa: BLE001 -- one bad entry never fails the feed; it is recorded
        return unusable("", f"it cannot be read ({type(problem).__name__})", repr(raw)[:10_000])
