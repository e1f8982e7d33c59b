"""One entry of a parsed document, read into what an item needs, or into the reason why it cannot be one."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urljoin, urlsplit

from tsuzuki.collectors.feeds.documents.markup import plain_text, shortened
from tsuzuki.collectors.feeds.entries import dates
from tsuzuki.collectors.feeds.entries.entry import (
    ATTACHMENTS_MAX,
    AUTHOR_CHARACTERS_MAX,
    CATEGORIES_MAX,
    EXCERPT_CHARACTERS_MAX,
    TITLE_CHARACTERS_MAX,
    Attachment,
    FeedEntry,
    Image,
    Unusable,
)
from tsuzuki.collectors.feeds.entries.identity import (
    GUID_CHARACTERS_MAX,
    URL_BYTES_MAX,
    Identifiers,
    canonical_url,
    is_web_address,
)

Raw = Mapping[str, Any]

FIRST_WORDS_MAX = 80
_PLAIN = "text/plain"


@dataclass(frozen=True, kw_only=True)
class Draft:
    """An entry before its document is known whole, which its fingerprints need."""

    values: dict[str, Any]
    identifiers: Identifiers

    def entry(self, fingerprints: tuple[str, ...]) -> FeedEntry:
        return FeedEntry(**self.values, fingerprints=fingerprints)


def read_entry(raw: Raw, *, base_url: str, now: datetime, language: str = "") -> Draft | Unusable:
    """`raw` is an entry of feedparser, which is read as a plain dictionary: its own lookup warns and guesses.
    `language` is that of the feed."""
    raw = _plain(raw)
    text = _text(raw)
    title = _title(raw)
    guid = _guid(raw)
    url, problem = _url(raw, guid, base_url)
    if url is None:
        return unusable(title or _first_words(text), problem, f"{guid} {title} {text}")
    published = dates.published_at(raw, now=now, language=language)
    updated = dates.updated_at(raw, now=now, language=language)
    canonical = canonical_url(_original_link(raw) or url)
    # What was said of no title may change with the text; it is part of the text already.
    content = "\n".join(part for part in (title, text) if part)
    values = {
        "url": url,
        "canonical_url": canonical,
        "title": title or _first_words(text) or url,
        "published_at": published or updated,
        "stated_at": published,
        "updated_at": updated,
        "guid": guid,
        "author": _author(raw),
        "categories": _categories(raw),
        "excerpt": shortened(text, characters_max=EXCERPT_CHARACTERS_MAX),
        "attachments": _attachments(raw, base_url),
        "image": _image(raw, base_url),
        "content_hash": _hash(content),
    }
    return Draft(values=values, identifiers=Identifiers(canonical_url=canonical, guid=guid))


def unusable(title: str, problem: str, content: str) -> Unusable:
    return Unusable(
        title=shortened(title, characters_max=TITLE_CHARACTERS_MAX) or "(no title)",
        problem=problem,
        entry_hash=_hash(content),
    )


# --- link and guid --------------------------------------------------------------------------------


def _url(raw: Raw, guid: str | None, base_url: str) -> tuple[str | None, str]:
    """The link, else the guid if that is one; or None and why neither will do."""
    said = _string(raw, "link")
    problem = "it has no link, and its guid is not a link"
    for candidate in (said, guid or ""):
        if not candidate.strip():
            continue
        url = _absolute(candidate, base_url if candidate is said else "")
        problem_of_url = "its link is the feed itself" if url == base_url else _problem_of(url)
        if problem_of_url is None:
            return url, ""
        if candidate is said:
            problem = problem_of_url
    return None, problem


def _problem_of(url: str) -> str | None:
    if not is_web_address(url):
        return "its link is not an http(s) address"
    if urlsplit(url).username is not None:
        return "its link contains a user name or password"
    if len(url.encode("utf-8", "replace")) > URL_BYTES_MAX:
        return f"its link is longer than {URL_BYTES_MAX} bytes"
    if any(not letter.isprintable() for letter in url):
        return "its link contains invalid characters"
    return None


def _absolute(said: str, base_url: str) -> str:
    # As browsers do: blanks around it and line breaks in it are not part of an address.
    cleaned = "".join(said.strip().split("\n")).replace("\r", "").replace("\t", "").strip()
    try:
        return urljoin(base_url, cleaned) if base_url else cleaned
    except ValueError:
        return cleaned


def _original_link(raw: Raw) -> str | None:
    """Where a link of a counting service leads."""
    said = raw.get("feedburner_origlink") or raw.get("pheedo_origlink")
    return said.strip() if isinstance(said, str) and is_web_address(said.strip()) else None


def _guid(raw: Raw) -> str | None:
    guid = " ".join(_string(raw, "id").split())
    return guid if guid and len(guid) <= GUID_CHARACTERS_MAX else None


# --- words ----------------------------------------------------------------------------------------


def _title(raw: Raw) -> str:
    text = plain_text(_string(raw, "title"), is_markup=_is_markup(raw.get("title_detail")))
    return shortened(text, characters_max=TITLE_CHARACTERS_MAX)


def _text(raw: Raw) -> str:
    """The whole content if it is there, else the summary."""
    contents = [one for one in _list(raw, "content") if isinstance(one.get("value"), str)]
    texts = [plain_text(one["value"], is_markup=_is_markup(one)) for one in contents]
    summary = plain_text(_string(raw, "summary"), is_markup=_is_markup(raw.get("summary_detail")))
    return next((text for text in texts if text), summary)


def _is_markup(detail: Any) -> bool:
    return not isinstance(detail, Mapping) or detail.get("type") != _PLAIN


def _first_words(text: str) -> str:
    return shortened(text, characters_max=FIRST_WORDS_MAX)


def _author(raw: Raw) -> str | None:
    """Names only: an address is not shown to readers."""
    names = [one.get("name") for one in (*_list(raw, "authors"), _mapping(raw, "author_detail"))]
    known = dict.fromkeys(
        plain_text(name, is_markup=False)
        for name in names
        if isinstance(name, str) and "@" not in name
    )
    text = ", ".join(filter(None, known))
    return shortened(text, characters_max=AUTHOR_CHARACTERS_MAX) or None


def _categories(raw: Raw) -> tuple[str, ...]:
    said = [tag.get("label") or tag.get("term") for tag in _list(raw, "tags")]
    words = (plain_text(word, is_markup=True) for word in said if isinstance(word, str))
    return tuple(
        shortened(word, characters_max=100)
        for word in list(dict.fromkeys(filter(None, words)))[:CATEGORIES_MAX]
    )


# --- files ----------------------------------------------------------------------------------------


def _attachments(raw: Raw, base_url: str) -> tuple[Attachment, ...]:
    links = [link for link in _list(raw, "links") if link.get("rel") == "enclosure"]
    links += [one for one in _list(raw, "media_content") if one.get("medium") == "document"]
    found: dict[str, Attachment] = {}
    for link, url in _with_address(links, base_url):
        if not _is_image(link):
            title = plain_text(_string(link, "title"), is_markup=False) or None
            media_type = _string(link, "type").partition(";")[0].strip().lower() or None
            found.setdefault(url, Attachment(url=url, media_type=media_type, title=title))
    return tuple(found.values())[:ATTACHMENTS_MAX]


def _image(raw: Raw, base_url: str) -> Image | None:
    """The largest claim first: a picture of the article, one that is attached, a small one of it."""
    media = [one for one in _list(raw, "media_content") if _is_image(one)]
    enclosed = [
        link for link in _list(raw, "links") if link.get("rel") == "enclosure" and _is_image(link)
    ]
    others = [*_list(raw, "media_thumbnail"), _mapping(raw, "image")]
    for one, url in _with_address([*media, *enclosed, *others], base_url):
        alt = plain_text(_string(one, "title") or _string(one, "alt"), is_markup=False)
        return Image(url=url, alt=shortened(alt, characters_max=TITLE_CHARACTERS_MAX) or None)
    return None


def _is_image(link: Raw) -> bool:
    return link.get("medium") == "image" or _string(link, "type").lower().startswith("image/")


def _with_address(links: Sequence[Raw], base_url: str) -> Iterator[tuple[Raw, str]]:
    """Those of them with a usable address, and that address."""
    for link in links:
        said = _string(link, "href") or _string(link, "url")
        url = _absolute(said, base_url) if said else ""
        if url and _problem_of(url) is None:
            yield link, url


# --- dictionaries of feedparser -------------------------------------------------------------------


def _plain(raw: Raw) -> dict[str, Any]:
    return raw if type(raw) is dict else dict(raw)


def _string(raw: Raw, name: str) -> str:
    value = raw.get(name)
    return value if isinstance(value, str) else ""


def _list(raw: Raw, name: str) -> list[dict[str, Any]]:
    value = raw.get(name)
    return [_plain(one) for one in value if isinstance(one, Mapping)] if value else []


def _mapping(raw: Raw, name: str) -> dict[str, Any]:
    value = raw.get(name)
    return _plain(value) if isinstance(value, Mapping) else {}


def _hash(content: str) -> str:
    return hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()
