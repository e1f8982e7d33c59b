"""A downloaded document before it is parsed: whether it can be a feed, whether it is whole, and its parts.

feedparser takes anything and raises nothing: an error page for people, an empty body and half a feed look to it
like feeds with few entries, and a few tags can keep it busy for minutes. So what is not a feed, or too much of one, is
refused here. Documents are in UTF-8 from `documents.encoding` on.
"""

import html
import re
from collections import Counter
from collections.abc import Iterator
from urllib.parse import urljoin, urlsplit

from tsuzuki.collectors.feeds.documents.structure import Structure
from tsuzuki.outward.errors import SourceFailed, SourceRefused, SourceUnavailable

ENTRIES_MAX = 20_000
TAGS_MAX = 1_000_000
"""Above these a document is made to fill the memory."""

DEPTH_MAX = 1_000
ATTRIBUTES_MAX = 500
"""Levels of tags, and attributes of one tag. Above these a document is made to be slow: the parser takes time by the
square of them."""

ENTITIES_MAX = 1_000
EXPANSION_BYTES_MAX = 1_000_000
"""How many entities a document may declare, and how much they may add to it."""

ENTRY_DOCUMENTS_BYTES_MAX = 100_000_000
"""How much the documents of single entries may be together: each has the head of the whole."""

_PAGE_ROOTS = frozenset({b"html", b"head", b"body"})
_ENTRY_TAG = re.compile(rb"<(/?)(?:[\w.-]+:)?(?:item|entry)(?=[\s>/])", re.IGNORECASE)
_LINK_TAG = re.compile(rb"</?link\b[^<>]*>", re.IGNORECASE)
_ENTITY = re.compile(rb"<!ENTITY\s+([\w.-]+)\s+(?:\"([^\"]*)\"|'([^']*)')\s*>")
_ENTITY_TAG = re.compile(rb"<!ENTITY[^>]*>")
_ENTITY_USE = re.compile(rb"&([\w.-]+);")
_REFERENCE = re.compile(rb"&#(?:[xX]([0-9a-fA-F]{1,4000})|([0-9]{1,4000}));?")
_FEED_TYPE = re.compile(rb"application/(?:rss|atom)\+xml", re.IGNORECASE)
_HREF = re.compile(r"href\s*=\s*[\"']?([^\"'\s>]+)", re.IGNORECASE)


def check_size(body: bytes) -> None:
    """Raise if the body is empty or has too many tags to be looked at."""
    if not body.strip():
        raise SourceUnavailable("the feed sent an empty document")
    if body.count(b"<") > TAGS_MAX:
        raise _too_large()


def check_structure(body: bytes, structure: Structure, *, url: str) -> None:
    """Raise if the document is no feed or too much of one."""
    if structure.root_name in _PAGE_ROOTS:
        raise _page_instead(body, url)
    if structure.entries > ENTRIES_MAX:
        raise _too_large()
    if structure.depth_max > DEPTH_MAX or structure.attributes_max > ATTRIBUTES_MAX:
        raise SourceRefused(
            f"the feed has more than {DEPTH_MAX} levels of tags, or more than {ATTRIBUTES_MAX} attributes in one tag",
            code="too_large",
        )


def not_a_feed(body: bytes) -> SourceFailed:
    """The error for a document without a trace of a feed."""
    if body.lstrip()[:1] in (b"{", b"["):
        return SourceRefused(
            "the address returns JSON, which is not supported as a feed",
            hint="Look for the RSS or Atom feed of the site.",
            code="not_a_feed",
        )
    return SourceRefused(
        "the document is not RSS or Atom",
        hint="Open the address in a browser and look for the feed's real address.",
        code="not_a_feed",
    )


def whole_entries(body: bytes, structure: Structure) -> tuple[bytes, bytes]:
    """A document that ends in the middle, closed after its last whole entry, and what came after that. Raises
    `SourceUnavailable` if it has no whole entry."""
    if not structure.whole_end:
        raise SourceUnavailable(
            "the document is cut off before the end of its first entry",
            hint="The feed will be fetched again. If this persists, open its address in a browser.",
            code="cut_off",
        )
    channel = b"</channel>" if structure.is_channel_open else b""
    end = structure.whole_end
    return body[:end] + channel + b"</" + structure.root + b">", body[end:]


def without_bombs(body: bytes) -> bytes:
    """The document without its entities if they would blow it up. The parser expands those of plain text."""
    entities = [(one[1], one[2] or one[3] or b"") for one in _ENTITY.finditer(body)]
    # Counted for all of them at once: a document may declare a million.
    uses = Counter(_ENTITY_USE.findall(body)) if entities else Counter()
    added = sum(len(value) * uses[name] for name, value in entities)
    if added <= EXPANSION_BYTES_MAX and len(entities) <= ENTITIES_MAX:
        return body
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
            "the parser cannot read the feed, and the feed is too large to be parsed entry by "
            "entry",
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


def _too_large() -> SourceRefused:
    return SourceRefused(
        f"the feed has more than {ENTRIES_MAX} entries or {TAGS_MAX} tags",
        hint="Look for a feed of the newest entries only.",
        code="too_large",
    )


def _page_instead(body: bytes, url: str) -> SourceUnavailable:
    """An error page may be gone the next time; but the address may also be that of the site."""
    links = (link for link in _LINK_TAG.findall(body[:200_000]) if _FEED_TYPE.search(link))
    href = _HREF.search(next(links, b"").decode("utf-8", "replace"))
    hint = "Open the address in a browser: it returned an HTML page instead of the feed."
    if href is not None:
        hint = (
            f"Did you mean {_shown(urljoin(url, html.unescape(href[1])))}? The page names it "
            "as its feed."
        )
    return SourceUnavailable(
        "the address returns an HTML page, not a feed", hint=hint, code="not_a_feed"
    )


def _shown(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}{parts.path}{'?…' if parts.query else ''}"
