"""What an article may be known by, apart from its link as it is written.

Each item has fingerprints. An entry that shares the first kind is that item again; the others are hints, which
`recognition` believes or not:

    url     the canonical link: tracking parameters, scheme, `www.`, `m.` and a trailing slash make no difference
    guid    the guid; one that is unique only within its feed counts in its feed
    path    path and query of the link, in its feed: the site may have moved to another host. Only for entries
            without a guid, or with one that is a web address and moves with the site

One guid for several articles of a document is no identity, and a feed that does so is not believed again.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit, urlunsplit

URL_BYTES_MAX = 2_000
"""A longer link cannot be a key: PostgreSQL's index holds no more."""

GUID_CHARACTERS_MAX = 4_000

_IN_FEED = "feed-"
_URL, _GUID, _FEED_GUID, _PATH = "url", "guid", f"{_IN_FEED}guid", f"{_IN_FEED}path"
_GUIDS_SHARED = "feed-guids-shared"

_TRACKING_PREFIXES = ("at_custom", "hsa_", "matomo_", "mtm_", "piwik_", "utm_")
_TRACKING = frozenset(
    """
    __hsfp __hssc __hstc _hsenc _hsmi _openstat at_bbc_team at_campaign at_format at_link_id at_link_type at_medium
    at_ptr_name cmpid dclid fb_action_ids fb_action_types fb_ref fb_source fbclid gbraid gclid gclsrc hsctatracking igsh
    igshid li_fat_id mc_cid mc_eid mkt_tok ml_subscriber ml_subscriber_hash msclkid oly_anon_id oly_enc_id pk_campaign
    pk_content pk_kwd pk_medium pk_source rb_clickid s_cid s_kwcid sr_share srsltid ttclid twclid vero_conv vero_id
    wbraid wickedid wt.mc_id wt_mc xtor yclid ysclid
    """.split()
)
"""Parameters that only tell where a reader came from. Any other one may make another article."""

_SOURCE_NAMES = frozenset({"from", "origin", "partner", "ref", "source", "src", "via"})
_SOURCE_VALUES = frozenset({"atom", "feed", "feeds", "rss", "rss1.0mainlinkrss", "rssfeed"})
_PLACES_ON_PAGE = re.compile(r"comments?|respond|disqus_thread|more-\d+|top", re.IGNORECASE)
_NO_GUIDS = frozenset(
    {"", "-", "0", "1", "false", "guid", "http://", "https://", "id", "n/a", "none", "null", "true"}
)
_GLOBAL_GUID = re.compile(r"(?:https?://[^/?#\s]+[/?#]\S+|tag:\S+,\S+|urn:\S+:\S+)", re.IGNORECASE)
_SAME_SITE = re.compile(r"^(?:(?:www|m)\.)+(?=[^.]+\.)")
"""What comes before the name of a site: the same pages for another screen."""

_DEFAULT_PORTS = {"http": 80, "https": 443}
_BYTES = "surrogateescape"
"""Bytes of any encoding stay what they are: a path need not be UTF-8."""

_SAFE = "!$&'()*+,;=:@/~-._"


@dataclass(frozen=True, kw_only=True)
class Identifiers:
    """What an entry says by which it may be known again."""

    canonical_url: str
    guid: str | None


def canonical_url(url: str) -> str:
    """The link without what does not make another article. For comparing only: it may lead nowhere."""
    parts = urlsplit(url)
    host = _SAME_SITE.sub("", _host(parts))
    path = _escaped(parts.path).rstrip("/")
    return urlunsplit(("https", host, path, _query(parts.query), _fragment(parts.fragment)))


def is_web_address(url: str) -> bool:
    """Whether it is an absolute http(s) address."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme.lower() in ("http", "https") and bool(parts.hostname)


def shares_guids(entries: Iterable[Identifiers]) -> bool:
    """Whether one guid stands for several articles."""
    urls = defaultdict(set)
    for entry in entries:
        if entry.guid:
            urls[entry.guid].add(entry.canonical_url)
    return any(len(different) > 1 for different in urls.values())


def fingerprints_of(
    entries: Sequence[Identifiers], *, feed_urls: Iterable[str] = ()
) -> list[tuple[str, ...]]:
    """The fingerprints of each entry of a document. `feed_urls`, of the feed and its site, are no guids."""
    no_guids = {canonical_url(url) for url in feed_urls if is_web_address(url)}
    is_guid_used = not shares_guids(entries)
    guids = [_guid_fingerprint(entry.guid, no_guids) if is_guid_used else None for entry in entries]
    paths = [
        None if guid and not is_web_address(entry.guid or "") else _path_fingerprint(entry)
        for entry, guid in zip(entries, guids, strict=True)
    ]
    urls_of_path = defaultdict(set)
    for entry, path in zip(entries, paths, strict=True):
        urls_of_path[path].add(entry.canonical_url)
    found = []
    for entry, guid, path in zip(entries, guids, paths, strict=True):
        same_path = path if len(urls_of_path[path]) == 1 else None
        candidates = (_fingerprint(_URL, entry.canonical_url), guid, same_path)
        found.append(tuple(one for one in candidates if one))
    return found


def in_feed(fingerprint: str, feed_id: int) -> str:
    """The fingerprint as it is stored: one that counts in its feed only has the feed's number."""
    if not fingerprint.startswith(_IN_FEED):
        return fingerprint
    kind, _, digest = fingerprint.partition(":")
    return f"{kind}:{feed_id}:{digest}"


def is_of_link(fingerprint: str) -> bool:
    """Whether it was made from a link: it decides by itself."""
    return fingerprint.startswith(f"{_URL}:")


def is_of_guid(fingerprint: str) -> bool:
    """Whether it was made from a guid."""
    return fingerprint.startswith((f"{_GUID}:", f"{_FEED_GUID}:"))


def shared_guids_mark(feed_id: int) -> str:
    """Stored like a fingerprint if the guids of a feed are no identities."""
    return f"{_GUIDS_SHARED}:{feed_id}"


def _fingerprint(kind: str, text: str) -> str:
    return f"{kind}:{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()}"


def _guid_fingerprint(guid: str | None, no_guids: set[str]) -> str | None:
    if guid is None or guid.lower() in _NO_GUIDS:
        return None
    if not _GLOBAL_GUID.fullmatch(guid):
        return None if is_web_address(guid) else _fingerprint(_FEED_GUID, guid)
    if not is_web_address(guid):
        return _fingerprint(_GUID, guid)
    canonical = canonical_url(guid)
    return None if canonical in no_guids else _fingerprint(_GUID, canonical)


def _path_fingerprint(entry: Identifiers) -> str | None:
    parts = urlsplit(entry.canonical_url)
    if not (parts.path or parts.query):
        return None
    return _fingerprint(_PATH, urlunsplit(("", "", parts.path, parts.query, parts.fragment)))


def _host(parts: SplitResult) -> str:
    host = (parts.hostname or "").rstrip(".")
    try:
        host = host if host.isascii() else host.encode("idna").decode("ascii")
    except UnicodeError:
        host = quote(host)
    if ":" in host:
        host = f"[{host}]"
    is_default = parts.port is None or parts.port == _DEFAULT_PORTS.get(parts.scheme.lower())
    return host if is_default else f"{host}:{parts.port}"


def _query(query: str) -> str:
    """Its parameters in order, without those that only tell where a reader came from."""
    kept = [
        (name, value)
        for name, value in parse_qsl(query, keep_blank_values=True, errors=_BYTES)
        if not _is_tracking(name, value)
    ]
    return "&".join(
        "=".join(quote(text, safe="", errors=_BYTES) for text in pair if text)
        for pair in sorted(kept)
    )


def _fragment(fragment: str) -> str:
    """A fragment may be all that makes another article, as in a list of releases on one page."""
    name, _, value = fragment.partition("=")
    is_same_page = _is_tracking(name, value) or _PLACES_ON_PAGE.fullmatch(fragment)
    return "" if is_same_page else _escaped(fragment)


def _is_tracking(name: str, value: str) -> bool:
    name = name.lower()
    if name in _SOURCE_NAMES:
        return value.lower() in _SOURCE_VALUES
    return name in _TRACKING or name.startswith(_TRACKING_PREFIXES)


def _escaped(text: str) -> str:
    """Percent-encoded in one way, whichever way it was. An escaped slash is no separator and stays escaped."""
    pieces = re.split("%2F", text, flags=re.IGNORECASE)
    return "%2F".join(
        quote(unquote(piece, errors=_BYTES), safe=_SAFE, errors=_BYTES) for piece in pieces
    )
