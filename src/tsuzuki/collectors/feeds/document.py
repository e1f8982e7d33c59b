"""A downloaded document before it is parsed: whether it can be a feed, whether it is whole, and its parts.

feedparser takes anything and raises nothing: an error page for people, an empty body and half a feed look to it
like feeds with few entries. So what is not a feed is refused here.
"""

import html
import re
from collections import Counter
from collections.abc import Iterator
from urllib.parse import urljoin, urlsplit

from tsuzuki.collectors.kit.errors import SourceFailed, SourceRefused, SourceUnavailable

ENTRIES_MAX = 20_000
TAGS_MAX = 1_000_000
"""Above these a document is made to fill the memory."""

EXPANSION_BYTES_MAX = 1_000_000
"""How much the entities that a document declares may add to it."""

ENTRY_DOCUMENTS_BYTES_MAX = 100_000_000
"""How much the documents of single entries may be together: each has the head of the whole."""

_HEAD_BYTES = 4_096
_FEED_TAG = re.compile(rb"<(?:[\w.-]+:)?(?:rss|feed|rdf|channel)\b", re.IGNORECASE)
_HTML_TAG = re.compile(rb"<!doctype\s+html|<html\b|<head\b|<body\b", re.IGNORECASE)
_END = re.compile(rb"</(?:[\w.-]+:)?(?:rss|feed|rdf)\s*>", re.IGNORECASE)
_ENTRY_TAG = re.compile(rb"<(/?)(?:[\w.-]+:)?(?:item|entry)(?=[\s>/])", re.IGNORECASE)
_LINK_TAG = re.compile(rb"</?link\b[^<>]*>", re.IGNORECASE)
_ENTITY = re.compile(rb"<!ENTITY\s+([\w.-]+)\s+(?:\"([^\"]*)\"|'([^']*)')\s*>")
_ENTITY_TAG = re.compile(rb"<!ENTITY[^>]*>")
_ENTITY_USE = re.compile(rb"&([\w.-]+);")
_REFERENCE = re.compile(rb"&#(?:[xX]([0-9a-fA-F]{1,4000})|([0-9]{1,4000}));?")
_FEED_TYPE = re.compile(rb"application/(?:rss|atom)\+xml", re.IGNORECASE)
_HREF = re.compile(r"href\s*=\s*[\"']?([^\"'\s>]+)", re.IGNORECASE)


def check_document(body: bytes, *, url: str) -> None:
    """Raise if the body is no feed or too much of one."""
    flat = _flat(body)
    if not flat.strip():
        raise SourceUnavailable("the feed answered with an empty document")
    if is_page(flat):
        raise _page_instead(flat, url)
    if flat.count(b"<") > TAGS_MAX or len(_ENTRY_TAG.findall(flat)) > 2 * ENTRIES_MAX:
        raise SourceRefused(
            f"the feed has more than {ENTRIES_MAX} entries or {TAGS_MAX} tags",
            hint="Look for a feed of the newest entries only.",
            code="too_large",
        )


def not_a_feed(body: bytes) -> SourceFailed:
    """The error for a document without a trace of a feed."""
    if _flat(body).lstrip()[:1] in (b"{", b"["):
        return SourceRefused(
            "the address gives JSON, which is not read as a feed",
            hint="Look for the RSS or Atom feed of the site.",
            code="not_a_feed",
        )
    return SourceRefused(
        "the document is not RSS or Atom",
        hint="Open the address in a browser and look for the feed's own address.",
        code="not_a_feed",
    )


def is_page(flat: bytes) -> bool:
    """Whether it is a page for people."""
    page, feed = _HTML_TAG.search(flat[:_HEAD_BYTES]), _FEED_TAG.search(flat[:_HEAD_BYTES])
    return page is not None and (feed is None or page.start() < feed.start())


def is_cut_off(body: bytes) -> bool:
    """Whether the document has no end."""
    return _END.search(_flat(body)[-_HEAD_BYTES:]) is None


def is_cut_off_in_link(body: bytes) -> bool:
    """Whether the document ends inside an entry before that entry's link is whole."""
    flat = _flat(body)
    tags = list(_ENTRY_TAG.finditer(flat))
    if not tags or tags[-1][1]:
        return False
    links = _LINK_TAG.findall(flat, tags[-1].start())
    return not any(link.startswith(b"</") or b"href" in link.lower() for link in links)


def without_bombs(body: bytes) -> bytes:
    """The document without its entities if they would blow it up. The parser expands those of plain text."""
    flat = _flat(body)
    entities = [(one[1], one[2] or one[3] or b"") for one in _ENTITY.finditer(flat)]
    # Counted for all of them at once: a document may declare a million.
    uses = Counter(_ENTITY_USE.findall(flat)) if entities else Counter()
    added = sum(len(value) * uses[name] for name, value in entities)
    if added <= EXPANSION_BYTES_MAX:
        return body
    if flat is not body:
        raise SourceRefused("the feed declares entities that blow it up", code="too_large")
    # Up to the last `>`: after it the rule would look to the end from each declaration.
    end = body.rfind(b">") + 1
    return _ENTITY_TAG.sub(b"", body[:end]) + body[end:]


def with_valid_references(body: bytes) -> bytes:
    """The document without references to characters that do not exist, over which the parser stumbles."""
    return _REFERENCE.sub(lambda found: found[0] if _exists(found) else b"\xef\xbf\xbd", body)


def single_entry_documents(body: bytes) -> Iterator[bytes]:
    """A document for each entry, with the head and the end of the whole. Raises `SourceRefused` if they are too much
    together."""
    starts_and_ends: list[tuple[int, int]] = []
    start = None
    for tag in _ENTRY_TAG.finditer(body):
        if not tag[1]:
            start = tag.start()
        elif start is not None:
            end = body.find(b">", tag.end()) + 1
            if end == 0:
                break
            starts_and_ends.append((start, end))
            start = None
    if not starts_and_ends:
        return
    head, rest = body[: starts_and_ends[0][0]], body[starts_and_ends[-1][1] :]
    size = sum(len(head) + end - start + len(rest) for start, end in starts_and_ends)
    if size > ENTRY_DOCUMENTS_BYTES_MAX:
        raise SourceRefused(
            "the parser stumbles over the feed, which is too large to be parsed entry by entry",
            hint="Look for a feed of the newest entries only.",
            code="too_large",
        )
    for start, end in starts_and_ends:
        yield head + body[start:end] + rest


def _exists(reference: re.Match[bytes]) -> bool:
    digits = reference[1] or reference[2]
    if len(digits.lstrip(b"0")) > 7:
        return False
    number = int(digits, 16 if reference[1] else 10)
    return 0 < number < 0x110000 and not 0xD800 <= number < 0xE000


def _flat(body: bytes) -> bytes:
    """UTF-16 and UTF-32 as if each character of the markup were one byte."""
    return body.replace(b"\x00", b"") if b"\x00" in body[:64] else body


def _page_instead(flat: bytes, url: str) -> SourceUnavailable:
    """An error page may be gone the next time; but the address may also be that of the site."""
    links = (link for link in _LINK_TAG.findall(flat[:200_000]) if _FEED_TYPE.search(link))
    href = _HREF.search(next(links, b"").decode("utf-8", "replace"))
    hint = "Look at the address in a browser: a page for people came instead of the feed."
    if href is not None:
        hint = f"Did you mean {_shown(urljoin(url, html.unescape(href[1])))}? The page names it as its feed."
    return SourceUnavailable(
        "the address gives a page for people, not a feed", hint=hint, code="not_a_feed"
    )


def _shown(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}{parts.path}{'?…' if parts.query else ''}"
