"""The text of a post: the feed's template filled in, not longer than the receiver allows.

Lengths are counted as Mastodon does: grapheme clusters, a link as a fixed number, the content warning too. What
does not fit is cut from the summary, then from the title, the author and the feed's name; never from the link.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import quote, urlsplit, urlunsplit

import grapheme  # type: ignore[import-untyped]  # it has no types

from tsuzuki.collectors.feeds.channels.protocol import PostBody, PostLimits
from tsuzuki.collectors.feeds.options import FeedOptions
from tsuzuki.collectors.feeds.posting.output_guard import guarded_line, guarded_summary
from tsuzuki.model.errors import ConfigurationError

ELLIPSIS = "…"
CUT_IN_ORDER = ("summary", "title", "author", "feed")
USUAL_LINK_CHARACTERS = 23
"""What the library that knows Mastodon's links counts for one."""

SENTENCE_SHARE_MIN = 0.6
WORD_SHARE_MIN = 0.8
"""A cut moves back to the end of a sentence or of a word, if so much of the room is still used."""

_PLACEHOLDER = re.compile(r"\{(title|summary|url|feed|author)\}")
_URL_SAFE = "/?#&=%:;@+,.~-_!$'()*[]"
_URL_PLAIN = "/?#&=%:+.~-_"
_FRAGMENT_PLAIN = _URL_PLAIN.replace("?", "")
"""For a receiver a question mark in the fragment starts the query."""

_OPENS_MORE = frozenset("@\uff20#\uff03/$.:")
"""Before a value these would make a mention, a hashtag or a link of it."""

_BRACKETS = frozenset("([<「『\uff08【:")

_SENTENCE_END = re.compile(r"(?:[.!?](?=\s)|[。\uff01\uff1f\uff0e])[」』\uff09)\"']*")
_WORD_END = re.compile(r"(?=\s)|(?<=[、\uff0c,])")
_SINGLE = re.compile(
    "[\\n -~\u00a0-\u00ac\u00ae-\u02ff\u2010-\u2027\u2030-\u205e\u3000-\u3029\u3041-\u3096"
    "\u309b-\u30ff\u4e00-\u9fff\uff01-\uff9d]*"
)
"""Characters of which each is a grapheme cluster of its own, whichever of them are beside it."""

_PLUS_AT_END = re.compile(r"\+$")
_BLANK_LINES = re.compile(r"\n{3,}")


class PostTooLong(ConfigurationError):
    """The template leaves no room."""

    code = "template_too_long"


def compose_post(
    feed: FeedOptions,
    *,
    title: str,
    url: str,
    canonical_url: str,
    summary: str,
    limits: PostLimits,
    author: str | None = None,
    feed_title: str | None = None,
) -> PostBody:
    """Raises `OutputRefused` if the summary cannot be posted, `PostTooLong` if not even the link fits."""
    link = link_text(url, limits=limits)
    values = {
        "title": guarded_line(title),
        "summary": guarded_summary(summary, language=feed.language),
        "author": guarded_line(author or ""),
        "feed": guarded_line(feed_title or ""),
        "url": link,
    }
    text = _fitted(feed, values, limits)
    return PostBody(
        text=text,
        url=link,
        canonical_url=canonical_url,
        language=feed.language,
        visibility=feed.visibility.value,
        sensitive=feed.sensitive,
        content_warning=feed.content_warning,
        title=values["title"],
        summary=values["summary"],
    )


def post_length(text: str, *, url: str, content_warning: str | None, limits: PostLimits) -> int:
    """What a post counts, or a little more: a link or a mention in the template counts in full."""
    length = grapheme_count(text) + grapheme_count(content_warning or "")
    if limits.characters_per_url is not None:
        whole = grapheme_count(url)
        # A host that is not known to all may be counted either way.
        is_known = _is_known_as_link(url)
        counted = limits.characters_per_url if is_known else max(limits.characters_per_url, whole)
        length += text.count(url) * (counted - whole)
    return length


def grapheme_count(text: str) -> int:
    """The number of grapheme clusters: at once for most texts, otherwise by the rules of Unicode."""
    return len(text) if _SINGLE.fullmatch(text) else int(grapheme.length(text))


def link_text(url: str, *, limits: PostLimits) -> str:
    """A link that the receiver sees whole: ASCII, and if it counts links, without characters at which one ends."""
    if limits.characters_per_url is None:
        return _encoded(url, safe=_URL_SAFE)
    encoded = _encoded(url, safe=_URL_SAFE, path_ends="_/-)", query_ends="_&=#/-")
    if _is_known_as_link(encoded):
        return encoded
    return _encoded(
        url, safe=_URL_PLAIN, path_ends="_/-", query_ends="_&=#/-", in_fragment=_FRAGMENT_PLAIN
    )


def shorten(text: str, graphemes_max: int) -> str:
    """The beginning of `text`, cut between two grapheme clusters and better between sentences or words, with an
    ellipsis; nothing if there is no room for any of it."""
    if grapheme_count(text) <= graphemes_max:
        return text
    room = graphemes_max - 1
    if room < 1:
        return ""
    cut = str(grapheme.slice(text, 0, room))
    for end, share in ((_SENTENCE_END, SENTENCE_SHARE_MIN), (_WORD_END, WORD_SHARE_MIN)):
        places = [found.end() for found in end.finditer(text[: len(cut) + 1])]
        fitting = [place for place in places if share * len(cut) <= place <= len(cut)]
        if fitting:
            cut = cut[: fitting[-1]]
            break
    return cut.rstrip() + ELLIPSIS


def _fitted(feed: FeedOptions, values: Mapping[str, str], limits: PostLimits) -> str:
    values = dict(values)

    def excess() -> int:
        if limits.characters_max is None:
            return 0
        text = _rendered(feed.template, values)
        counted = post_length(
            text, url=values["url"], content_warning=feed.content_warning, limits=limits
        )
        return counted - limits.characters_max

    over = excess()
    for name in CUT_IN_ORDER:
        if over <= 0:
            break
        whole = values[name]
        room = grapheme_count(whole)
        # A value may stand in the template several times, and what is around it may go with it: so cut again.
        while room > 0 and over > 0:
            times = max(1, feed.template.count(f"{{{name}}}"))
            room = max(0, room - max(1, over // times))
            values[name] = shorten(whole, room)
            over = excess()
    if over > 0:
        raise PostTooLong(
            "the template and content warning leave no room for the link within "
            f"{limits.characters_max} characters",
            hint="Shorten the feed's `template` or `content_warning`.",
        )
    return _rendered(feed.template, values)


def _rendered(template: str, values: Mapping[str, str]) -> str:
    text, before = "", ""
    for place, part in enumerate(_PLACEHOLDER.split(template)):
        name = part if place % 2 else ""
        piece = values[part] if name else part
        if piece:
            apart = text and _is_kept_apart(text[-1], piece[0], before=before, name=name)
            text += f" {piece}" if apart else piece
            before = name
    return _BLANK_LINES.sub("\n\n", text).strip()


def _is_kept_apart(last: str, first: str, *, before: str, name: str) -> bool:
    """Whether a space goes between two pieces, given their names: a link is to be seen as one, and two pieces
    are not to become a link, a mention or a hashtag together."""
    if last.isspace() or first.isspace():
        return False
    if name == "url":
        return last not in _BRACKETS
    if before == "url" or (before and name):
        return True
    if name:
        return last in _OPENS_MORE
    return bool(before) and last in "#\uff03:/" and (last in "#\uff03" or first == "/")


def _encoded(
    url: str,
    *,
    safe: str,
    path_ends: str = "",
    query_ends: str = "",
    in_fragment: str | None = None,
) -> str:
    """With `path_ends`, no part ends in another sign than these."""
    parts = urlsplit(url)
    try:
        host = parts.netloc.encode("idna").decode("ascii")
    except UnicodeError:
        host = quote(parts.netloc, safe=":@[]")
    path, query, fragment = (
        _ended(quote(part, safe=kept), ends)
        for part, kept, ends in (
            (parts.path, safe, path_ends),
            (_PLUS_AT_END.sub(" ", parts.query), safe, query_ends),
            (parts.fragment, in_fragment or safe, path_ends),
        )
    )
    return urlunsplit((parts.scheme, host, path, query, fragment))


def _ended(part: str, ends: str) -> str:
    if not part or not ends or part[-1].isalnum() or part[-1] in ends:
        return part
    return f"{part[:-1]}%{ord(part[-1]):02X}"


@lru_cache(maxsize=64)
def _is_known_as_link(url: str) -> bool:
    from mastodon import Mastodon  # noqa: PLC0415  # half a second, for receivers that count links only

    return int(Mastodon.get_status_length(url)) == USUAL_LINK_CHARACTERS
