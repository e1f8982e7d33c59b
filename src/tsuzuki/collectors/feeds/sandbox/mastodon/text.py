"""The text of a status as the server reads it: its links, mentions and hashtags, its length, its HTML.

Ends of links and mentions are found by the rules of the real server, with one difference: any host counts as one,
also a name without a known top-level domain, `localhost` and an address, for a sandbox is served there.
"""

import html
import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

import regex  # type: ignore[import-untyped]  # it ships no types

URL_START = re.compile(
    r"(?<![A-Za-z0-9@\uff20$#\uff03])https?://"
    r"(?:(?:[^\W_](?:[\w-]*[^\W_])?\.)*[^\W_](?:(?:-|[^\W_])*[^\W_])?\."  # `_` in subdomains only
    r"(?:xn--[a-z0-9-]+|[a-z]{2,63})(?![a-z0-9_@+-])"
    r"|localhost|[0-9]{1,3}(?:\.[0-9]{1,3}){3})"
    r"(?::[0-9]{1,5})?",
    re.IGNORECASE,
)
PATH_CHARACTER = r"[^\s<>()?]"
BALANCED = re.compile(
    rf"\((?:{PATH_CHARACTER}+|{PATH_CHARACTER}*\({PATH_CHARACTER}+\){PATH_CHARACTER}*)\)"
)
NOT_AT_THE_END = frozenset("!*\"'「」;:=,.$%[]~&|")
QUERY = re.compile(
    r"\?[a-z0-9!?*'();:&=+$/%#\[\]\-_.,~|@^\u00a0-\U000ffffd]*[a-z0-9_&=#/\-\u00a0-\U000ffffd]",
    re.IGNORECASE,
)
MENTION = re.compile(
    r"(?<![=/\w])@([a-z0-9_]+(?:[.-]+[a-z0-9_]+)*(?:@\w+(?:[.-]+\w+)*)?)(?![@\uff20]|://)",
    re.IGNORECASE,
)
HASHTAG = re.compile(r"(?:(?<=\s)|^)[#\uff03](\w*[^\W\d_]\w*)", re.MULTILINE)
URL_PREFIX = re.compile(r"https?://(?:www\.)?")
SHOWN_CHARACTERS = 30


class EntityKind(Enum):
    URL = 0
    HASHTAG = 1
    MENTION = 2


@dataclass(frozen=True, kw_only=True)
class Entity:
    """A part of the text that becomes a link. `value` is without its `#` or `@`."""

    kind: EntityKind
    start: int
    end: int
    value: str


@lru_cache(maxsize=1024)
def entities(text: str) -> tuple[Entity, ...]:
    """In the order of the text; of two that overlap, the one that starts first."""
    found = [*_urls(text), *_matches(HASHTAG, EntityKind.HASHTAG, text)]
    found += _matches(MENTION, EntityKind.MENTION, text)
    found.sort(key=lambda entity: (entity.start, entity.kind.value))
    kept: list[Entity] = []
    for entity in found:
        if not kept or entity.start >= kept[-1].end:
            kept.append(entity)
    return tuple(kept)


def status_length(text: str, spoiler_text: str = "", *, characters_per_url: int = 23) -> int:
    """What the server compares with its limit: graphemes, where a link has a fixed length and a mention no host."""
    counted, position = "", 0
    for entity in entities(text):
        if entity.kind is EntityKind.HASHTAG:
            continue
        counted += text[position : entity.start]
        if entity.kind is EntityKind.URL:
            counted += "x" * characters_per_url
        else:
            counted += "@" + entity.value.partition("@")[0]
        position = entity.end
    return grapheme_count(spoiler_text + counted + text[position:])


def grapheme_count(text: str) -> int:
    return len(regex.findall(r"\X", text))


def as_html(text: str, base_url: str) -> str:
    """Paragraphs with links, as in a status's `content`."""
    rendered, position = "", 0
    for entity in entities(text):
        rendered += _escaped(text[position : entity.start]) + _link(entity, base_url)
        position = entity.end
    rendered += _escaped(text[position:])
    paragraphs = re.split(r"\n\n+", rendered.replace("\r\n", "\n").strip())
    return "".join("<p>" + one.replace("\n", "<br />") + "</p>" for one in paragraphs if one)


def _urls(text: str) -> list[Entity]:
    found, position = [], 0
    while (match := URL_START.search(text, position)) is not None:
        position = _url_end(text, match.end())
        url = text[match.start() : position]
        found.append(Entity(kind=EntityKind.URL, start=match.start(), end=position, value=url))
    return found


def _url_end(text: str, position: int) -> int:
    """Where the link whose host ends here ends."""
    end = position
    if text[position : position + 1] == "/":
        end = position = position + 1
        while position < len(text):
            character = text[position]
            group = BALANCED.match(text, position) if character == "(" else None
            if group is not None:
                end = position = group.end()
                continue
            if character.isspace() or character in "<>()?":
                break
            position += 1
            if character not in NOT_AT_THE_END:
                end = position
    query = QUERY.match(text, end)
    return query.end() if query else end


def _matches(pattern: re.Pattern[str], kind: EntityKind, text: str) -> list[Entity]:
    return [
        Entity(kind=kind, start=match.start(), end=match.end(), value=match[1])
        for match in pattern.finditer(text)
    ]


def _link(entity: Entity, base_url: str) -> str:
    value = _escaped(entity.value)
    match entity.kind:
        case EntityKind.URL:
            return _url_link(entity.value)
        case EntityKind.HASHTAG:
            href = _escaped(f"{base_url}/tags/{entity.value}")
            return f'<a href="{href}" class="mention hashtag" rel="tag">#<span>{value}</span></a>'
        case EntityKind.MENTION:
            href, name = _escaped(f"{base_url}/@{entity.value}"), value.partition("@")[0]
            return (
                f'<span class="h-card" translate="no"><a href="{href}" class="u-url mention">'
                f"@<span>{name}</span></a></span>"
            )


def _url_link(url: str) -> str:
    """A link that shows the first characters of its address."""
    match = URL_PREFIX.match(url)
    prefix = match[0] if match else ""
    rest = url[len(prefix) :]
    shown = rest if len(rest) <= SHOWN_CHARACTERS + 1 else rest[:SHOWN_CHARACTERS]
    kind = "ellipsis" if shown != rest else ""
    return (
        f'<a href="{_escaped(url)}" target="_blank" rel="nofollow noopener" translate="no">'
        f'<span class="invisible">{_escaped(prefix)}</span>'
        f'<span class="{kind}">{_escaped(shown)}</span>'
        f'<span class="invisible">{_escaped(rest[len(shown) :])}</span></a>'
    )


def _escaped(text: str) -> str:
    return html.escape(text).replace("&#x27;", "&#39;")
